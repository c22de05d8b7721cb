// Admission policies, which the API calls gates, and their exemptions.
import { can } from '../../app/session.ts'
import type { Gate } from '../../data/types.ts'
import type { Field } from '../../ui/form.tsx'
import { admissionWords } from '../../words/admission.ts'
import { words } from '../../words.ts'
import { createExemptionKind } from './exemptions.tsx'
import { ModeBadge } from './mode-badge.tsx'
import { type At, type Kind, Rules, ScopedList, sendTo, type Values } from './scoped-list.tsx'

export function AdmissionPolicies({ at, query }: { at: At; query: URLSearchParams }) {
  return (
    <Rules at={at} query={query} text={admissionWords.gatesText} needs="policies.policy.list">
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
  title: admissionWords.gates,
  empty: admissionWords.noGates,
  path,
  member: 'gates',
  needs: { create: 'policies.policy.create', update: 'policies.policy.update', end: 'policies.policy.delete' },
  nameOf: ({ name }) => name,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
    { title: admissionWords.deniedImages, cell: (gate) => refusedBy(gate) },
    {
      title: words.state,
      cell: ({ mode }) => <ModeBadge kind={modeKinds[mode]} text={admissionWords.gateModes[mode]} />,
    },
  ],
  create: { summary: admissionWords.newGate, button: words.create, fields: fieldsOf, send: sent.create(bodyOf) },
  update: sent.update(bodyOf),
  end: { button: words.delete, text: admissionWords.deleteGateText, send: sent.delete },
}

function refusedBy(gate: Partial<Gate>): string {
  const kind = kindOf(gate)
  if (kind === 'endOfLife') return admissionWords.deniesEnded
  if (kind === 'cooldown') return admissionWords.deniesYoung(gate.cooldown?.minAgeDays ?? 0)
  if (kind === 'supportWindow') return admissionWords.deniesSoonEnded(gate.supportWindow?.minMonthsLeft ?? 0)
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
    admissionWords.deniesVulnerable(admissionWords.leastSeverities[leastSeverity ?? 'SEVERITY_UNSPECIFIED']),
    ...(onlyFixable ? [admissionWords.withFix] : []),
    ...(onlyExploited ? [admissionWords.exploited] : []),
    ...(afterDays > 0 ? [admissionWords.foundBefore(afterDays)] : []),
    ...(hasLevel ? [admissionWords.unknownSeverities[unknownSeverity ?? 'COUNTED_AS_HIGH']] : []),
    ...(unknown === 'DENY' ? [admissionWords.orUnscanned] : []),
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
      ...{ name: 'kind', label: admissionWords.deniedImages, type: 'select', value: kindOf(gate) },
      options: kinds.map((value) => ({ value, label: admissionWords.gateKinds[value] })),
    },
    {
      ...{ name: 'leastSeverity', label: admissionWords.leastSeverity, type: 'select' },
      value: vulnerabilities?.leastSeverity ?? 'HIGH',
      options: severities.map((value) => ({ value, label: admissionWords.leastSeverities[value] })),
    },
    {
      ...{ name: 'unknownSeverity', label: admissionWords.unknownSeverity, type: 'select' },
      value: vulnerabilities?.unknownSeverity ?? 'COUNTED_AS_HIGH',
      options: unknownSeverities.map((value) => ({ value, label: admissionWords.unknownSeverities[value] })),
    },
    check('onlyFixable', admissionWords.onlyFixable, vulnerabilities?.onlyFixable),
    check('onlyExploited', admissionWords.onlyExploited, vulnerabilities?.onlyExploited),
    count('afterDays', admissionWords.afterDays, vulnerabilities?.afterDays),
    check('denyUnknown', admissionWords.denyUnknown, vulnerabilities?.unknown === 'DENY'),
    count('minAgeDays', admissionWords.minAgeDays, gate.cooldown?.minAgeDays),
    count('minMonthsLeft', admissionWords.minMonthsLeft, gate.supportWindow?.minMonthsLeft),
    count('exemptPulledDays', admissionWords.exemptPulledDays, gate.exemptPulledDays),
    {
      ...{ name: 'mode', label: words.state, type: 'select', value: gate.mode ?? 'DRY_RUN' },
      options: modes.map((value) => ({ value, label: admissionWords.gateModes[value] })),
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
  empty: admissionWords.noGateExemptions,
  untilHint: admissionWords.atMost90Days,
  revokeText: admissionWords.revokeGateText,
  needs: { create: 'policies.override.create', end: 'policies.override.delete' },
})
