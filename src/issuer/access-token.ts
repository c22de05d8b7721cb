import { createHash, randomUUID } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import { decodeBits, encodeBits } from '#lib/capability-set.ts'
import { unauthenticated } from '#lib/errors.ts'
import { isUid, top } from '#lib/uid.ts'
import { type Keyring, signingAlgorithm } from './keyring.ts'

/** The subject of tokens for whoever holds the data folder or the master key. A root-level uid that no identity can get. */
export const operatorUid: string = createHash('sha256').update('pinfold operator').digest('hex').slice(0, 40)

/** How long an access token lives at most, in seconds. */
export const maxLifetime = 60 * 60

/** What an access token says, once it has been verified. */
export type AccessToken = {
  subject: string
  audience: readonly string[]
  /** Seconds since 1970. */
  issuedAt: number
  expiry: number
  /** Capability masks by place; absent when the token does not narrow what its subject may do. */
  narrowing: ReadonlyMap<string, bigint> | undefined
}

export type TokenInput = {
  issuer: string
  subject: string
  audience: string | string[]
  now: Date
  /** In seconds; an hour at most, and unless said otherwise. */
  lifetime?: number
  /** Capability masks by place, when the token is to allow less than its subject may do. */
  narrowing?: ReadonlyMap<string, bigint>
  /** Further claims, such as `act`. */
  claims?: Record<string, unknown>
}

/** Signs an access token; the time that it is valid for is at most an hour. */
export async function signAccessToken(keyring: Keyring, input: TokenInput): Promise<string> {
  const { kid, key } = keyring.signer()
  const issuedAt = Math.floor(input.now.getTime() / 1000)
  const { narrowing } = input
  const cap = narrowing && Object.fromEntries([...narrowing].map(([place, mask]) => [place, encodeBits(mask)]))
  return new SignJWT({ ...input.claims, ...(cap ? { cap } : {}) })
    .setProtectedHeader({ alg: signingAlgorithm, kid, typ: 'at+jwt' })
    .setIssuer(input.issuer)
    .setSubject(input.subject)
    .setAudience(input.audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + Math.min(input.lifetime ?? maxLifetime, maxLifetime))
    .setJti(randomUUID())
    .sign(key)
}

export type Verifier = (token: string) => Promise<AccessToken>

const maxTokenLength = 16 * 1024
const maxCached = 10_000

/** Verifies tokens of our own issuer for one audience. A token that was verified before costs a look-up until it expires. */
export function createVerifier(keyring: Keyring, issuer: string, audience: string, now: () => Date): Verifier {
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
    const verified = await verify(keyring, issuer, audience, token, now())
    known.set(token, verified)
    if (known.size > maxCached) known.delete(known.keys().next().value!)
    return verified
  }
}

async function verify(
  keyring: Keyring,
  issuer: string,
  audience: string,
  token: string,
  now: Date,
): Promise<AccessToken> {
  if (token.length > maxTokenLength) throw unauthenticated('the token is too long')
  try {
    const { payload } = await jwtVerify(
      token,
      (header) => {
        const key = header.kid === undefined ? undefined : keyring.verifier(header.kid)
        if (!key) throw new errors.JWKSNoMatchingKey()
        return key
      },
      {
        issuer,
        audience,
        algorithms: [signingAlgorithm],
        typ: 'at+jwt',
        currentDate: now,
        requiredClaims: ['sub', 'iat', 'exp'],
      },
    )
    const { sub: subject } = payload
    if (typeof subject !== 'string' || !isUid(subject)) throw unauthenticated('the subject of the token is not a uid')
    return {
      subject,
      audience: [payload.aud ?? []].flat(),
      issuedAt: payload.iat!,
      expiry: payload.exp!,
      narrowing: payload.cap === undefined ? undefined : readNarrowing(payload.cap),
    }
  } catch (error) {
    throw explain(error)
  }
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

function explain(error: unknown): Error {
  if (error instanceof errors.JWTExpired) return unauthenticated('the token has expired', error)
  if (error instanceof errors.JWTClaimValidationFailed) {
    const reason =
      error.claim === 'aud' ? 'the token was issued for another audience' : `the token's ${error.claim} is not accepted`
    return unauthenticated(reason, error)
  }
  if (error instanceof errors.JOSEError || error instanceof TypeError) {
    return unauthenticated('the token is not one that this server issued', error)
  }
  return error instanceof Error ? error : new Error(String(error))
}
