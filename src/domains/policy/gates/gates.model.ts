import type { DigestException, Rule, RuleCache } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Effect on an image that does not pass: none, only reported, or refused. */
export type Mode = 'OFF' | 'DRY_RUN' | 'ENFORCE'
export type Severity = 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL'

/** Treatment of vulnerabilities of unknown severity by a least severity. */
export type UnknownSeverity = 'COUNTED_AS_HIGH' | 'NOT_COUNTED'

/**
 * An empty `leastSeverity` counts all vulnerabilities, including those of unknown severity. The names are those of the contract.
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

/** Settings of each kind of rule. A gate has one rule. */
export type RulesByKind = {
  vulnerabilities: VulnerabilityRule
  endOfLife: object
  cooldown: CooldownRule
  supportWindow: SupportWindowRule
}
export type Kind = keyof RulesByKind
export type GateRule = { [K in Kind]: { kind: K } & RulesByKind[K] }[Kind]

/** An admission policy: the conditions for images that are pulled at a scope. */
export type Gate = Rule & {
  name: string
  mode: Mode
  rule: GateRule
  /** Days in which an earlier pull of the image exempts it. 0 for no exemption. */
  exemptPulledDays: number
}

/** Vulnerability rule in a request. An update without `unknownSeverity` keeps the value of the gate. */
export type VulnerabilityText = Omit<VulnerabilityRule, 'unknownSeverity'> & {
  unknownSeverity: UnknownSeverity | undefined
}

/** Settings of a gate in a request, with a member for each kind of rule. */
export type GateText = Pick<Gate, 'name' | 'mode' | 'exemptPulledDays'> & {
  [K in Exclude<Kind, 'vulnerabilities'>]: RulesByKind[K] | undefined
} & { vulnerabilities: VulnerabilityText | undefined }

/**
 * `count` is a number of vulnerabilities. `pending` is true if information on the image is still missing and may come later.
 * `unknownSeverity` is the number of findings of unknown severity that the gate does not count.
 */
export type Verdict = {
  denied: boolean
  reason: string
  count: number
  pending: boolean
  unknownSeverity: number
}

/** Gates of organizations in a mode other than OFF, and recent verdicts. */
export type GateCache = RuleCache<Gate> & {
  /** Returns a recent verdict or computes one. The key has all inputs of the verdict. */
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
/** Limit on the gates of an organization. */
export const mostGates = 50

/** `since` returns the time from which the image does not pass. Missing if it never passed. */
export type Judged = Verdict & { since?: () => string | Promise<string> }

const none = { denied: false, count: 0, pending: false, unknownSeverity: 0 }

export const passes = (reason: string): Judged => ({ ...none, reason })
export const waits = (reason: string): Judged => ({ ...none, reason, pending: true })
export const fails = (
  reason: string,
  more: Partial<Pick<Judged, 'count' | 'since' | 'unknownSeverity'>> = {},
): Judged => {
  return { ...none, denied: true, reason, ...more }
}

export const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`
