// Audit log of a group. Each entry has the change, its user and the IP address.
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { readPage } from '../../data/list.ts'
import type { AuditEntry } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, pageOf, Table } from '../../ui/table.tsx'
import { Breakable, Code, Time } from '../../ui/text.tsx'
import { auditWords } from '../../words/audit.ts'
import { eventWords } from '../../words/events.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }
const size = 100
const filters = ['actor', 'subject', 'type'] as const

export function AuditScreen({ names, query }: Props) {
  const given = Object.fromEntries(filters.map((name) => [name, query.get(name) ?? '']))
  const search = (values: Record<string, string>) => {
    const wanted = filters.filter((name) => values[name]).map((name) => [name, values[name]!])
    go(`${paths.group(names, 'audit')}?${new URLSearchParams(wanted)}`)
  }
  return (
    <GroupFrame names={names} tail={['audit']}>
      {({ uid }) => (
        <>
          <Form
            key={JSON.stringify(given)}
            isLine
            submit={words.find}
            onSubmit={search}
            fields={filters.map((name) => ({
              ...{ name, label: auditWords.auditFilters[name], value: given[name]!, isOptional: true },
            }))}
          />
          <Entries group={uid} given={given} page={pageOf(query)} />
        </>
      )}
    </GroupFrame>
  )
}

function Entries({ group, given, page }: { group: string; given: Record<string, string>; page: number }) {
  const read = useLoad(`audit ${group} ${JSON.stringify(given)} ${page}`, (signal) => {
    const query = { 'uidp.descendantsOf': group, orderBy: 'create_time desc', ...given }
    return readPage<AuditEntry>('/events/v2/audit', 'auditEntries', { page, size, query, signal })
  })
  return (
    <Shown of={read}>
      {({ items, total = items.length }) =>
        items.length === 0 ? (
          <NoItems page={page} size={size} total={total}>
            <Empty>{auditWords.noAudit}</Empty>
          </NoItems>
        ) : (
          <>
            <Pages page={page} size={size} total={total} />
            <Table caption={words.nouns.audit} columns={columns} items={items} keyOf={({ uid }) => uid} />
          </>
        )
      }
    </Shown>
  )
}

const columns: Column<AuditEntry>[] = [
  { title: words.time, isHead: true, cell: ({ createTime }) => <Time at={createTime} /> },
  { title: words.event, cell: ({ type }) => <Breakable text={type} /> },
  { title: eventWords.subject, cell: ({ subject }) => <code title={subject}>{subject.slice(-16)}</code> },
  { title: words.actor, cell: ({ actor }) => <code title={actor}>{actor.slice(-16) || words.anonymous}</code> },
  { title: words.client, cell: ({ remoteAddress, userAgent }) => <bdi>{`${remoteAddress} ${userAgent}`}</bdi> },
  {
    title: words.details,
    cell: ({ body, requestId }) => (
      <details>
        <summary>{words.show}</summary>
        <p>
          {words.requestId} <code>{requestId}</code>
        </p>
        <Code text={pretty(body)} label={words.copy} />
      </details>
    ),
  },
]

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 1)
  } catch {
    return json
  }
}
