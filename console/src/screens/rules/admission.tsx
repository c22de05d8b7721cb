// Admission policies, which the API calls gates, and their exemptions.
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { parentOf } from '../../data/names.ts'
import type { Gate } from '../../data/types.ts'
import { DialogButton, Form } from '../../ui/form.tsx'
import { admissionWords } from '../../words/admission.ts'
import { words } from '../../words.ts'
import { draftOf, kindOf } from './admission-draft.ts'
import { AdmissionForm, Preview } from './admission-form.tsx'
import { createExemptionKind } from './exemptions.tsx'
import { ModeBadge } from './mode-badge.tsx'
import { type At, type Kind, Rules, ScopedList, sendTo } from './scoped-list.tsx'

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
const modeKinds = { MODE_UNSPECIFIED: 'warn', OFF: 'plain', DRY_RUN: 'warn', ENFORCE: 'good' } as const
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
  create: { summary: admissionWords.newGate, button: words.create, fields: () => [], send: sent.create(() => ({})) },
  form: AdmissionForm,
  actions: (gate, reload) => <Enforce gate={gate} reload={reload} />,
  update: sent.update(() => ({})),
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

/** Enforces a policy in dry run, after a preview of the images that it would deny. */
function Enforce({ gate, reload }: { gate: Gate; reload: () => void }) {
  if (gate.mode === 'ENFORCE') return null
  const enforce = async (close: () => void) => {
    await ask('PATCH', `${path}/${gate.uid}`, { body: { mode: 'ENFORCE' } })
    close()
    reload()
  }
  return (
    <DialogButton button={admissionWords.enforce} title={admissionWords.enforceNamed(gate.name)}>
      {(close) => (
        <>
          <Preview at={parentOf(gate.uid)} draft={draftOf(gate)} />
          <p>{admissionWords.enforceText}</p>
          <Form fields={[]} submit={admissionWords.enforcePolicy} onSubmit={() => enforce(close)} />
        </>
      )}
    </DialogButton>
  )
}

const exemptions = createExemptionKind({
  path: '/registry/v2/gateExceptions',
  member: 'gateExceptions',
  empty: admissionWords.noGateExemptions,
  untilHint: admissionWords.atMost90Days,
  revokeText: admissionWords.revokeGateText,
  needs: { create: 'policies.override.create', end: 'policies.override.delete' },
})
