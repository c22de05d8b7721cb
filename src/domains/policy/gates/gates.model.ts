import type { DigestException, Rule, RuleCache } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/**
 * Effect of a policy on an image that violates it. OFF: none. DRY_RUN: the pull is only reported. ENFORCE: the pull is refused.
 */
export type Mode = 'OFF' | 'DRY_RUN' | 'ENFORCE'
export type Severity = 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL'

/** Vulnerabilities of unknown severity can count as high, or not count, for a rule with a minimum severity. */
export type UnknownSeverity = 'COUNTED_AS_HIGH' | 'NOT_COUNTED'

/**
 * Rule on vulnerabilities, with the names of the API. With an empty `leastSeverity`, all vulnerabilities count, including those
 * of unknown severity.
 */
export type VulnerabilityRule = {
  leastSeverity: Severity | ''
  onlyFixable: boolean
  onlyExploited: boolean
  afterDays: number
  unknown: 'PASS' | 'DENY'
  unknownSeverity: UnknownSeverity
}
export type CooldownRule = { minAgeDays: number }
export type SupportWindowRule = { minMonthsLeft: number }

/** Settings of each kind of rule. A policy has exactly one rule. */
export type RulesByKind = {
  vulnerabilities: VulnerabilityRule
  endOfLife: object
  cooldown: CooldownRule
  supportWindow: SupportWindowRule
}
export type Kind = keyof RulesByKind
export type GateRule = { [K in Kind]: { kind: K } & RulesByKind[K] }[Kind]

/** An admission policy: conditions for all images that are pulled from repositories of a scope. */
export type Gate = Rule & {
  name: string
  mode: Mode
  rule: GateRule
  /**
   * An image that violates the policy is exempt if it was pulled within this number of days. With 0 there is no such exemption.
   */
  exemptPulledDays: number
}

/** Vulnerability rule in a request. If an update has no `unknownSeverity`, the policy keeps its value. */
export type VulnerabilityText = Omit<VulnerabilityRule, 'unknownSeverity'> & {
  unknownSeverity: UnknownSeverity | undefined
}

/** Settings of an admission policy in a request, with one member for each kind of rule. */
export type GateText = Pick<Gate, 'name' | 'mode' | 'exemptPulledDays'> & {
  [K in Exclude<Kind, 'vulnerabilities'>]: RulesByKind[K] | undefined
} & { vulnerabilities: VulnerabilityText | undefined }

/**
 * Result of a policy for an image. `count` is the number of vulnerabilities that count. `pending` is true if information on the
 * image is missing and may come later. `unknownSeverity` is the number of findings of unknown severity that the policy does not
 * count.
 */
export type Verdict = {
  denied: boolean
  reason: string
  count: number
  pending: boolean
  unknownSeverity: number
}

/** Cache of the admission policies of organizations, without policies in mode OFF, and of recent verdicts. */
export type GateCache = RuleCache<Gate> & {
  /** Returns a cached verdict or computes one. The key must contain everything that the verdict depends on. */
  verdict(key: string, judge: () => Promise<Verdict>): Promise<Verdict>
}

export const toGateResource = kindOf<Gate>('gate')
export const toGateExceptionResource = kindOf<DigestException>('gate-exception')

export const gateType = 'registry.pinfold.dev/Gate'
export const gateExceptionType = 'registry.pinfold.dev/GateException'

/** Fields that a client can set and change. */
export const gateFields = {
  name: { column: 'name', update: true, required: true, pattern: /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/ },
  mode: { column: 'mode', update: true },
  vulnerabilities: { column: 'rule', update: true },
  endOfLife: { column: 'rule', update: true },
  cooldown: { column: 'rule', update: true },
  supportWindow: { column: 'rule', update: true },
  exemptPulledDays: { column: 'exempt_pulled_days', update: true },
} as const satisfies Fields<GateText>

/** Defaults of a vulnerability rule. */
export const anyVulnerability: VulnerabilityRule = {
  ...{ leastSeverity: '', onlyFixable: false, onlyExploited: false, afterDays: 0, unknown: 'PASS' },
  unknownSeverity: 'COUNTED_AS_HIGH',
}

export const kinds: readonly Kind[] = ['vulnerabilities', 'endOfLife', 'cooldown', 'supportWindow']
export const maxDays = 3650
export const maxMonths = 120
export const maxExemptDays = 90
export const maxExceptionDays = 90
/** Most admission policies of an organization. */
export const mostGates = 50

/**
 * Verdict of a rule. `since` returns the time from which the image violates the rule. It is missing if the image never complied.
 */
export type DatedVerdict = Verdict & { since?: () => string | Promise<string> }

const none = { denied: false, count: 0, pending: false, unknownSeverity: 0 }

export const passes = (reason: string): DatedVerdict => ({ ...none, reason })
export const waits = (reason: string): DatedVerdict => ({ ...none, reason, pending: true })
export const fails = (
  reason: string,
  more: Partial<Pick<DatedVerdict, 'count' | 'since' | 'unknownSeverity'>> = {},
): DatedVerdict => {
  return { ...none, denied: true, reason, ...more }
}

export const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`
