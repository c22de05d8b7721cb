// Packages of an image, in pages.
import { ask } from '../../data/api.ts'
import type { Packages } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { digestWords } from '../../words/digests.ts'
import { words } from '../../words.ts'
import { Gaps } from './gaps.tsx'

type Props = { repo: string; digest: string; after?: string }

export function ImagePackages({ repo, digest, after = '' }: Props) {
  const read = useLoad(`packages ${repo} ${digest} ${after}`, (signal) => {
    const query = { pageSize: 200, pageToken: after }
    return ask<Packages>('GET', `/registry/v2/repos/${repo}/digests/${digest}/packages`, { query, signal })
  })
  return (
    <Shown of={read}>
      {({ packages, gaps, nextPageToken }) => (
        <>
          {after === '' && <Gaps gaps={gaps} />}
          {packages.length === 0 && (
            <Empty>{gaps.length > 0 ? digestWords.noneInIncomplete : digestWords.noPackages}</Empty>
          )}
          {packages.length > 0 && (
            <Table
              caption={words.packages}
              items={packages}
              keyOf={({ purl, locations }) => `${purl} ${locations.join()}`}
              columns={[
                { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
                { title: words.version, cell: ({ version }) => <bdi class="mono">{version}</bdi> },
                { title: words.ecosystem, cell: ({ ecosystem }) => <bdi>{ecosystem}</bdi> },
              ]}
            />
          )}
          <More next={nextPageToken}>{(rest) => <ImagePackages repo={repo} digest={digest} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}
