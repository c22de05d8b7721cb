// Compares the claims of a token with an identity like a token exchange, but without verifying signature and header.
import { type ClaimCheck, matchClaims } from './claims.ts'
import type { Relationship } from './identities.model.ts'
import { canonicalIssuer } from './people.ts'

type Claims = Record<string, unknown>

/** Times in seconds, the same as in `issuer/outside-token.ts`. */
const leeway = 60
const maxLifetime = 366 * 24 * 60 * 60

/**
 * Results for all conditions of the identity. If all match, a token with a valid signature can be exchanged. If the identity
 * names no audience, the audiences `ours` are accepted. Undefined for an identity of AWS or of a service, for which claims are
 * not sufficient.
 */
export function checkToken(
  { claimMatch, staticKeys }: Relationship,
  token: Claims,
  ours: readonly string[],
  now: Date,
): ClaimCheck[] | undefined {
  const { iss } = token
  // One large issuer sometimes omits the scheme, so the issuer is converted to its canonical form.
  const claims = typeof iss === 'string' ? { ...token, iss: canonicalIssuer(iss) } : token
  if (claimMatch) return [...matchClaims(claimMatch, claims, ours), ...timeChecks(claims, now)]
  if (!staticKeys) return undefined
  const { issuer = '', subject = '', audiences = [], expirationTime = '' } = staticKeys
  const keys = {
    claim: 'keys',
    wanted: 'not expired',
    got: `expires at ${expirationTime}`,
    matches: Date.parse(expirationTime) > now.getTime(),
  }
  const matched = matchClaims({ issuer, subject }, claims, audiences.length > 0 ? audiences : ours)
  return [...matched, keys, ...timeChecks(claims, now)]
}

function timeChecks({ exp, nbf, iat }: Claims, time: Date): ClaimCheck[] {
  const at = time.toISOString()
  const now = time.getTime() / 1000
  const past = (claim: string, value: unknown): ClaimCheck[] => {
    if (value === undefined) return []
    const matches = isNumber(value) && value <= now + leeway
    return [{ claim, wanted: `not after ${at}`, got: timeText(value), matches }]
  }
  const alive = isNumber(exp) && exp > now - leeway && exp <= now + maxLifetime
  const expiry = {
    claim: 'exp',
    wanted: `after ${at}, within ${maxLifetime / 86_400} days`,
    got: timeText(exp),
    matches: alive,
  }
  return [expiry, ...past('nbf', nbf), ...past('iat', iat)]
}

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

function timeText(value: unknown): string {
  if (value === undefined) return ''
  const date = new Date(isNumber(value) ? value * 1000 : Number.NaN)
  return Number.isNaN(date.getTime()) ? 'not a time' : date.toISOString()
}
