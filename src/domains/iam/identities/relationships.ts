// Validation of the four kinds of relationships. A relationship defines which outside tokens can act as an identity.
import { pushTokenIssuer } from '#lib/cause.ts'
import { readKeySetText } from '#lib/crypto/key-set.ts'
import type { FieldViolation } from '#lib/errors.ts'
import { limitsFor, type PatternLimits, patterns, storedProblem } from '#lib/patterns/patterns.ts'
import {
  type AwsIdentity,
  type ClaimMatch,
  type Identity,
  type Relationship,
  relationshipKind,
  type StaticKeys,
} from './identities.model.ts'
import { canonicalIssuer } from './people.ts'

/**
 * Claim length for which patterns are designed. Longer claims are allowed, but a claim that is too long for its pattern does not
 * match (`claims.ts`).
 */
const usualClaimLength = 128
export const claimLimits = limitsFor(usualClaimLength, { bytes: 1024, allSteps: 1100, allCompile: 4000 })
/** The pattern of an issuer has lower limits. It is matched before the signature is verified, since the issuer has the keys. */
const issuerLimits: PatternLimits = { ...claimLimits, steps: 300, allSteps: 300 }
/**
 * Limit for matching all patterns of one identity. The unit is the number of instructions of a pattern, multiplied by the
 * characters of the claim. Matching takes at most 2.5 ms (`bench/patterns.ts`), and happens after the signature was verified. A
 * pattern of 32 instructions, such as `repo:acme/[^:]+:ref:refs/tags/v.*`, can match up to 2,499 characters.
 */
export const mostClaimWork = 80_000
/**
 * Limit for matching the pattern of the issuer, in the same unit. This takes at most 0.6 ms, and happens before the signature is
 * verified.
 */
export const mostIssuerWork = 20_000
/** Most keys in the key set of an identity with static keys. */
const maxStaticKeys = 10
export const maxRelationshipBytes = 64 * 1024

/** If static keys have no expiration time, sets it to `life` milliseconds after the creation of the identity. */
export function withDefaults<T extends Relationship>(identity: T, createTime: string, life: number): T {
  const { staticKeys } = identity
  if (!staticKeys || staticKeys.expirationTime) return identity
  const expirationTime = new Date(Date.parse(createTime) + life).toISOString()
  return { ...identity, staticKeys: { ...staticKeys, expirationTime } }
}

/**
 * An identity can have either an exact value or a pattern for each claim. If an update adds one of the two, the other one is
 * removed.
 */
export function keepLatest<T extends Relationship>(before: Relationship, after: T): T {
  const kept = structuredClone(after)
  for (const kind of ['claimMatch', 'awsIdentity'] as const) {
    const [was = {}, is = {}]: (Record<string, unknown> | undefined)[] = [before[kind], kept[kind]]
    for (const exact of ['issuer', 'subject', 'audience', 'arn', 'userId']) {
      const pattern = `${exact}Pattern`
      if (is[exact] !== undefined && is[pattern] !== undefined) delete is[was[exact] === undefined ? pattern : exact]
    }
  }
  return kept
}

/**
 * Problems of a relationship, by field. Unchanged values of `before` are accepted even if they exceed limits that were introduced
 * later.
 */
export function checkRelationship(identity: Identity, life: number, before?: Relationship): FieldViolation[] {
  const kind = relationshipKind(identity)
  if (!kind) {
    return [
      {
        field: 'relationship',
        description: 'must be one of claim_match, static_keys, aws_identity, service_principal',
      },
    ]
  }
  if (Buffer.byteLength(JSON.stringify(identity[kind])) > maxRelationshipBytes) {
    return [{ field: 'relationship', description: `must be at most ${maxRelationshipBytes} bytes of JSON` }]
  }
  const { claimMatch, staticKeys, awsIdentity, servicePrincipal } = identity
  if (claimMatch) return checkClaimMatch(claimMatch, 'claim_match', before?.claimMatch)
  if (staticKeys) return checkStaticKeys(staticKeys, Date.parse(identity.createTime) + life, before?.staticKeys)
  if (awsIdentity) return checkAws(awsIdentity, before?.awsIdentity)
  return servicePrincipal === 0 ? [{ field: 'service_principal', description: 'must name a service' }] : []
}

/** Problems of the conditions for claims. `field` is the name of the conditions in the request. */
export function checkClaimMatch(match: ClaimMatch, field: string, before?: ClaimMatch): FieldViolation[] {
  const at = (name: string) => `${field}.${name}`
  const isSameIssuer = match.issuerPattern === before?.issuerPattern
  const others = patternsOf(match)
  const isSame = JSON.stringify(others) === JSON.stringify(before && patternsOf(before))
  const problems = [
    ...eitherOf(at('issuer'), match.issuer, match.issuerPattern),
    ...eitherOf(at('subject'), match.subject, match.subjectPattern),
    ...(isSameIssuer ? [] : problemsOf(field, { issuer_pattern: match.issuerPattern }, issuerLimits)),
    ...(isSame ? [] : problemsOf(field, others, claimLimits)),
  ]
  if (match.issuer && !isIssuerUrl(match.issuer)) {
    problems.push({ field: at('issuer'), description: 'must be an https URL without query or fragment' })
  }
  return problems
}

