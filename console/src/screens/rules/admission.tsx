// Admission policies, which the API calls gates, and their exemptions.
import { can } from '../../app/session.ts'
import type { Gate } from '../../data/types.ts'
import type { Field } from '../../ui/form.tsx'
import { Badge } from '../../ui/text.tsx'
import { words } from '../../words.ts'
import { createExemptionKind } from './exemptions.tsx'
import { type At, type Kind, Rules, ScopedList, sendTo, type Values } from './scoped-list.tsx'

export function AdmissionPolicies({ at, query }: { at: At; query: URLSearchParams }) {
  return (
    <Rules at={at} query={query} text={words.gatesText} needs="policies.policy.list">
      {(asked) => (
        <>
          <ScopedList at={at} kind={gates} />
          {can('policies.override.list', at.uid) && <ScopedList at={at} kind={{ ...exemptions, ...asked }} />}
        </>
      )}
    </Rules>
  )
}

const path = '/registry/v2/gates'
const sent = sendTo(path)
const modes = ['OFF', 'DRY_RUN', 'ENFORCE'] as const
const modeKinds = { MODE_UNSPECIFIED: 'warn', OFF: 'plain', DRY_RUN: 'warn', ENFORCE: 'good' } as const
const kinds = ['vulnerabilities', 'endOfLife', 'cooldown', 'supportWindow'] as const
const unknownSeverities = ['COUNTED_AS_HIGH', 'NOT_COUNTED'] as const
const severities = ['SEVERITY_UNSPECIFIED', 'LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const

/** A gate of the API has a different field for each kind of condition. */
const kindOf = (gate: Partial<Gate>) => kinds.find((kind) => gate[kind] !== undefined) ?? 'vulnerabilities'

const gates: Kind<Gate> = {
  title: words.gates,
  empty: words.noGates,
  path,
  member: 'gates',
  needs: { create: 'policies.policy.create', update: 'policies.policy.update', end: 'policies.policy.delete' },
  nameOf: ({ name }) => name,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
    { title: words.deniedImages, cell: (gate) => refusedBy(gate) },
    { title: words.state, cell: ({ mode }) => <Badge kind={modeKinds[mode]}>{words.gateModes[mode]}</Badge> },
  ],
  create: { summary: words.newGate, button: words.create, fields: fieldsOf, send: sent.create(bodyOf) },
  update: sent.update(bodyOf),
  end: { button: words.delete, text: words.deleteGateText, send: sent.delete },
}

function refusedBy(gate: Partial<Gate>): string {
  const kind = kindOf(gate)
  if (kind === 'endOfLife') return words.deniesEnded
  if (kind === 'cooldown') return words.deniesYoung(gate.cooldown?.minAgeDays ?? 0)
  if (kind === 'supportWindow') return words.deniesSoonEnded(gate.supportWindow?.minMonthsLeft ?? 0)
  const {
    leastSeverity,
    onlyFixable,
    onlyExploited,
    afterDays = 0,
    unknown,
    unknownSeverity,
  } = gate.vulnerabilities ?? {}
  const hasLevel = (leastSeverity ?? 'SEVERITY_UNSPECIFIED') !== 'SEVERITY_UNSPECIFIED'
  return [
    words.deniesVulnerable(words.leastSeverities[leastSeverity ?? 'SEVERITY_UNSPECIFIED']),
    ...(onlyFixable ? [words.withFix] : []),
    ...(onlyExploited ? [words.exploited] : []),
    ...(afterDays > 0 ? [words.foundBefore(afterDays)] : []),
    ...(hasLevel ? [words.unknownSeverities[unknownSeverity ?? 'COUNTED_AS_HIGH']] : []),
    ...(unknown === 'DENY' ? [words.orUnscanned] : []),
  ].join(', ')
}

const check = (name: string, label: string, isOn: boolean | undefined): Field => ({
  ...{ name, label, type: 'check', value: isOn ? 'yes' : '' },
})
const count = (name: string, label: string, value: number | undefined): Field => ({
  ...{ name, label, type: 'number', value: value ? String(value) : '', isOptional: true },
})

function fieldsOf(gate: Partial<Gate> = {}): Field[] {
  const { vulnerabilities } = gate
  return [
    { name: 'name', label: words.name, value: gate.name ?? '' },
    {
      ...{ name: 'kind', label: words.deniedImages, type: 'select', value: kindOf(gate) },
      options: kinds.map((value) => ({ value, label: words.gateKinds[value] })),
    },
    {
      ...{ name: 'leastSeverity', label: words.leastSeverity, type: 'select' },
      value: vulnerabilities?.leastSeverity ?? 'HIGH',
      options: severities.map((value) => ({ value, label: words.leastSeverities[value] })),
    },
    {
      ...{ name: 'unknownSeverity', label: words.unknownSeverity, type: 'select' },
      value: vulnerabilities?.unknownSeverity ?? 'COUNTED_AS_HIGH',
      options: unknownSeverities.map((value) => ({ value, label: words.unknownSeverities[value] })),
    },
    check('onlyFixable', words.onlyFixable, vulnerabilities?.onlyFixable),
    check('onlyExploited', words.onlyExploited, vulnerabilities?.onlyExploited),
    count('afterDays', words.afterDays, vulnerabilities?.afterDays),
    check('denyUnknown', words.denyUnknown, vulnerabilities?.unknown === 'DENY'),
    count('minAgeDays', words.minAgeDays, gate.cooldown?.minAgeDays),
    count('minMonthsLeft', words.minMonthsLeft, gate.supportWindow?.minMonthsLeft),
    count('exemptPulledDays', words.exemptPulledDays, gate.exemptPulledDays),
    {
      ...{ name: 'mode', label: words.state, type: 'select', value: gate.mode ?? 'DRY_RUN' },
      options: modes.map((value) => ({ value, label: words.gateModes[value] })),
    },
  ]
}

function bodyOf(values: Values): object {
  const { name, mode, kind, leastSeverity, unknownSeverity, afterDays, denyUnknown } = values
  const isOn = (member: string) => values[member] === 'yes'
  const rules: Record<string, object> = {
    vulnerabilities: {
      ...{ leastSeverity, unknownSeverity, onlyFixable: isOn('onlyFixable'), onlyExploited: isOn('onlyExploited') },
      ...{ afterDays: Number(afterDays), unknown: denyUnknown === 'yes' ? 'DENY' : 'PASS' },
    },
    endOfLife: {},
    cooldown: { minAgeDays: Number(values.minAgeDays) },
    supportWindow: { minMonthsLeft: Number(values.minMonthsLeft) },
  }
  return { name, mode, exemptPulledDays: Number(values.exemptPulledDays), [kind!]: rules[kind!] }
}

const exemptions = createExemptionKind({
  path: '/registry/v2/gateExceptions',
  member: 'gateExceptions',
  empty: words.noGateExemptions,
  untilHint: words.atMost90Days,
  revokeText: words.revokeGateText,
  needs: { create: 'policies.override.create', end: 'policies.override.delete' },
})
