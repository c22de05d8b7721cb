import { exceptionTable, ruleTable } from '#domains/rules/rules.store.ts'
import type { Gate, GateRule, Mode, UnknownSeverity } from './gates.model.ts'

type Row = Omit<Gate, 'rule' | 'mode'> & { rule: GateRule; mode: string; unknownSeverity: string }

export const gateTable = ruleTable<Gate>({
  table: 'gates',
  members: ['name', 'mode', 'rule', 'unknownSeverity', 'exemptPulledDays'],
  json: ['rule'],
  toRow: (gate) => ({ ...gate, ...ruleColumns(gate.rule) }),
  fromRow: ({ rule, mode, exemptPulledDays, unknownSeverity, ...row }: Row) => ({
    ...row,
    mode: mode as Mode,
    rule: rule.kind === 'vulnerabilities' ? { ...rule, unknownSeverity: unknownSeverity as UnknownSeverity } : rule,
    exemptPulledDays: Number(exemptPulledDays),
  }),
})

export const gateExceptionTable = exceptionTable('gate_exceptions')

/** Columns of a rule. The severity has its own column, because earlier releases of the server would drop it from the JSON. */
function ruleColumns(rule: GateRule): { rule: object; unknownSeverity: UnknownSeverity } {
  if (rule.kind !== 'vulnerabilities') return { rule, unknownSeverity: 'NOT_COUNTED' }
  const { unknownSeverity, ...rest } = rule
  return { rule: rest, unknownSeverity }
}
