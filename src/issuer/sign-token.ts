// Signing of access tokens. Verification is in another file, so that commands load less code.
import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'
import { encodeBits } from '#lib/capability-set.ts'
import type { Keyring } from './keyring.ts'

/** Longest life of an access token, in seconds. */
export const maxLifetime = 60 * 60

/** Part of a person's session that affects permissions. */
export type CallerSession = {
  /** Uid of the session. Empty if the token was exchanged for a token of the provider, without a session. */
  uid: string
  /**
   * Organization to which the session is limited. Empty for no limit. Methods that require no capability must check this limit
   * themselves.
   */
  organization: string
  /** Time of the person's sign-in at the provider, in seconds since 1970. 0 if unknown. */
  authTime: number
}

/**
 * Access to a repository: its path in `name`, and the actions `pull`, `push` and `delete`. The type `registry` is only used for
 * the name `catalog` with the action `*`, which allows to list repositories.
 */
export type RepositoryAccess = { type?: 'registry'; name: string; actions: readonly string[] }

/** Header `typ` of tokens from the registry's token endpoint. Only the registry accepts them. */
export const registryTokenType = 'registry+jwt'

export type TokenInput = {
  issuer: string
  subject: string
  audience: string | string[]
  now: Date
  /** Lifetime in seconds. Default and maximum are one hour. */
  lifetime?: number
  /** Capability masks by group, if the token has fewer permissions than its subject. */
  narrowing?: ReadonlyMap<string, bigint> | undefined
  /** True if the token was requested for all permissions. The narrowing then lists the current grants of the subject. */
  whole?: boolean
  /** Session of a person, and the capabilities that external groups add to it. */
  session?: CallerSession | undefined
  granted?: ReadonlyMap<string, bigint> | undefined
  /** Additional claims, such as `act`. */
  claims?: Record<string, unknown>
  /** Repositories of the token. If set, the token has the type of the registry's token endpoint and is valid only there. */
  access?: readonly RepositoryAccess[]
  /** Uid of the push token from which the token was made. When the push token ends, the token ends too. */
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
  return Object.fromEntries([...masks].map(([group, mask]) => [group, encodeBits(mask)]))
}

/** Most groups that the `grp` claim lists with the capabilities from external groups. */
const maxGrantedNamed = 10

function sessionClaims({ session, granted }: TokenInput): Record<string, unknown> {
  if (!session) return {}
  const { uid: sid, organization: org, authTime: auth_time } = session
  const size = granted?.size ?? 0
  // If there are more groups, the claim is only `true`. The server then reads the capabilities from the session.
  const grp = granted && size > 0 ? (size > maxGrantedNamed && sid !== '' ? true : masksText(granted)) : undefined
  return { ...(sid && { sid }), ...(org && { org }), auth_time, ...(grp && { grp }) }
}
