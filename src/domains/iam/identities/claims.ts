import { RE2JS } from 're2js'
import type { ClaimMatch } from './identities.model.ts'
import { canonicalIssuer } from './people.ts'

/** How one claim of a token compares with what an identity wants of it. Texts are for people. */
export type ClaimCheck = { claim: string; wanted: string; got: string; matches: boolean }

type Wanted = { exact: string | undefined; pattern: string | undefined }

/**
 * Compares a token's claims with those that an identity matches, one entry for each that it names. Exact means equal
 * byte for byte; a pattern must match the whole text. Of several audiences, or of a claim that is a list, any one counts.
 * `defaultAudiences` are accepted when the identity names none.
 */
export function matchClaims(
  match: ClaimMatch,
  claims: Record<string, unknown>,
  defaultAudiences: readonly string[],
): ClaimCheck[] {
  const audience =
    match.audience || match.audiencePattern
      ? check('aud', { exact: match.audience, pattern: match.audiencePattern }, claims.aud)
      : anyOf('aud', defaultAudiences, claims.aud)
  return [
    checkIssuer(match, claims.iss),
    check('sub', { exact: match.subject, pattern: match.subjectPattern }, claims.sub),
    audience,
    ...Object.entries(match.claims ?? {}).map(([claim, exact]) => {
      return check(claim, { exact, pattern: undefined }, ownClaim(claims, claim))
    }),
    ...Object.entries(match.claimPatterns ?? {}).map(([claim, pattern]) => {
      return check(claim, { exact: undefined, pattern }, ownClaim(claims, claim))
    }),
  ]
}

/** Whether the identity takes the word of this issuer at all, whatever else the token says. */
export function trustsIssuer(match: ClaimMatch, issuer: string): boolean {
  return checkIssuer(match, issuer).matches
}

function checkIssuer({ issuer, issuerPattern }: ClaimMatch, value: unknown): ClaimCheck {
  return check('iss', { exact: issuer && canonicalIssuer(issuer), pattern: issuerPattern }, value)
}

function ownClaim(claims: Record<string, unknown>, claim: string): unknown {
  return Object.hasOwn(claims, claim) ? claims[claim] : undefined
}

function check(claim: string, { exact, pattern }: Wanted, value: unknown): ClaimCheck {
  const texts = textsOf(value)
  const wanted = exact !== undefined && exact !== '' ? exact : `pattern ${pattern ?? ''}`
  const matches = exact !== undefined && exact !== '' ? texts.includes(exact) : anyMatchesWhole(pattern ?? '', texts)
  return { claim, wanted, got: texts.join(', '), matches }
}

function anyOf(claim: string, accepted: readonly string[], value: unknown): ClaimCheck {
  const texts = textsOf(value)
  const matches = texts.some((text) => accepted.includes(text))
  return { claim, wanted: accepted.join(' or '), got: texts.join(', '), matches }
}

/** Numbers and booleans compare by their JSON text; objects, and numbers that JSON cannot tell from others, never match. */
function textsOf(value: unknown): string[] {
  const values = Array.isArray(value) ? (value as unknown[]) : [value]
  return values.flatMap((one) => {
    if (typeof one === 'string') return [one]
    if (typeof one === 'number' && (!Number.isFinite(one) || Math.abs(one) > Number.MAX_SAFE_INTEGER)) return []
    return typeof one === 'number' || typeof one === 'boolean' ? [JSON.stringify(one)] : []
  })
}

/** An empty pattern matches nothing, so that a missing one can never let somebody in. */
function anyMatchesWhole(pattern: string, texts: readonly string[]): boolean {
  if (pattern === '') return false
  try {
    // Once for all the texts, since this takes longer than to match one of them.
    const compiled = RE2JS.compile(pattern)
    return texts.some((text) => compiled.matches(text))
  } catch {
    return false
  }
}
