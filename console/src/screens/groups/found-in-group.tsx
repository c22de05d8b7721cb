// Folders and repositories below a group whose names contain a text.
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { ask } from '../../data/api.ts'
import { readScopeSummaries } from '../../data/summaries.ts'
import type { SearchResult } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { groupWords } from '../../words/groups.ts'
import { words } from '../../words.ts'
import { factColumns, type TreeRow } from './tree.tsx'

type Props = { names: readonly string[]; group: string; text: string; after?: string }

type Found = { results: SearchResult[]; nextPageToken: string }

export function FoundInGroup({ names, group, text, after = '' }: Props) {
  const read = useLoad(`find ${group} ${text} ${after}`, async (signal) => {
    const query = { query: text, kinds: 'folder,repository', scopeUid: group, pageSize: 50, pageToken: after }
    const { results, nextPageToken } = await ask<Found>('GET', '/registry/v2/search', { query, signal })
    const summaries = await readScopeSummaries(
      results.map(({ resourceUid }) => resourceUid),
      signal,
    )
    const rows = results.map(({ kind, name, path, resourceUid, detail }): TreeRow => {
      const row = { uid: resourceUid, name, description: detail, isFolder: kind === 'folder' }
      return { row, summary: summaries.get(resourceUid), path, names: path.split('/'), depth: 0 }
    })
    return { rows, next: nextPageToken }
  })
  return (
    <Shown of={read}>
      {({ rows, next }) => (
        <>
          {rows.length === 0 && next === '' && (
            <Empty
              action={
                <a class="button" href={paths.with(here(), { q: undefined })}>
                  {groupWords.clearFilter}
                </a>
              }
            >
              {groupWords.noneFoundInGroup(text)}
            </Empty>
          )}
          {rows.length > 0 && (
            <Table
              caption={groupWords.content}
              items={rows}
              keyOf={({ row }) => row.uid}
              columns={[
                {
                  title: words.name,
                  isHead: true,
                  cell: ({ row, names: found }) => (
                    <a data-main href={row.isFolder ? paths.group(found) : paths.repo(found)}>
                      <bdi>{found.slice(names.length).join('/') || row.name}</bdi>
                      {row.isFolder && '/'}
                    </a>
                  ),
                },
                ...factColumns,
              ]}
            />
          )}
          <More next={next}>{(rest) => <FoundInGroup names={names} group={group} text={text} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}
