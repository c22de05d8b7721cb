// Draft of an admission policy in its form, and the request that it becomes.
import type { Gate } from '../../data/types.ts'

export const gateKinds = ['vulnerabilities', 'endOfLife', 'cooldown', 'supportWindow'] as const
export type GateKind = (typeof gateKinds)[number]

export type Draft = {
  name: string
  kind: GateKind
  mode: 'DRY_RUN' | 'ENFORCE' | 'OFF'
  leastSeverity: string
  unknownSeverity: string
  onlyFixable: boolean
  onlyExploited: boolean
  afterDays: number
  unknown: 'PASS' | 'DENY'
  minAgeDays: number
  minMonthsLeft: number
  exemptPulledDays: number
}

/** A gate of the API has a different field for each kind of condition. */
export const kindOf = (gate: Partial<Gate>): GateKind =>
  gateKinds.find((kind) => gate[kind] !== undefined) ?? 'vulnerabilities'

/** Draft of a policy. A new policy denies critical vulnerabilities, as a dry run. */
export function draftOf(gate: Partial<Gate> = {}): Draft {
  const { vulnerabilities, mode = 'DRY_RUN' } = gate
  return {
    name: gate.name ?? 'no-critical-findings',
    kind: kindOf(gate),
    mode: mode === 'MODE_UNSPECIFIED' ? 'DRY_RUN' : mode,
    leastSeverity: vulnerabilities?.leastSeverity ?? 'CRITICAL',
    unknownSeverity: vulnerabilities?.unknownSeverity ?? 'COUNTED_AS_HIGH',
    onlyFixable: vulnerabilities?.onlyFixable ?? false,
    onlyExploited: vulnerabilities?.onlyExploited ?? false,
    afterDays: vulnerabilities?.afterDays ?? 0,
    unknown: vulnerabilities?.unknown === 'DENY' ? 'DENY' : 'PASS',
    minAgeDays: gate.cooldown?.minAgeDays ?? 3,
    minMonthsLeft: gate.supportWindow?.minMonthsLeft ?? 3,
    exemptPulledDays: gate.exemptPulledDays ?? 0,
  }
}

/** Body of a request. It has only the fields of the chosen kind. */
export function gateBody(draft: Draft): object {
  const { name, mode, kind, leastSeverity, unknownSeverity, onlyFixable, onlyExploited, afterDays, unknown } = draft
  const rules: Record<GateKind, object> = {
    vulnerabilities: { leastSeverity, unknownSeverity, onlyFixable, onlyExploited, afterDays, unknown },
    endOfLife: {},
    cooldown: { minAgeDays: draft.minAgeDays },
    supportWindow: { minMonthsLeft: draft.minMonthsLeft },
  }
  return { name, mode, exemptPulledDays: kind === 'cooldown' ? 0 : draft.exemptPulledDays, [kind]: rules[kind] }
}
