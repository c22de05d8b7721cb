// Profile of a person, from the claims of a sign-in provider.
import type { Profile } from '#domains/iam/sign-in/sign-in.service.ts'
import type { OutsideToken } from '../outside-token.ts'
import { text } from '../register.ts'

const maxPicture = 1024

/** Reads the profile from claims. Leaves out texts that cannot be stored or shown. */
export function profileOf({ claims }: Pick<OutsideToken, 'claims'>): Profile {
  const { picture, email_verified } = claims
  const url = typeof picture === 'string' && picture.length <= maxPicture ? URL.parse(picture) : null
  return {
    name: text(claims.name),
    picture: url?.protocol === 'https:' ? url.href : '',
    email: text(claims.email),
    emailVerified: email_verified === true || email_verified === 'true',
  }
}

/** Claims about a person that an access token contains. */
export function personClaims(
  act: Readonly<Record<string, string>>,
  { name, picture, email, emailVerified }: Profile,
): Record<string, unknown> {
  const address = email === '' ? {} : { email, email_verified: emailVerified }
  return { act, ...address, upstream: { email, name, picture } }
}
