// Referrers of a digest, such as signatures, SBOMs and attestations, with or without a tag.
import { paths } from '../../app/paths.ts'
import { readNext } from '../../data/list.ts'
import type { Referrer } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { bytes, Digest } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { words } from '../../words.ts'

type Props = { names: readonly string[]; repo: string; digest: string; after?: string }

export function Referrers({ names, repo, digest, after = '' }: Props) {
  const read = useLoad(`referrers ${repo} ${digest} ${after}`, (signal) =>
    readNext<Referrer>(`/registry/v2/repos/${repo}/digests/${digest}/referrers`, 'referrers', {
      ...{ after, size: 50, signal },
    }),
  )
  return (
    <Shown of={read}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{digestWords.noReferrers}</Empty>}
          {items.length > 0 && (
            <Table
              caption={digestWords.referrers}
              items={items}
              keyOf={(one) => one.digest}
              columns={[
                {
                  title: words.digest,
                  isHead: true,
                  cell: (one) => <Digest of={one.digest} href={paths.digest(names, one.digest)} />,
                },
                { title: digestWords.artifactType, cell: (one) => <bdi>{one.artifactType || one.mediaType}</bdi> },
                { title: words.size, cell: ({ size }) => bytes(Number(size)) },
              ]}
            />
          )}
          <More next={next}>{(rest) => <Referrers names={names} repo={repo} digest={digest} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}
