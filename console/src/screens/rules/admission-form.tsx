// Form of an admission policy. It shows only the fields of the chosen kind, and the images that the policy would deny now.
import { useId, useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import type { Gate, GatePreview } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { RadioList } from '../../ui/radio-list.tsx'
import { Note, Problem, Shown } from '../../ui/states.tsx'
import { admissionWords } from '../../words/admission.ts'
import { type Draft, draftOf, type GateKind, gateBody, gateKinds } from './admission-draft.ts'
import type { FormProps } from './scoped-list.tsx'

export function AdmissionForm({ at, item, onDone }: FormProps<Gate>) {
  const id = useId()
  const [draft, setDraft] = useState<Draft>(draftOf(item))
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const change = (values: Partial<Draft>) => setDraft((before) => ({ ...before, ...values }))
  const save = async (event: SubmitEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      if (item) await ask('PATCH', `/registry/v2/gates/${item.uid}`, { body: gateBody(draft) })
      else await ask('POST', `/registry/v2/gates/${at}`, { body: gateBody(draft) })
      onDone()
    } catch (cause) {
      setError(cause)
    }
    setBusy(false)
  }
  return (
    <div class="form-preview">
      <form class="form" onSubmit={save}>
        <p class="field">
          <label for={`${id}-name`}>{admissionWords.policyName}</label>
          <input
            id={`${id}-name`}
            required
            value={draft.name}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => change({ name: (event.target as HTMLInputElement).value.trim() })}
          />
        </p>
        <RadioList
          label={admissionWords.deniedImages}
          name={`${id}-kind`}
          value={draft.kind}
          onChoose={(kind) => change({ kind: kind as GateKind })}
          options={gateKinds.map((value) => ({
            ...{ value, label: admissionWords.gateKinds[value], description: admissionWords.gateKindTexts[value] },
          }))}
        />
        <KindFields id={id} draft={draft} change={change} />
        <RadioList
          label={admissionWords.policyMode}
          name={`${id}-mode`}
          value={draft.mode}
          onChoose={(mode) => change({ mode: mode as Draft['mode'] })}
          options={(['DRY_RUN', 'ENFORCE', ...(item ? (['OFF'] as const) : [])] as const).map((value) => ({
            ...{ value, label: admissionWords.modeNames[value], description: admissionWords.modeTexts[value] },
          }))}
        />
        {error !== undefined && <Problem error={error} />}
        <p class="actions">
          <button type="submit" class="primary" disabled={isBusy}>
            {buttonOf(draft, item !== undefined)}
          </button>
        </p>
      </form>
      <Preview at={at} draft={draft} />
    </div>
  )
}

function buttonOf({ mode }: Draft, isOld: boolean): string {
  if (mode === 'ENFORCE') return admissionWords.enforcePolicy
  if (mode === 'OFF') return admissionWords.saveOff
  return isOld ? admissionWords.saveDryRun : admissionWords.startDryRun
}

type FieldsProps = { id: string; draft: Draft; change: (values: Partial<Draft>) => void }

const severities = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'SEVERITY_UNSPECIFIED'] as const
const unknownSeverities = ['COUNTED_AS_HIGH', 'NOT_COUNTED'] as const

/** Fields of the chosen kind. */
function KindFields({ id, draft, change }: FieldsProps) {
  const days = (
    <NumberField name="exemptPulledDays" label={admissionWords.exemptPulledDays} {...{ id, draft, change }} />
  )
  if (draft.kind === 'endOfLife') return days
  if (draft.kind === 'cooldown') {
    return <NumberField name="minAgeDays" label={admissionWords.minAgeDays} least={1} {...{ id, draft, change }} />
  }
  if (draft.kind === 'supportWindow') {
    return (
      <>
        <NumberField name="minMonthsLeft" label={admissionWords.minMonthsLeft} least={1} {...{ id, draft, change }} />
        {days}
      </>
    )
  }
  const hasLevel = draft.leastSeverity !== 'SEVERITY_UNSPECIFIED' && draft.leastSeverity !== 'CRITICAL'
  return (
    <>
      <Choice
        {...{ name: 'leastSeverity' as const, label: admissionWords.leastSeverity, id, draft, change }}
        options={severities.map((value) => ({ value, label: admissionWords.leastSeverities[value] }))}
      />
      {hasLevel && (
        <Choice
          {...{ name: 'unknownSeverity' as const, label: admissionWords.unknownSeverity, id, draft, change }}
          options={unknownSeverities.map((value) => ({ value, label: admissionWords.unknownSeverities[value] }))}
        />
      )}
      <Check name="onlyFixable" label={admissionWords.onlyFixable} {...{ id, draft, change }} />
      <Check name="onlyExploited" label={admissionWords.onlyExploited} {...{ id, draft, change }} />
      <NumberField name="afterDays" label={admissionWords.afterDays} {...{ id, draft, change }} />
      {days}
      <RadioList
        label={admissionWords.denyUnknown}
        name={`${id}-unknown`}
        value={draft.unknown}
        onChoose={(unknown) => change({ unknown: unknown as Draft['unknown'] })}
        options={(['PASS', 'DENY'] as const).map((value) => ({
          ...{ value, label: admissionWords.unknownChoices[value], description: admissionWords.unknownTexts[value] },
        }))}
      />
    </>
  )
}

