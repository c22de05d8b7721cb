// Makes access tokens. Commands sign without what verifies.
import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'
import { encodeBits } from '#lib/capability-set.ts'
import type { Keyring } from './keyring.ts'

/** How long an access token lives at most, in seconds. */
export const maxLifetime = 60 * 60

/** What matters of a person's session for what they may do. */
export type CallerSession = {
  /** Empty for a token that was exchanged for a provider's, which has no session. */
  uid: string
  /** The organisation that nothing may reach beyond; empty for none. Methods that ask for no capability have to look. */
  organization: string
  /** When the person showed the provider who they are, in seconds since 1970; 0 when that is not known. */
  authTime: number
}

/**
 * `actions` are `pull`, `push` and `delete`; `name` is the path of the repository. Of the type `registry` there is only
 * the `catalog` with `*`, which is the list of the repositories.
 */
export type RepositoryAccess = { type?: 'registry'; name: string; actions: readonly string[] }

/** How tokens of the registry's token endpoint are told from those of the exchange. Only the registry takes them. */
export const registryTokenType = 'registry+jwt'

export type TokenInput = {
  issuer: string
  subject: string
  audience: string | string[]
  now: Date
  /** In seconds; an hour at most, and unless said otherwise. */
  lifetime?: number
  /** Capability masks by place, when the token is to allow less than its subject may do. */
  narrowing?: ReadonlyMap<string, bigint> | undefined
  /** The narrowing is only what its subject is bound to now, and was not asked for. */
  whole?: boolean
  /** Of a person: how they are signed in, and what their external groups add. */
  session?: CallerSession | undefined
  granted?: ReadonlyMap<string, bigint> | undefined
  /** Further claims, such as `act`. */
  claims?: Record<string, unknown>
  /** Makes it a token of the registry's token endpoint, good for these repositories only. */
  access?: readonly RepositoryAccess[]
  /** The uid of the push token that it was given for, and is good no longer than. */
  pushToken?: string | undefined
}

/** Signs an access token; the time that it is valid for is at most an hour. */
export async function signAccessToken(keyring: Keyring, input: TokenInput): Promise<string> {
  const { kid, alg, key } = keyring.signer()
  const issuedAt = Math.floor(input.now.getTime() / 1000)
  const { narrowing, whole } = input
  const access = input.access?.map((one) => ({ type: 'repository', ...one }))
  return new SignJWT({
    ...input.claims,
    ...sessionClaims(input),
    ...(narrowing ? { cap: masksText(narrowing), ...(!whole && { narrowed: true }) } : {}),
    ...(access ? { access } : {}),
    ...(input.pushToken ? { push_token: input.pushToken } : {}),
  })
    .setProtectedHeader({ alg, kid, typ: access ? registryTokenType : 'at+jwt' })
    .setIssuer(input.issuer)
    .setSubject(input.subject)
    .setAudience(input.audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + Math.min(input.lifetime ?? maxLifetime, maxLifetime))
    .setJti(randomUUID())
    .sign(key)
}

function masksText(masks: ReadonlyMap<string, bigint>): Record<string, string> {
  return Object.fromEntries([...masks].map(([place, mask]) => [place, encodeBits(mask)]))
}

/** How many places that external groups add to a session a token names. */
const maxGrantedNamed = 10

function sessionClaims({ session, granted }: TokenInput): Record<string, unknown> {
  if (!session) return {}
  const { uid: sid, organization: org, authTime: auth_time } = session
  const size = granted?.size ?? 0
  // Of a session they can be looked up, so that no token is too long for a header however many there are.
  const grp = granted && size > 0 ? (size > maxGrantedNamed && sid !== '' ? true : masksText(granted)) : undefined
  return { ...(sid && { sid }), ...(org && { org }), auth_time, ...(grp && { grp }) }
}
