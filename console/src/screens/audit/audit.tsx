// Audit log of an organization or a folder: a sentence for each change, by day.
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { readPage } from '../../data/list.ts'
import type { AuditEntry } from '../../data/types.ts'
import { Allowed } from '../../ui/allowed.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { NoItems, Pages, pageOf } from '../../ui/table.tsx'
import { auditWords } from '../../words/audit.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { dayTitle } from './days.ts'
import { Entry } from './entry.tsx'
import { ExportMenu } from './export.tsx'
import { Filters } from './filters.tsx'
import { type AuditQuery, filterNames, queryOf } from './query.ts'

type Props = { names: readonly string[]; query: URLSearchParams }
const size = 50

export function AuditScreen({ names, query }: Props) {
  const given = Object.fromEntries(filterNames.map((name) => [name, query.get(name) ?? ''])) as AuditQuery
  return (
    <GroupFrame names={names} tail={['audit']}>
      {({ uid }) => (
        <Allowed isAllowed={can('audit.list', uid)} otherwise={auditWords.noAuditAccess}>
          <Filters group={uid} given={given} names={names} />
          <Entries group={uid} given={given} page={pageOf(query)} file={names.join('-')} />
        </Allowed>
      )}
    </GroupFrame>
  )
}

type EntriesProps = { group: string; given: AuditQuery; page: number; file: string }

function Entries({ group, given, page, file }: EntriesProps) {
  const { group: scope, ...asked } = queryOf(group, given)
  const read = useLoad(`audit ${group} ${JSON.stringify(given)} ${page}`, (signal) => {
    const query = { 'uidp.descendantsOf': scope, orderBy: 'create_time desc', ...asked }
    return readPage<AuditEntry>('/events/v2/audit', 'auditEntries', { page, size, query, signal })
  })
  const isFiltered = filterNames.some((name) => given[name] !== '')
  const clear = Object.fromEntries([...filterNames, 'page'].map((name) => [name, undefined]))
  return (
    <Shown of={read}>
      {({ items, total, next }) => {
        const known = total ?? page * size + (next === '' ? 0 : 1)
        if (items.length === 0) {
          return (
            <NoItems page={page} size={size} total={known}>
              {isFiltered ? (
                <Empty
                  action={
                    <button type="button" onClick={() => go(paths.with(here(), clear))}>
                      {auditWords.clear}
                    </button>
                  }
                >
                  {auditWords.noChangeFound}
                </Empty>
              ) : (
                <Empty>{auditWords.noAudit}</Empty>
              )}
            </NoItems>
          )
        }
        return (
          <>
            <div class="log-head">
              <p role="status">{total === undefined ? auditWords.manyEntries : auditWords.entries(total)}</p>
              <ExportMenu group={scope} query={asked} file={file} />
            </div>
            {[...Map.groupBy(items, ({ createTime }) => dayTitle(createTime, new Date()))].map(([day, some]) => (
              <section key={day} class="log" aria-label={day}>
                <h2>{day}</h2>
                {some.map((entry) => (
                  <Entry key={entry.uid} entry={entry} />
                ))}
              </section>
            ))}
            {known > size && <Pages page={page} size={size} total={known} isBelow />}
          </>
        )
      }}
    </Shown>
  )
}
