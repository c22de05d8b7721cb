// Registration of a person, with a token of a sign-in provider that the settings trust.
import type { App, Call } from '#app.ts'
import { canonicalIssuer, personUid } from '#domains/iam/identities/people.ts'
import { type Person, registerPerson } from '#domains/iam/invites/registration.service.ts'
import { AppError, invalid, permissionDenied, unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { isUid } from '#lib/uid.ts'
import { checkTimes, type OutsideToken, readOutsideToken, refused, verifyOutsideToken } from './outside-token.ts'

type PeopleIssuer = { issuer: string; audience: string }

/**
 * Audiences that tokens of this issuer must have to identify people. Empty if the settings do not trust the issuer to sign people
 * in.
 */
export function peopleAudiences(trusted: readonly PeopleIssuer[], issuer: string): string[] {
  return trusted.flatMap((one) => (canonicalIssuer(one.issuer) === issuer ? [one.audience] : []))
}

/** Registers a person. If the settings trust no issuer to sign people in, throws PERMISSION_DENIED for all callers. */
export async function register(
  call: Call,
  { code, identityId }: { code: string; identityId: string },
): Promise<{ identity: string; group: string }> {
  const { config, limits } = call.app
  const { source } = call.cause
  limits.check('source', source)
  if (config.oidcProviders.length === 0) {
    throw new AppError('PERMISSION_DENIED', 'registration is disabled on this server', {
      reason: 'REGISTRATION_CLOSED',
    })
  }
  const { credential } = call
  if (credential === undefined)
    throw unauthenticated(
      'no token was sent; send a token of an identity provider in the header "Authorization: Bearer TOKEN"',
    )
  const token = await countRefusals(limits, source, () => provePerson(call.app, credential))
  // The limit is per person, since every user of the provider can get a valid token.
  limits.check('identity', personUid(token.issuer, token.subject))

  checkIdentity(identityId, token)
  return registerPerson(call, personOf(token), code)
}

/** Verifies a token that identifies a person. Throws UNAUTHENTICATED unless the settings trust its issuer and its audience. */
async function provePerson({ config, outsideIssuers, clock }: App, credential: string): Promise<OutsideToken> {
  const token = readOutsideToken(credential)
  checkTimes(token, clock())
  const audiences = peopleAudiences(config.oidcProviders, token.issuer)
  if (audiences.length === 0) throw refused('another issuer')
  await verifyOutsideToken(token, await outsideIssuers.keysOf(token.issuer, token.kid))
  if (!token.audience.some((audience) => audiences.includes(audience))) throw refused('another audience')
  return token
}

function checkIdentity(identityId: string, { issuer, subject }: OutsideToken): void {
  if (identityId === '') return
  if (!isUid(identityId)) throw invalid({ field: 'identity_id', description: 'is not a uid' })
  if (identityId !== personUid(issuer, subject))
    throw permissionDenied('the token belongs to another user than identity_id')
}

const maxText = 254

/**
 * Data of a person from the claims of a token. The address is verified only if `email_verified` is true, which some providers
 * send as a text.
 */
export function personOf({ issuer, subject, claims }: Pick<OutsideToken, 'issuer' | 'subject' | 'claims'>): Person {
  const email = text(claims.email)
  const emailVerified = claims.email_verified === true || claims.email_verified === 'true'
  return { issuer, subject, name: text(claims.name) || email || subject.slice(0, maxText), email, emailVerified }
}

/** Value as text if it can be stored and shown. Empty for too long texts, texts with control characters, and other types. */
export function text(value: unknown): string {
  if (typeof value !== 'string' || value.length > maxText || !value.isWellFormed()) return ''
  return /^\P{Cc}*$/u.test(value) ? value : ''
}
