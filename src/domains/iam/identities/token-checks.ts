// What an exchange would say of a token, claim by claim, without the token: its signature and its header are not looked at.
import { type ClaimCheck, matchClaims } from './claims.ts'
import type { Relationship } from './identities.model.ts'
import { canonicalIssuer } from './people.ts'

type Claims = Record<string, unknown>

/** As `issuer/outside-token.ts` has them, in seconds. */
const leeway = 60
const maxLifetime = 366 * 24 * 60 * 60

/**
 * One entry for each thing that the token must have for the identity; it would be exchanged when all match and the signature
 * is good. `ours` are the audiences that count when the identity names none. `undefined` for an identity that is shown by
 * something else than the claims of a token.
 */
export function checkToken(
  { claimMatch, staticKeys }: Relationship,
  token: Claims,
  ours: readonly string[],
  now: Date,
): ClaimCheck[] | undefined {
  const { iss } = token
  // One large issuer still writes its name without a scheme.
  const claims = typeof iss === 'string' ? { ...token, iss: canonicalIssuer(iss) } : token
  if (claimMatch) return [...matchClaims(claimMatch, claims, ours), ...timeChecks(claims, now)]
  if (!staticKeys) return undefined
  const { issuer = '', subject = '', audiences = [], expirationTime = '' } = staticKeys
  const keys = {
    claim: 'keys',
    wanted: 'not expired',
    got: `until ${expirationTime}`,
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
