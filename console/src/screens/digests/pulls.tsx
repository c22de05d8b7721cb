// Recent pulls of a digest by caller, with the time of the last one.
import { ask } from '../../data/api.ts'
import type { DigestPulls } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { numbers, words } from '../../words.ts'

export function Pulls({ repo, digest }: { repo: string; digest: string }) {
  const read = useLoad(`pulls ${repo} ${digest}`, (signal) =>
    ask<DigestPulls>('GET', `/registry/v2/repos/${repo}/digests/${digest}/pulls`, { signal }),
  )
  return (
    <Shown of={read}>
      {({ lastTime, pullers }) =>
        !lastTime ? (
          <Empty>{words.noPulls}</Empty>
        ) : pullers.length === 0 ? (
          <p>
            {words.lastPull} <Time at={lastTime} />. {words.pullersHidden}
          </p>
        ) : (
          <Table
            caption={words.pulls}
            items={pullers}
            keyOf={({ caller }) => caller}
            columns={[
              { title: words.identity, isHead: true, cell: (one) => <bdi title={one.caller}>{nameOf(one)}</bdi> },
              { title: words.lastPull, cell: (one) => <Time at={one.lastTime} /> },
              { title: words.getRequests, cell: ({ gets }) => numbers(Number(gets)) },
              { title: words.headRequests, cell: ({ checks }) => numbers(Number(checks)) },
            ]}
          />
        )
      }
    </Shown>
  )
}

function nameOf({ caller, callerName }: DigestPulls['pullers'][number]): string {
  if (caller === '') return words.anonymous
  return caller === '*' ? words.otherPullers : callerName || words.nameUnknown
}
