// Tokens of other issuers. A token is parsed first, and then verified with keys that the server has fetched from the issuer.
import { compactVerify, type JSONWebKeySet, type JWK } from 'jose'
import { canonicalIssuer } from '#domains/iam/identities/people.ts'
import { type AppError, unauthenticated } from '#lib/errors.ts'
import { parseClaims } from '#lib/json/claims.ts'

export type OutsideToken = {
  text: string
  /** Issuer of the token. The old spelling of one large issuer is completed with its scheme. */
  issuer: string
  subject: string
  audience: readonly string[]
  alg: string
  kid: string | undefined
  claims: Record<string, unknown>
}

const maxLength = 16 * 1024
/** Allowed difference between the clocks of an issuer and this server, in seconds. */
const leewaySeconds = 60
const maxLifetimeSeconds = 366 * 24 * 60 * 60
/** Most keys that are tried for one token. Only a token without a key ID can match several keys. */
const maxTried = 5

const algorithms: Record<string, { kty: string; crv?: string }> = {
  RS256: { kty: 'RSA' },
  RS384: { kty: 'RSA' },
  RS512: { kty: 'RSA' },
  PS256: { kty: 'RSA' },
  PS384: { kty: 'RSA' },
  PS512: { kty: 'RSA' },
  ES256: { kty: 'EC', crv: 'P-256' },
  ES384: { kty: 'EC', crv: 'P-384' },
  ES512: { kty: 'EC', crv: 'P-521' },
  EdDSA: { kty: 'OKP', crv: 'Ed25519' },
  Ed25519: { kty: 'OKP', crv: 'Ed25519' },
}
/** Header members that are refused. A token could use them to provide its own key, or to change how it is decoded. */
const refusedHeaders = ['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'enc', 'cty']

/** Error for a refused token. The message is the same for every reason; the reason is only in the log. */
export function refused(cause: string): AppError {
  return unauthenticated(
    'the token is not accepted; check its issuer, audience, signature and expiry',
    new Error(cause),
  )
}

/** Allowed `typ` of a kind of tokens, and whether a token must have a subject. */
export type TokenShape = { typ: RegExp; subject: 'required' | 'optional' }
const anyToken: TokenShape = { typ: /^(?:application\/)?(?:(?:at\+)?jwt|jose)$/i, subject: 'required' }

/** Parses a compact JWT without verifying its signature. Throws UNAUTHENTICATED with the same message for every reason. */
export function readOutsideToken(text: string, shape: TokenShape = anyToken): OutsideToken {
  if (text.length > maxLength) throw refused('too long')
  const parts = text.split('.')
  if (parts.length !== 3 || !parts.every((part) => isCanonical(part))) throw refused('not a compact JWT')
  const header = readPart(parts[0]!)
  const claims = readPart(parts[1]!)

  const { alg, kid, typ } = header
  if (typeof alg !== 'string' || !Object.hasOwn(algorithms, alg)) throw refused('algorithm')
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > 512)) throw refused('kid')
  if (typ !== undefined && (typeof typ !== 'string' || !shape.typ.test(typ))) throw refused('typ')
  if (refusedHeaders.some((name) => Object.hasOwn(header, name))) throw refused('header')

  const { iss, aud } = claims
  const sub = claims.sub ?? (shape.subject === 'optional' ? '-' : undefined)
  const names = requireNames(iss, sub)
  const audience = typeof aud === 'string' ? [aud] : aud
  if (!Array.isArray(audience) || audience.length === 0 || !audience.every((one) => typeof one === 'string')) {
    throw refused('aud')
  }
  const issuer = canonicalIssuer(names.issuer)
  return {
    text,
    issuer,
    subject: names.subject,
    audience: audience as string[],
    alg,
    kid,
    claims: { ...claims, iss: issuer },
  }
}

/**
 * True if the part has the only valid base64url encoding of its bytes. Otherwise one signed token could have several spellings.
 */
function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part
}

const maxName = 2048

/** Returns issuer and subject. Throws UNAUTHENTICATED if one of them is missing, too long, or not printable. */
export function requireNames(issuer: unknown, subject: unknown): { issuer: string; subject: string } {
  if (isLong(issuer) || isLong(subject)) throw tooLongNames()
  if (!isName(issuer)) throw refused('iss')
  if (!isName(subject)) throw refused('sub')
  return { issuer, subject }
}

function isLong(value: unknown): boolean {
  return typeof value === 'string' && value.length > maxName
}

/** Error for a too long name. The message has the reason, so that the holder of the token can report it to the issuer. */
export function tooLongNames(): AppError {
  return unauthenticated('the issuer, subject or audience of the token is too long')
}

/**
 * True for a text without control characters and with valid Unicode. Such a text can be hashed, logged and put into our own
 * tokens.
 */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && /^\P{Cc}+$/u.test(value)
}

function readPart(part: string): Record<string, unknown> {
  try {
    const value = parseClaims(
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(part, 'base64url')),
    )
    if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new SyntaxError('not an object')
    return value as Record<string, unknown>
  } catch (error) {
    throw unauthenticated('the token is not accepted; check its issuer, audience, signature and expiry', error)
  }
}

/** Verifies the signature. Throws UNAUTHENTICATED unless one of the keys has signed the token. */
export async function verifyOutsideToken(token: OutsideToken, keys: JSONWebKeySet): Promise<void> {
  const fitting = keys.keys.filter((key) => fits(key, token)).slice(0, maxTried)
  for (const key of fitting) {
    try {
      await compactVerify(token.text, key, { algorithms: [token.alg] })
      return
    } catch {
      // The signature may match the next key.
    }
  }
  throw refused(`no key matches the signature (${fitting.length} tried)`)
}

function fits(key: JWK, { alg, kid }: OutsideToken): boolean {
  const wanted = algorithms[alg]!
  if (kid !== undefined && key.kid !== undefined && key.kid !== kid) return false
  if (key.use !== undefined && key.use !== 'sig') return false
  return key.kty === wanted.kty && (wanted.crv === undefined || key.crv === wanted.crv) && (key.alg ?? alg) === alg
}

/** Throws UNAUTHENTICATED if the token has expired, is not valid yet, or is valid for too long. */
export function checkTimes({ claims: { exp, nbf, iat } }: OutsideToken, time: Date): void {
  const now = time.getTime() / 1000
  if (![exp, nbf, iat].every((one) => one === undefined || Number.isFinite(one)))
    throw refused('a time is not a number')
  if (typeof exp !== 'number' || exp <= now - leewaySeconds) throw refused('expired')
  if (exp > now + maxLifetimeSeconds) throw refused('expires too late')
  if (typeof nbf === 'number' && nbf > now + leewaySeconds) throw refused('not valid yet')
  if (typeof iat === 'number' && iat > now + leewaySeconds) throw refused('issued in the future')
}
