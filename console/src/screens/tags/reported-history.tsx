// Tag history that upstreams report. It is shown separately from the history that this server recorded.
import { readNext } from '../../data/list.ts'
import type { ReportedMove } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Digest, Time } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'

type Props = { repo: string; tag: string; from: string | undefined; to: string | undefined; after?: string }

/** Shows nothing if no upstream has reported a history. */
export function ReportedHistory({ repo, tag, from, to, after = '' }: Props) {
  const query = { tag, ...(from && { startTime: from }), ...(to && { endTime: to }) }
  const told = useLoad(`told ${repo} ${tag} ${from} ${to} ${after}`, (signal) =>
    readNext<ReportedMove>(`/registry/v2/repos/${repo}/toldTagHistory`, 'records', { after, size: 50, query, signal }),
  )
  return (
    <Shown of={told}>
      {({ items, next }) =>
        items.length > 0 && (
          <>
            {after === '' && (
              <>
                <h2>{tagWords.reported}</h2>
                <p class="dim">{tagWords.reportedText}</p>
              </>
            )}
            <Table
              caption={tagWords.reported}
              columns={columns}
              items={items}
              keyOf={({ time, url, path }) => `${time} ${url} ${path}`}
            />
            <More next={next} label={words.showOlder}>
              {(rest) => <ReportedHistory repo={repo} tag={tag} from={from} to={to} after={rest} />}
            </More>
          </>
        )
      }
    </Shown>
  )
}

const columns: Column<ReportedMove>[] = [
  {
    title: words.time,
    isHead: true,
    cell: ({ time, checkedBefore }) =>
      checkedBefore ? (
        <>
          {words.between} <Time at={checkedBefore} /> {words.and} <Time at={time} />
        </>
      ) : (
        <Time at={time} />
      ),
  },
  {
    title: words.event,
    cell: ({ event }) =>
      event === 'EVENT_DELETED' ? <Badge kind="warn">{words.deleted}</Badge> : tagWords.tagEvents[event],
  },
  { title: words.digest, cell: ({ digest }) => <Digest of={digest} /> },
  { title: tagWords.reportedBy, cell: ({ url, path }) => <bdi>{url ? `${url}/${path}` : path}</bdi> },
]
