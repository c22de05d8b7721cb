// Entry of the audit log: a sentence that opens to its details.
import { useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { readPage } from '../../data/list.ts'
import type { AuditEntry } from '../../data/types.ts'
import { Avatar } from '../../ui/avatar.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useLoad } from '../../ui/load.ts'
import { Shown } from '../../ui/states.tsx'
import { Copy, hourText, Time } from '../../ui/text.tsx'
import { auditWords } from '../../words/audit.ts'
import { words } from '../../words.ts'

export function Entry({ entry }: { entry: AuditEntry }) {
  const [isOpen, setOpen] = useState(false)
  const { actorKind, createTime, sentenceParts } = entry
  const name = actorKind === 'OPERATOR' ? auditWords.operator : (sentenceParts[0]?.text ?? '')
  return (
    <details onToggle={(event) => setOpen((event.target as HTMLDetailsElement).open)}>
      <summary>
        <time dateTime={createTime}>{hourText(new Date(createTime))}</time>
        <Avatar
          name={name}
          isPerson={actorKind === 'PERSON'}
          isBot={actorKind === 'SERVICE_ACCOUNT' || actorKind === 'SERVER'}
        />
        <span class="sentence">
          {sentenceParts.map(({ text, value }, i) => (value ? <b key={i}>{text}</b> : <span key={i}>{text}</span>))}
        </span>
        <span class="origin">{originOf(entry)}</span>
        <Icon name="next" />
      </summary>
      {isOpen && <Details entry={entry} />}
    </details>
  )
}

/** Program and address that a change came from. */
function originOf({ userAgent, remoteAddress }: AuditEntry): string {
  const program = userAgent.startsWith('Mozilla/')
    ? auditWords.browser
    : userAgent.startsWith('pinfold')
      ? remoteAddress === ''
        ? ''
        : auditWords.commandLine
      : userAgent.replace(/[\s/(].*$/, '').slice(0, 24)
  return [program, remoteAddress].filter((one) => one !== '').join(', ')
}

function Details({ entry }: { entry: AuditEntry }) {
  const { type, createTime, userAgent, remoteAddress, requestId, actor, subject } = entry
  const only = (change: Record<string, string>) => paths.with(here(), { ...change, page: undefined })
  return (
    <div class="log-details">
      {type.includes('.updated.') && <Changes entry={entry} />}
      <dl>
        <dt>{words.time}</dt>
        <dd>
          <Time at={createTime} />
        </dd>
        {remoteAddress !== '' && (
          <>
            <dt>{auditWords.address}</dt>
            <dd>
              <bdi>{remoteAddress}</bdi>
            </dd>
          </>
        )}
        {userAgent !== '' && (
          <>
            <dt>{words.client}</dt>
            <dd>
              <bdi>{userAgent}</bdi>
            </dd>
          </>
        )}
        <dt>{words.requestId}</dt>
        <dd>
          <code>{requestId}</code>
        </dd>
        <dt>{auditWords.eventType}</dt>
        <dd>
          <code>{type}</code>
        </dd>
        <dt>{auditWords.only}</dt>
        <dd class="only">
          {actor !== '' && <a href={only({ actor })}>{auditWords.onlyPerson}</a>}
          <a href={only({ type })}>{auditWords.onlyAction}</a>
          {subject !== '' && <a href={only({ subject, folder: '' })}>{auditWords.onlyResource}</a>}
        </dd>
      </dl>
      <Copy text={jsonOf(entry)} label={auditWords.copyJson}>
        {auditWords.copyJson}
      </Copy>
    </div>
  )
}

/** Fields that differ from the entry before about the same resource. */
function Changes({ entry: { uid, subject, body, createTime } }: { entry: AuditEntry }) {
  const read = useLoad(`audit before ${uid}`, async (signal) => {
    const query = { subject, until: createTime, orderBy: 'create_time desc' }
    const { items } = await readPage<AuditEntry>('/events/v2/audit', 'auditEntries', { size: 1, query, signal })
    return items[0] ? differences(items[0].body, body) : undefined
  })
  return (
    <Shown of={read}>
      {(changes) =>
        changes === undefined ? null : (
          <dl>
            <dt>{auditWords.changes}</dt>
            {changes.length === 0 && <dd>{auditWords.noFields}</dd>}
            {changes.map(({ field, before, after }) => (
              <dd key={field}>
                {field}: <bdi>{auditWords.fieldChange(before, after)}</bdi>
              </dd>
            ))}
          </dl>
        )
      }
    </Shown>
  )
}

type Change = { field: string; before: string; after: string }
const maxShown = 200

function differences(before: string, after: string): Change[] {
  const [old, present] = [parsed(before), parsed(after)]
  const names = [...new Set([...Object.keys(old), ...Object.keys(present)])]
  return names
    .filter((name) => !name.endsWith('_time') && JSON.stringify(old[name]) !== JSON.stringify(present[name]))
    .map((field) => ({ field: field.replaceAll('_', ' '), before: textOf(old[field]), after: textOf(present[field]) }))
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text === undefined || ['', '[]', 'null', '{}'].includes(text) ? auditWords.nothing : text.slice(0, maxShown)
}

function parsed(json: string): Record<string, unknown> {
  try {
    return (JSON.parse(json) as Record<string, unknown> | null) ?? {}
  } catch {
    return {}
  }
}

function jsonOf({ body, former, sentenceParts: _, ...entry }: AuditEntry): string {
  return JSON.stringify({ ...entry, body: parsed(body), former: former === '' ? null : parsed(former) }, null, 2)
}
