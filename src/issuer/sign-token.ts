// Signing of access tokens. Separate from verification, so that commands load less.
import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'
import { encodeBits } from '#lib/capability-set.ts'
import type { Keyring } from './keyring.ts'

/** Longest life of an access token, in seconds. */
export const maxLifetime = 60 * 60

/** Part of a person's session that affects their rights. */
export type CallerSession = {
  /** Empty for a token that was exchanged for a provider's token, which has no session. */
  uid: string
  /**
   * Organization to which the session is limited. Empty for none. Methods without a required capability must check it themselves.
   */
  organization: string
  /** Time of the person's sign-in at the provider, in seconds since 1970. 0 if it is not known. */
  authTime: number
}

/**
 * Access to a repository. `actions` are `pull`, `push` and `delete`; `name` is its path. The type `registry` exists only for
 * `catalog` with `*`, the list of repositories.
 */
export type RepositoryAccess = { type?: 'registry'; name: string; actions: readonly string[] }

/** Type of the tokens of the registry's token endpoint. Only the registry accepts them. */
export const registryTokenType = 'registry+jwt'

export type TokenInput = {
  issuer: string
  subject: string
  audience: string | string[]
  now: Date
  /** Life in seconds. At most an hour, which is the default. */
  lifetime?: number
  /** Capability masks by group, for a token with less than the rights of its subject. */
  narrowing?: ReadonlyMap<string, bigint> | undefined
  /** True if the narrowing lists the present grants of the subject and was not requested. */
  whole?: boolean
  /** For a person: the session, and the capabilities of external groups. */
  session?: CallerSession | undefined
  granted?: ReadonlyMap<string, bigint> | undefined
  /** Further claims, such as `act`. */
  claims?: Record<string, unknown>
  /** Makes it a token of the registry's token endpoint, valid for these repositories only. */
  access?: readonly RepositoryAccess[]
  /** Uid of the push token for which it was made. It is valid only as long as the push token. */
  pushToken?: string | undefined
}

/** Signs an access token, valid for at most an hour. */
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

/** Most groups with capabilities of external groups that a token lists. */
const maxGrantedNamed = 10

function sessionClaims({ session, granted }: TokenInput): Record<string, unknown> {
  if (!session) return {}
  const { uid: sid, organization: org, authTime: auth_time } = session
  const size = granted?.size ?? 0
  // Capabilities of a session can be looked up, so any number of them keeps the token short enough for a header.
  const grp = granted && size > 0 ? (size > maxGrantedNamed && sid !== '' ? true : masksText(granted)) : undefined
  return { ...(sid && { sid }), ...(org && { org }), auth_time, ...(grp && { grp }) }
}
