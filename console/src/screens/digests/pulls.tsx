// Recent pulls of a digest by caller, with the time of the last one.
import { ask } from '../../data/api.ts'
import type { DigestPulls } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { numbers, words } from '../../words.ts'

export function Pulls({ repo, digest }: { repo: string; digest: string }) {
  const read = useLoad(`pulls ${repo} ${digest}`, (signal) =>
    ask<DigestPulls>('GET', `/registry/v2/repos/${repo}/digests/${digest}/pulls`, { signal }),
  )
  return (
    <Shown of={read}>
      {({ lastTime, pullers }) =>
        !lastTime ? (
          <Empty>{digestWords.noPulls}</Empty>
        ) : pullers.length === 0 ? (
          <p>
            {digestWords.lastPull} <Time at={lastTime} />. {digestWords.pullersHidden}
          </p>
        ) : (
          <Table
            caption={digestWords.pulls}
            items={pullers}
            keyOf={({ caller }) => caller}
            columns={[
              { title: words.identity, isHead: true, cell: (one) => <bdi title={one.caller}>{nameOf(one)}</bdi> },
              { title: digestWords.lastPull, cell: (one) => <Time at={one.lastTime} /> },
              { title: digestWords.getRequests, cell: ({ gets }) => numbers(Number(gets)) },
              { title: digestWords.headRequests, cell: ({ checks }) => numbers(Number(checks)) },
            ]}
          />
        )
      }
    </Shown>
  )
}

function nameOf({ caller, callerName }: DigestPulls['pullers'][number]): string {
  if (caller === '') return words.anonymous
  return caller === '*' ? digestWords.otherPullers : callerName || words.nameUnknown
}
