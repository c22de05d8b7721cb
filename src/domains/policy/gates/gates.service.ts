// Admission policies: validation and changes. Callers must have checked permissions before.
import { exceptionKind } from '#domains/rules/exceptions.service.ts'
import { createRuleCache, type RuleSource } from '#domains/rules/rule-cache.service.ts'
import type { RuleKind } from '#domains/rules/rules.service.ts'
import { createSharedResults } from '#lib/caches/short-lived-cache.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import { type Patch, snakeCase, violationsOf } from '#lib/fields.ts'
import {
  anyVulnerability,
  type Gate,
  type GateCache,
  type GateRule,
  type GateText,
  gateExceptionType,
  gateFields,
  gateType,
  kinds,
  maxDays,
  maxExceptionDays,
  maxExemptDays,
  maxMonths,
  mostGates,
  toGateExceptionResource,
  toGateResource,
  type UnknownSeverity,
  type Verdict,
} from './gates.model.ts'
import { gateExceptionTable, gateTable } from './gates.store.ts'

export const gateKind: RuleKind<Gate, GateText> = {
  type: gateType,
  event: 'control.scanning.gate',
  resource: toGateResource,
  table: gateTable,
  quota: { name: 'gates', most: mostGates },
  fields: gateFields,
  textOf({ name, mode, rule, exemptPulledDays }, patch) {
    const { kind, ...ruleSettings } = rule
    return toPatchable({ name, mode, exemptPulledDays, ...noRule, [kind]: ruleSettings }, patch)
  },
  read: (text, _scope, before) => readGate(text, before && keptSeverity(before)),
}

export const gateExceptionKind = exceptionKind(
  {
    type: gateExceptionType,
    events: {
      created: 'control.scanning.gate.exception.created',
      ended: 'control.scanning.gate.exception.revoked',
    },
    resource: toGateExceptionResource,
    table: gateExceptionTable,
  },
  { field: 'gate_exception', quota: 'exceptions from gates', days: maxExceptionDays },
)

/** Settings to which a patch is applied. A rule of another kind replaces the present rule. */
function toPatchable(text: GateText, { paths, value }: Patch<GateText>): GateText {
  const heads = paths.map((path) => path.split('.')[0])
  const set = kinds.find((kind) => value[kind] !== undefined && heads.includes(snakeCase(kind)))
  return set ? { ...text, ...noRule, [set]: text[set] } : text
}

const noRule = { vulnerabilities: undefined, endOfLife: undefined, cooldown: undefined, supportWindow: undefined }

/** Value of `unknownSeverity` that an update keeps if it sets none, so that a stored policy gives the same results. */
const keptSeverity = ({ rule }: Gate): UnknownSeverity | undefined =>
  rule.kind === 'vulnerabilities' ? rule.unknownSeverity : undefined

function readGate(given: GateText, kept?: UnknownSeverity): Pick<Gate, 'name' | 'mode' | 'rule' | 'exemptPulledDays'> {
  const text = withDefaults(given, kept ?? anyVulnerability.unknownSeverity)
  const problems: FieldViolation[] = violationsOf(gateFields, text)
  const between = (field: string, value: number | undefined, least: number, most: number) => {
    if (value === undefined || (value >= least && value <= most)) return
    problems.push({ field, description: `must be from ${least} to ${most}` })
  }
  between('vulnerabilities.after_days', text.vulnerabilities?.afterDays, 0, maxDays)
  between('cooldown.min_age_days', text.cooldown?.minAgeDays, 1, maxDays)
  between('support_window.min_months_left', text.supportWindow?.minMonthsLeft, 1, maxMonths)
  between('exempt_pulled_days', text.exemptPulledDays, 0, maxExemptDays)
  if (text.cooldown && text.exemptPulledDays > 0) {
    problems.push({ field: 'exempt_pulled_days', description: 'cannot be combined with `cooldown`' })
  }
  const kind = kinds.find((one) => text[one] !== undefined)
  if (!kind) {
    const names = kinds.map((one) => `\`${snakeCase(one)}\``).join(', ')
    problems.push({ field: 'vulnerabilities', description: `one of ${names} is required` })
  }
  refuseIfAny(problems)
  const rule = { kind, ...text[kind!] } as GateRule
  return { name: text.name, mode: text.mode, exemptPulledDays: text.exemptPulledDays, rule }
}

/** Fills missing members of a rule with defaults, so that a patch of one member leaves the other members unchanged. */
function withDefaults(text: GateText, kept: UnknownSeverity): GateText {
  const { vulnerabilities, cooldown, supportWindow } = text
  return {
    ...text,
    vulnerabilities: vulnerabilities && {
      ...{ ...anyVulnerability, ...vulnerabilities },
      unknownSeverity: vulnerabilities.unknownSeverity ?? kept,
    },
    cooldown: cooldown && { ...{ minAgeDays: 0 }, ...cooldown },
    supportWindow: supportWindow && { ...{ minMonthsLeft: 0 }, ...supportWindow },
  }
}

/** Maximum age of cached verdicts in ms, and their number. A new finding in an image takes effect after that time. */
const verdicts = { ageMs: 5000, entries: 10_000 }

export function createGateCache(source: RuleSource): GateCache {
  const tables = { rules: gateTable, exceptions: gateExceptionTable }
  return {
    ...createRuleCache(source, tables, { most: mostGates, isOn: ({ mode }) => mode !== 'OFF' }),
    verdict: createSharedResults<Verdict>(source.monotonic, verdicts).of,
  }
}
