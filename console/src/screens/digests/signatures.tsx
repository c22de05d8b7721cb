// Tags of signatures and attestations of an image. Their names contain the digest.
import { paths } from '../../app/paths.ts'
import { readNext } from '../../data/list.ts'
import type { Tag } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Digest, Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { words } from '../../words.ts'

type Props = { names: readonly string[]; repo: string; digest: string }

export function Signatures({ names, repo, digest }: Props) {
  const read = useLoad(`signatures ${repo} ${digest}`, (signal) => {
    const query = { prefix: digest.replace(':', '-'), includeReferrers: true }
    return readNext<Tag>(`/registry/v2/repos/${repo}/tags`, 'tags', { size: 50, query, signal })
  })
  return (
    <Shown of={read}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>{digestWords.noSignatures}</Empty>
        ) : (
          <Table
            caption={digestWords.signatures}
            items={items}
            keyOf={({ uid }) => uid}
            columns={[
              {
                title: words.tag,
                isHead: true,
                cell: ({ name }) => (
                  <a href={paths.tag(names, name)}>
                    <bdi>{name.replace(/^(sha\d+-[0-9a-f]{12})[0-9a-f]+/, '$1…')}</bdi>
                  </a>
                ),
              },
              { title: words.digest, cell: (one) => <Digest of={one.digest} href={paths.digest(names, one.digest)} /> },
              { title: words.updatedAt, cell: ({ updateTime }) => <Time at={updateTime} /> },
            ]}
          />
        )
      }
    </Shown>
  )
}
