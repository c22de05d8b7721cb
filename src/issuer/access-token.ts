import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import { Newest } from '#lib/caches/newest.ts'
import { decodeBits } from '#lib/capability-set.ts'
import { signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import { AppError, unauthenticated } from '#lib/errors.ts'
import { subdomainOf } from '#lib/net/subdomain.ts'
import { isUid, operatorUid, top } from '#lib/uid.ts'
import type { Keyring } from './keyring.ts'
import { type CallerSession, type RepositoryAccess, registryTokenType } from './sign-token.ts'

export {
  type CallerSession,
  maxLifetime,
  type RepositoryAccess,
  registryTokenType,
  signAccessToken,
  type TokenInput,
} from './sign-token.ts'
export { operatorUid }

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
  /** Of a token that the endpoint made for a push token: the uid of that. */
  pushToken?: string
  /** Of a token that was made for a scanner: its name. */
  scanner?: string
}

/** A good token, but for somebody else: the registry answers it with 403 rather than 401. */
export class WrongAudience extends AppError {
  constructor(cause: unknown) {
    super('UNAUTHENTICATED', 'the token was issued for another audience', { cause })
  }
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
  const known = new Newest<string, AccessToken>(maxCached)
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
    return verified
  }
}

async function verify(keyring: Keyring, expected: Expected, token: string, now: Date): Promise<AccessToken> {
  if (token.length > maxTokenLength) throw unauthenticated('the token is too long')
  try {
    const { payload, protectedHeader } = await jwtVerify(
      token,
      async (header) => {
        const key = header.kid === undefined ? undefined : await keyring.findVerifier(header.kid, header.alg)
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
      ...(ofRegistry && typeof payload.push_token === 'string' && { pushToken: payload.push_token }),
      ...(ofRegistry && typeof payload.scanner === 'string' && { scanner: payload.scanner }),
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