type NumberName = 'afterDays' | 'minAgeDays' | 'minMonthsLeft' | 'exemptPulledDays'

function NumberField({
  id,
  name,
  label,
  least = 0,
  draft,
  change,
}: FieldsProps & { name: NumberName; label: string; least?: number }) {
  return (
    <p class="field">
      <label for={`${id}-${name}`}>{label}</label>
      <input
        id={`${id}-${name}`}
        type="number"
        min={least}
        required={least > 0}
        value={draft[name] === 0 ? '' : draft[name]}
        onInput={(event) => change({ [name]: Number((event.target as HTMLInputElement).value) })}
      />
    </p>
  )
}

type ChoiceProps = FieldsProps & {
  name: 'leastSeverity' | 'unknownSeverity'
  label: string
  options: readonly { value: string; label: string }[]
}

function Choice({ id, name, label, options, draft, change }: ChoiceProps) {
  return (
    <p class="field">
      <label for={`${id}-${name}`}>{label}</label>
      <select
        id={`${id}-${name}`}
        value={draft[name]}
        onChange={(event) => change({ [name]: (event.target as HTMLSelectElement).value })}
      >
        {options.map((one) => (
          <option key={one.value} value={one.value} selected={one.value === draft[name]}>
            {one.label}
          </option>
        ))}
      </select>
    </p>
  )
}

function Check({
  id,
  name,
  label,
  draft,
  change,
}: FieldsProps & { name: 'onlyFixable' | 'onlyExploited'; label: string }) {
  return (
    <p class="field">
      <label for={`${id}-${name}`}>{label}</label>
      <input
        id={`${id}-${name}`}
        type="checkbox"
        checked={draft[name]}
        onChange={(event) => change({ [name]: (event.target as HTMLInputElement).checked })}
      />
    </p>
  )
}

const needed = ['policies.policy.list', 'repo.list', 'tag.list', 'vuln_reports.list'] as const

/** Images that a draft would deny now. The server checks the images of the latest tags. */
export function Preview({ at, draft }: { at: string; draft: Draft }) {
  if (!needed.every((one) => can(one, at))) return <Note>{admissionWords.previewOff}</Note>
  return <LoadedPreview at={at} draft={draft} />
}

function LoadedPreview({ at, draft }: { at: string; draft: Draft }) {
  // Neither the name nor the mode changes the result.
  const gate = { ...gateBody({ ...draft, name: 'preview' }), mode: 'DRY_RUN' }
  const read = useLoad(`preview ${at} ${JSON.stringify(gate)}`, (signal) =>
    ask<GatePreview>('POST', `/registry/v2/gates/${at}:preview`, { body: { gate }, signal }),
  )
  return (
    <section class="preview" aria-label={admissionWords.ifEnforced}>
      <h3>{admissionWords.ifEnforced}</h3>
      <Shown of={read}>
        {({ checkedCount, deniedCount, waitingCount, images, complete }) => (
          <>
            <p role="status">
              <strong>{admissionWords.wouldDeny(deniedCount, checkedCount)}</strong>{' '}
              {waitingCount > 0 && admissionWords.stillWaiting(waitingCount)} {!complete && admissionWords.onlyLatest}
            </p>
            {images.length > 0 && (
              <ul class="plain">
                {images.map(({ repository, digest, tag, reason }) => (
                  <li key={`${repository} ${digest}`}>
                    <a href={paths.digest(repository.split('/'), digest)}>
                      <bdi>{`${repository}:${tag}`}</bdi>
                    </a>
                    <span class="hint">{reason}</span>
                  </li>
                ))}
              </ul>
            )}
            {deniedCount > images.length && <p>{admissionWords.moreDenied(deniedCount - images.length)}</p>}
          </>
        )}
      </Shown>
    </section>
  )
}
