// Differences between two digests of a repository.
import { paths } from '../../app/paths.ts'
import { ask } from '../../data/api.ts'
import { findRepo } from '../../data/names.ts'
import type { Comparison } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Screen, trailOf } from '../../ui/screen.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Digest, hex8 } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { words } from '../../words.ts'
import { Gaps } from './gaps.tsx'

type Props = { names: readonly string[]; older: string; newer: string }

export function DiffScreen({ names, older, newer }: Props) {
  const read = useLoad(`diff ${names.join('/')} ${older} ${newer}`, async (signal) => {
    const { item: repo } = await findRepo(names)
    const query = { baseDigest: older }
    return ask<Comparison>('GET', `/registry/v2/repos/${repo.uid}/digests/${newer}/comparison`, { query, signal })
  })
  const trail = [...trailOf(names), { label: names.at(-1)!, href: paths.repo(names) }]
  return (
    <Screen title={digestWords.comparison(hex8(older), hex8(newer))} trail={trail}>
      <p>
        <Digest of={older} href={paths.digest(names, older)} /> →{' '}
        <Digest of={newer} href={paths.digest(names, newer)} />{' '}
        <a href={paths.diff(names, newer, older)}>{digestWords.swapDigests}</a>
      </p>
      <Shown of={read}>{(found) => <Differences found={found} />}</Shown>
    </Screen>
  )
}

type Row = { key: string; name: string; before: string; after: string; note: string }

function Differences({ found }: { found: Comparison }) {
  const { added, removed, changed, gaps, baseGaps } = found
  const packages: Row[] = [
    ...changed.map(({ package: { purl, name, version }, baseVersion }) => ({
      ...{ key: purl, name, before: baseVersion, after: version },
      note: digestWords.changed,
    })),
    ...added.map(({ purl, name, version }) => ({
      key: purl,
      name,
      before: '',
      after: version,
      note: digestWords.added,
    })),
    ...removed.map(({ purl, name, version }) => ({
      key: purl,
      name,
      before: version,
      after: '',
      note: digestWords.removed,
    })),
  ]
  const vulnerabilities = [
    ...found.found.map((one) => ({ ...one, note: digestWords.added })),
    ...found.resolved.map((one) => ({ ...one, note: digestWords.removed })),
  ]
  const isPartial = gaps.length + baseGaps.length > 0
  return (
    <>
      <Gaps gaps={gaps} />
      <Gaps gaps={baseGaps} />
      <h2>{words.vulnerabilities}</h2>
      {vulnerabilities.length === 0 && (
        <Empty>{isPartial ? digestWords.noneInIncomplete : digestWords.noDifference}</Empty>
      )}
      {vulnerabilities.length > 0 && (
        <Table
          caption={words.vulnerabilities}
          items={vulnerabilities}
          keyOf={({ vulnerability, note }) => `${note} ${vulnerability}`}
          columns={[
            {
              title: words.vulnerability,
              isHead: true,
              cell: ({ vulnerability }) => (
                <a href={paths.search(vulnerability)}>
                  <bdi>{vulnerability}</bdi>
                </a>
              ),
            },
            { title: digestWords.change, cell: ({ note }) => note },
            { title: words.severity, cell: ({ severity }) => words.severities[severity] ?? severity },
            { title: words.packages, cell: ({ purls }) => <bdi>{purls.join(', ')}</bdi> },
          ]}
        />
      )}
      <h2>{words.packages}</h2>
      {packages.length === 0 && <Empty>{isPartial ? digestWords.noneInIncomplete : digestWords.noDifference}</Empty>}
      {packages.length > 0 && (
        <Table
          caption={words.packages}
          columns={packageColumns}
          items={packages}
          keyOf={({ key, note }) => note + key}
        />
      )}
    </>
  )
}

const packageColumns: Column<Row>[] = [
  { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
  { title: digestWords.change, cell: ({ note }) => note },
  { title: digestWords.before, cell: ({ before }) => <bdi>{before || '–'}</bdi> },
  { title: digestWords.after, cell: ({ after }) => <bdi>{after || '–'}</bdi> },
]