function checkStaticKeys(keys: StaticKeys, latest: number, before?: StaticKeys): FieldViolation[] {
  const problems: FieldViolation[] = []
  const addProblem = (name: string, description: string) => problems.push({ field: `static_keys.${name}`, description })
  if (!keys.issuer) addProblem('issuer', 'is required')
  if (keys.issuer === pushTokenIssuer) addProblem('issuer', 'is reserved for push tokens')
  if (!keys.subject) addProblem('subject', 'is required')
  // Earlier releases did not check keys, so unchanged keys are not checked.
  const keyProblem = keys.issuerKeys === before?.issuerKeys ? undefined : problemOfKeySet(keys.issuerKeys)
  if (keyProblem) addProblem('issuer_keys', keyProblem)
  if ((keys.audiences ?? []).length > 1) addProblem('audiences', 'must have at most one audience')
  if (keys.expirationTime !== before?.expirationTime && Date.parse(keys.expirationTime ?? '') > latest) {
    addProblem('expiration_time', `must not be after ${new Date(latest).toISOString()}`)
  }
  return problems
}

/** Patterns by field name, without the pattern of the issuer. */
function patternsOf({ subjectPattern, audiencePattern, claimPatterns = {} }: ClaimMatch): Named {
  const claims = Object.entries(claimPatterns).map(([claim, text]) => [`claim_patterns.${claim}`, text])
  return { subject_pattern: subjectPattern, audience_pattern: audiencePattern, ...Object.fromEntries(claims) } as Named
}

function awsPatternsOf({ arnPattern, userIdPattern }: AwsIdentity): Named {
  return { arn_pattern: arnPattern, user_id_pattern: userIdPattern }
}

/** Problem of the first stored pattern that exceeds the limits, for patterns from before the limits. Empty if there is none. */
export function storedPatternProblem({ claimMatch, awsIdentity }: Relationship): string {
  const named: [field: string, Named, PatternLimits, mostWork: number][] = [
    ['claim_match', { issuer_pattern: claimMatch?.issuerPattern }, issuerLimits, mostIssuerWork],
    ['claim_match', claimMatch ? patternsOf(claimMatch) : {}, claimLimits, mostClaimWork],
    ['aws_identity', awsIdentity ? awsPatternsOf(awsIdentity) : {}, claimLimits, mostClaimWork],
  ]
  for (const [field, some, limits, mostWork] of named) {
    for (const [name, pattern] of Object.entries(some)) {
      const problem = pattern && storedProblem(pattern, limits, mostWork)
      if (problem) return `${field}.${name} ${problem}`
    }
  }
  return ''
}

function checkAws(aws: AwsIdentity, before?: AwsIdentity): FieldViolation[] {
  const at = (name: string) => `aws_identity.${name}`
  const some = awsPatternsOf(aws)
  const isSame = JSON.stringify(some) === JSON.stringify(before && awsPatternsOf(before))
  const problems = isSame ? [] : problemsOf('aws_identity', some, claimLimits)
  if (!/^[0-9]{12}$/.test(aws.awsAccount ?? '')) {
    problems.push({ field: at('aws_account'), description: 'aws_account must match "^[0-9]{12}$"' })
  }
  if (!(aws.arn || aws.arnPattern || aws.userId || aws.userIdPattern)) {
    problems.push({ field: at('arn'), description: 'is required, unless user_id or user_id_pattern is set' })
  }
  return problems
}

function eitherOf(field: string, exact = '', asPattern = ''): FieldViolation[] {
  return exact || asPattern ? [] : [{ field, description: 'is required; set an exact value or a pattern' }]
}

type Named = Record<string, string | undefined>

function problemsOf(field: string, named: Named, limits: PatternLimits): FieldViolation[] {
  const given = Object.entries(named).flatMap(([name, text = '']) =>
    text === '' ? [] : [[`${field}.${name}`, text] as const],
  )
  return patterns.problems(given, limits)
}

/**
 * True for a valid issuer: an https URL, or an http URL of this machine. One large issuer may also be written without its scheme.
 */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(canonicalIssuer(text))
  if (url?.search !== '' || url.hash !== '' || url.username !== '') return false
  return (
    url.protocol === 'https:' || (url.protocol === 'http:' && /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname))
  )
}

function problemOfKeySet(text = ''): string | undefined {
  if (text === '') return 'is required'
  let keys: unknown
  try {
    keys = (JSON.parse(text) as { keys?: unknown } | null)?.keys
  } catch {
    return 'is not valid JSON'
  }
  if (!Array.isArray(keys)) return 'must be a JSON Web Key Set (RFC 7517)'
  if (keys.length > maxStaticKeys) return `must have at most ${maxStaticKeys} keys`
  const hasSecret = keys.some((key) => typeof key === 'object' && key !== null && ('d' in key || 'k' in key))
  if (hasSecret) return 'must have only public keys; remove the private parts'
  const isUsable = keys.length === 0 || readKeySetText(text).keys.length > 0
  return isUsable ? undefined : 'has no key that can verify a signature'
}
