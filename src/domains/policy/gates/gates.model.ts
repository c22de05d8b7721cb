import type { DigestException, Rule, RuleCache } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** What happens to what does not pass: nothing, it is told of, or it is refused. */
export type Mode = 'OFF' | 'DRY_RUN' | 'ENFORCE'
export type Severity = 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL'

/** Treatment of vulnerabilities of unknown severity by a least severity. */
export type UnknownSeverity = 'COUNTED_AS_HIGH' | 'NOT_COUNTED'

/** `leastSeverity` is empty for all, what nobody has judged too. The names are those of the contract. */
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

/** Each kind of rule with what it says; a gate has one. */
export type RulesByKind = {
  vulnerabilities: VulnerabilityRule
  endOfLife: object
  cooldown: CooldownRule
  supportWindow: SupportWindowRule
}
export type Kind = keyof RulesByKind
export type GateRule = { [K in Kind]: { kind: K } & RulesByKind[K] }[Kind]

/** An admission policy: what images that are pulled at a scope have to fulfill. */
export type Gate = Rule & {
  name: string
  mode: Mode
  rule: GateRule
  /** An image that was pulled in so many days before passes; 0 for none. */
  exemptPulledDays: number
}

/** A rule about vulnerabilities as a caller writes it: an update without `unknownSeverity` keeps the value of the gate. */
export type VulnerabilityText = Omit<VulnerabilityRule, 'unknownSeverity'> & {
  unknownSeverity: UnknownSeverity | undefined
}

/** What can be said of a gate, each kind of rule by itself. */
export type GateText = Pick<Gate, 'name' | 'mode' | 'exemptPulledDays'> & {
  [K in Exclude<Kind, 'vulnerabilities'>]: RulesByKind[K] | undefined
} & { vulnerabilities: VulnerabilityText | undefined }

/**
 * `count` is of vulnerabilities; `pending`: something is not known yet, and may be later. `unknownSeverity`: findings of unknown
 * severity that the gate does not count.
 */
export type Verdict = {
  denied: boolean
  reason: string
  count: number
  pending: boolean
  unknownSeverity: number
}

/** The gates of organizations that are not off, and recent verdicts. */
export type GateCache = RuleCache<Gate> & {
  /** The verdict of a moment ago, or a new one. The key has all that the verdict follows from. */
  verdict(key: string, judge: () => Promise<Verdict>): Promise<Verdict>
}

export const aGate = kindOf<Gate>('gate')
export const aGateException = kindOf<DigestException>('gate-exception')

export const gateType = 'registry.pinfold.dev/Gate'
export const gateExceptionType = 'registry.pinfold.dev/GateException'

/** What a client may set and change. */
export const gateFields = {
  name: { column: 'name', update: true, required: true, pattern: /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/ },
  mode: { column: 'mode', update: true },
  vulnerabilities: { column: 'rule', update: true },
  endOfLife: { column: 'rule', update: true },
  cooldown: { column: 'rule', update: true },
  supportWindow: { column: 'rule', update: true },
  exemptPulledDays: { column: 'exempt_pulled_days', update: true },
} as const satisfies Fields<GateText>

/** What a rule says where nothing is said of it. */
export const anyVulnerability: VulnerabilityRule = {
  ...{ leastSeverity: '', onlyFixable: false, onlyExploited: false, afterDays: 0, unknown: 'PASS' },
  unknownSeverity: 'COUNTED_AS_HIGH',
}

export const kinds: readonly Kind[] = ['vulnerabilities', 'endOfLife', 'cooldown', 'supportWindow']
export const maxDays = 3650
export const maxMonths = 120
export const maxExemptDays = 90
export const maxExceptionDays = 90
/** How many an organization may have. */
export const mostGates = 50

/** `since` says from when on it does not pass; without it, it never did. */
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
