import { randomUUID } from 'node:crypto'
import { decodeJwt, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { decodeBits, encodeBits } from '#lib/capability-set.ts'
import { signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import { AppError, unauthenticated } from '#lib/errors.ts'
import { subdomainOf } from '#lib/net/subdomain.ts'
import { isUid, operatorUid, top } from '#lib/uid.ts'
import type { Keyring } from './keyring.ts'

export { operatorUid }

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

/** What an access token says, once it has been verified. */
export type AccessToken = {
  subject: string
  audience: readonly string[]
  /** Seconds since 1970. */
  issuedAt: number
  expiry: number
  /** Capability masks by place; absent when the token does not narrow what its subject may do. */
  narrowing: ReadonlyMap<string, bigint> | undefined
  /** Somebody has asked for a token that may do less than its subject. */
  narrowed: boolean
  /** The claims of the outside token that it was exchanged for: issuer, subject and audience, each one text. */
  act?: Readonly<Record<string, string>>
  /** Of a person's token: the session that it comes from. */
  session?: CallerSession
  /** What a sign-in provider says of the person. */
  upstream?: Readonly<Record<string, string>>
  /** The address of the person that the provider calls verified. */
  verifiedEmail?: string
  /** Capability masks by place that external groups have added to the session. */
  granted?: ReadonlyMap<string, bigint>
  /** They are too many to be named, and are those of the session. */
  grantedBySession?: boolean
  /** Of a token that the registry's token endpoint made: the repositories and actions it is good for. */
  access?: readonly RepositoryAccess[]
}

/**
 * `actions` are `pull`, `push` and `delete`; `name` is the path of the repository. Of the type `registry` there is only
 * the `catalog` with `*`, which is the list of the repositories.
 */
export type RepositoryAccess = { type?: 'registry'; name: string; actions: readonly string[] }

/** How tokens of the registry's token endpoint are told from those of the exchange. Only the registry takes them. */
export const registryTokenType = 'registry+jwt'

/** A good token, but for somebody else: the registry answers it with 403 rather than 401. */
export class WrongAudience extends AppError {
  constructor(cause: unknown) {
    super('UNAUTHENTICATED', 'the token was issued for another audience', { cause })
  }
}

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

/** What of these claims cannot be read is a token of somebody else. */
function readSession({
  sid = '',
  org = '',
  auth_time,
  grp,
}: JWTPayload): Pick<AccessToken, 'session' | 'granted' | 'grantedBySession'> {
  if (auth_time === undefined) return {}
  if (typeof sid !== 'string' || typeof org !== 'string' || typeof auth_time !== 'number') {
    throw unauthenticated('the token is not one that this server issued')
  }
  const session = { uid: sid, organization: org, authTime: auth_time }
  if (grp === true) return { session, grantedBySession: true }
  return grp === undefined ? { session } : { session, granted: readNarrowing(grp) }
}

export type Verifier = (token: string) => Promise<AccessToken>

const maxTokenLength = 16 * 1024
const maxCached = 10_000

type Expected = { issuer: string; audience: string; registry: boolean }

/**
 * Verifies tokens of our own issuer for one audience. A token that was verified before costs a look-up until it expires.
 * The registry's verifier also takes the tokens of its own endpoint, among them those of nobody, whose subject is empty.
 */
export function createVerifier(
  keyring: Keyring,
  issuer: string,
  audience: string,
  now: () => Date,
  registry: boolean = false,
): Verifier {
  const expected: Expected = { issuer, audience, registry }
  const known = new Map<string, AccessToken>()
  let epoch = keyring.epoch()

  return async (token) => {
    if (epoch !== keyring.epoch()) {
      known.clear()
      epoch = keyring.epoch()
    }
    const cached = known.get(token)
    if (cached) {
      if (cached.expiry * 1000 > now().getTime()) return cached
      known.delete(token)
      throw unauthenticated('the token has expired')
    }
    const verified = await verify(keyring, expected, token, now())
    known.set(token, verified)
    if (known.size > maxCached) known.delete(known.keys().next().value!)
    return verified
  }
}

async function verify(keyring: Keyring, expected: Expected, token: string, now: Date): Promise<AccessToken> {
  if (token.length > maxTokenLength) throw unauthenticated('the token is too long')
  try {
    const { payload, protectedHeader } = await jwtVerify(
      token,
      (header) => {
        const key = header.kid === undefined ? undefined : keyring.verifier(header.kid, header.alg)
        if (!key) throw new errors.JWKSNoMatchingKey()
        return key
      },
      {
        issuer: expected.issuer,
        audience: acceptedBy(expected, token),
        algorithms: [...signingAlgorithms],
        currentDate: now,
        requiredClaims: ['sub', 'iat', 'exp'],
      },
    )
    const type = protectedHeader.typ?.toLowerCase().replace(/^application\//, '')
    const ofRegistry = expected.registry && type === registryTokenType
    if (!ofRegistry && type !== 'at+jwt') throw unauthenticated('the token is of another type')
    const { sub: subject } = payload
    if (typeof subject !== 'string' || !(isUid(subject) || (ofRegistry && subject === ''))) {
      throw unauthenticated('the subject of the token is not a uid')
    }
    return {
      subject,
      audience: [payload.aud ?? []].flat(),
      issuedAt: payload.iat!,
      expiry: payload.exp!,
      narrowing: payload.cap === undefined ? undefined : readNarrowing(payload.cap),
      narrowed: payload.narrowed === true,
      ...(payload.act instanceof Object && { act: readAct(payload.act) }),
      ...readSession(payload),
      ...(payload.upstream instanceof Object && { upstream: payload.upstream as Record<string, string> }),
      ...(payload.email_verified === true && typeof payload.email === 'string' && { verifiedEmail: payload.email }),
      ...(ofRegistry && { access: readAccess(payload.access) }),
    }
  } catch (error) {
    throw explain(error)
  }
}

/** The registry takes tokens for its sub-domains too. */
function acceptedBy({ audience, registry }: Expected, token: string): string[] {
  const named = registry ? [decodeJwt(token).aud ?? []].flat() : []
  return [audience, ...named.filter((one) => subdomainOf(one, audience))]
}

/** The `cap` claim: encoded capability sets by group. What cannot be read grants nothing. */
function readNarrowing(claim: unknown): ReadonlyMap<string, bigint> {
  const narrowing = new Map<string, bigint>()
  if (claim === null || typeof claim !== 'object') return narrowing
  for (const [place, text] of Object.entries(claim)) {
    const mask = typeof text === 'string' ? decodeBits(text) : undefined
    if (mask !== undefined && (place === top || isUid(place))) narrowing.set(place, mask)
  }
  return narrowing
}

/** Of what earlier versions wrote, an audience could be a list; its first is the one that is shown. */
function readAct(claim: object): Record<string, string> {
  const entries = Object.entries(claim).map(([name, value]: [string, unknown]) => [name, [value].flat()[0]] as const)
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

/** The `access` claim of a registry's token. What cannot be read grants nothing. */
function readAccess(claim: unknown): RepositoryAccess[] {
  if (!Array.isArray(claim)) return []
  return claim.flatMap(({ type, name, actions }: Record<string, unknown>) => {
    if (typeof name !== 'string' || !Array.isArray(actions)) return []
    if (type === 'registry') return [{ type, name, actions }]
    return type === 'repository' ? [{ name, actions }] : []
  })
}

function explain(error: unknown): Error {
  if (error instanceof errors.JWTExpired) return unauthenticated('the token has expired', error)
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return new WrongAudience(error)
    return unauthenticated(`the token's ${error.claim} is not accepted`, error)
  }
  if (error instanceof errors.JOSEError || error instanceof TypeError) {
    return unauthenticated('the token is not one that this server issued', error)
  }
  return error instanceof Error ? error : new Error(String(error))
}
