import { findClaim } from '#lib/json/claims.ts'
import { costOf, overLimit, patterns } from '#lib/patterns/patterns.ts'
import type { AwsIdentity, ClaimMatch } from './identities.model.ts'
import { canonicalIssuer } from './people.ts'
import { claimLimits, mostClaimWork, mostIssuerWork } from './relationships.ts'

/** Result of comparing one claim of a token with the condition of an identity. `wanted` and `got` are texts to show. */
export type ClaimCheck = { claim: string; wanted: string; got: string; matches: boolean }

type Wanted = { exact: string | undefined; pattern: string | undefined }

/** Limit for compiling patterns, in nominal microseconds. Identities that were stored before the current limits may exceed it. */
const mostCompile = 10_000

/** Callback with the name of a claim that was not compared. The claim was too long for its pattern, or an earlier claim was. */
export type OnTooLong = (claim: string) => void

type Budget = { work: number; compile: number; onTooLong: OnTooLong | undefined }

const claimBudget = (onTooLong?: OnTooLong): Budget => ({ work: mostClaimWork, compile: mostCompile, onTooLong })
const issuerBudget = (onTooLong?: OnTooLong): Budget => ({ work: mostIssuerWork, compile: mostCompile, onTooLong })

/**
 * Compares the claims of a token with the conditions of an identity. Returns one result for each condition. An exact value must
 * equal the claim, and a pattern must match the whole claim. If the claim is a list, one matching value is sufficient. If the
 * identity has no condition for the audience, `defaultAudiences` are accepted.
 */
export function matchClaims(
  match: ClaimMatch,
  claims: Record<string, unknown>,
  defaultAudiences: readonly string[],
  onTooLong?: OnTooLong,
): ClaimCheck[] {
  const budget = claimBudget(onTooLong)
  const check = (claim: string, wanted: Wanted, value: unknown) => compare(claim, wanted, value, budget)
  const audience =
    match.audience || match.audiencePattern
      ? check('aud', { exact: match.audience, pattern: match.audiencePattern }, claims.aud)
      : anyOf('aud', defaultAudiences, claims.aud)
  return [
    check('iss', issuerOf(match), claims.iss),
    check('sub', { exact: match.subject, pattern: match.subjectPattern }, claims.sub),
    audience,
    ...Object.entries(match.claims ?? {}).map(([claim, exact]) => {
      return check(claim, { exact, pattern: undefined }, findClaim(claims, claim))
    }),
    ...Object.entries(match.claimPatterns ?? {}).map(([claim, pattern]) => {
      return check(claim, { exact: undefined, pattern }, findClaim(claims, claim))
    }),
  ]
}

/** True if the issuer meets the condition of the identity. Other claims are not compared. */
export function trustsIssuer(match: ClaimMatch, issuer: string, onTooLong?: OnTooLong): boolean {
  return compare('iss', issuerOf(match), issuer, issuerBudget(onTooLong)).matches
}

/** True if the identity has a condition for the audience and one of these audiences meets it. Other claims are not compared. */
export function namesAudience({ audience, audiencePattern }: ClaimMatch, audiences: readonly string[]): boolean {
  if (!audience && !audiencePattern) return false
  const wanted = { exact: audience, pattern: audiencePattern }
  return compare('aud', wanted, audiences, issuerBudget()).matches
}

/**
 * True if the AWS caller has the account of the identity and meets all conditions for ARN and user ID. False if the identity has
 * no such condition.
 */
export function matchAwsCaller(
  aws: AwsIdentity,
  { account, arn, userId }: { account: string; arn: string; userId: string },
  onTooLong?: OnTooLong,
): boolean {
  const budget = claimBudget(onTooLong)
  const wanted: [name: string, Wanted, value: string][] = [
    ['arn', { exact: aws.arn, pattern: aws.arnPattern }, arn],
    ['user id', { exact: aws.userId, pattern: aws.userIdPattern }, userId],
  ]
  const named = wanted.filter(([, { exact, pattern }]) => exact || pattern)
  // Without a condition for ARN or user ID, every user of the AWS account would match.
  return (
    aws.awsAccount === account &&
    named.length > 0 &&
    named.every(([name, want, value]) => compare(name, want, value, budget).matches)
  )
}

function issuerOf({ issuer, issuerPattern }: ClaimMatch): Wanted {
  return { exact: issuer && canonicalIssuer(issuer), pattern: issuerPattern }
}

function compare(claim: string, { exact, pattern }: Wanted, value: unknown, budget: Budget): ClaimCheck {
  const texts = textsOf(value)
  const got = texts.join(', ')
  if (exact !== undefined && exact !== '') return { claim, wanted: exact, got, matches: texts.includes(exact) }
  const matches = anyMatchesWhole(pattern ?? '', texts, budget)
  if (matches === 'too long') budget.onTooLong?.(claim)
  const limit =
    matches !== 'too long' && pattern && overLimit(pattern, claimLimits)
      ? ' (too large: above the limits of patterns)'
      : ''
  const shorter = matches === 'too long' ? ' (the claim is too long for this pattern)' : ''
  const wanted = `pattern ${pattern ?? ''}${limit}${shorter}`
  return { claim, wanted, got, matches: matches === true }
}

function anyOf(claim: string, accepted: readonly string[], value: unknown): ClaimCheck {
  const texts = textsOf(value)
  const matches = texts.some((text) => accepted.includes(text))
  return { claim, wanted: accepted.join(' or '), got: texts.join(', '), matches }
}

/**
 * Values of a claim as texts. Numbers and booleans become JSON. Objects and numbers that lose precision are left out, so they
 * never match.
 */
function textsOf(value: unknown): string[] {
  const values = Array.isArray(value) ? (value as unknown[]) : [value]
  return values.flatMap((one) => {
    if (typeof one === 'string') return [one]
    if (typeof one === 'bigint') return [String(one)]
    if (typeof one === 'number' && (!Number.isFinite(one) || Math.abs(one) > Number.MAX_SAFE_INTEGER)) return []
    return typeof one === 'number' || typeof one === 'boolean' ? [JSON.stringify(one)] : []
  })
}

/**
 * True if the pattern matches one of the texts as a whole. An empty pattern matches nothing, so that a missing pattern never
 * accepts a token.
 */
function anyMatchesWhole(pattern: string, texts: readonly string[], budget: Budget): boolean | 'too long' {
  if (pattern === '') return false
  if (budget.compile < 0 || budget.work < 0) return 'too long'
  const cost = costOf(pattern)
  if (!cost) return false
  budget.compile -= cost.compile
  // Once a pattern has exceeded the limit, later patterns are not compiled or matched.
  if (budget.compile < 0) return 'too long'
  const size = patterns.sizeOf(pattern)
  if (size === undefined) return false
  budget.work -= size * texts.reduce((sum, text) => sum + text.length + 1, 0)
  if (budget.work < 0) return 'too long'
  return texts.some((text) => patterns.match(pattern, text) === true)
}
