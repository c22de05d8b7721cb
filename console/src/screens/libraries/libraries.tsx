// Libraries of Java and Python, and their versions.
import { useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { readPage } from '../../data/list.ts'
import type { Artifact, ArtifactVersion } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Screen } from '../../ui/screen.tsx'
import { useSearched } from '../../ui/searched.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Pages, Table } from '../../ui/table.tsx'
import { bytes, Time } from '../../ui/text.tsx'
import { words } from '../../words.ts'

const all = 'ECOSYSTEM_JAVA,ECOSYSTEM_PYTHON'

export function LibrariesScreen({ query }: { query: URLSearchParams }) {
  const { values, page, size, read, search } = useSearched<Artifact>({
    ...{ path: '/libraries/v2/artifacts', member: 'artifacts', at: paths.libraries },
    ...{ query, names: ['q', 'ecosystem'] },
    asked: ({ q, ecosystem }) => ({ query: q, ecosystems: ecosystem || all, orderBy: 'name' }),
  })
  const { q = '', ecosystem = '' } = values
  const [chosen, setChosen] = useState<Artifact>()
  return (
    <Screen title={words.libraries}>
      <Form
        key={`${q} ${ecosystem}`}
        isLine
        submit={words.find}
        onSubmit={search}
        fields={[
          { name: 'q', label: words.partOfName, type: 'search', value: q, isOptional: true },
          {
            name: 'ecosystem',
            label: words.ecosystem,
            type: 'select',
            value: ecosystem,
            isOptional: true,
            options: Object.entries({ '': words.allOfThem, ...words.ecosystems }).map(([value, label]) => ({
              value,
              label,
            })),
          },
        ]}
      />
      <Shown of={read}>
        {({ items, total = items.length }) =>
          items.length === 0 ? (
            <Empty command="pinfold libraries sync">{words.noLibraries}</Empty>
          ) : (
            <>
              <Pages page={page} size={size} total={total} />
              <Table caption={words.libraries} columns={columnsFor(setChosen)} items={items} keyOf={({ uid }) => uid} />
            </>
          )
        }
      </Shown>
      {chosen && <Versions key={chosen.uid} of={chosen} />}
    </Screen>
  )
}

const columnsFor = (choose: (one: Artifact) => void): Column<Artifact>[] => [
  {
    title: words.name,
    isHead: true,
    cell: (one) => (
      <button type="button" class="small" data-main="" onClick={() => choose(one)}>
        {one.name}
      </button>
    ),
  },
  { title: words.ecosystem, cell: ({ ecosystem }) => words.ecosystems[ecosystem] ?? ecosystem },
  { title: words.latest, cell: ({ latestVersion }) => <bdi>{latestVersion}</bdi> },
  { title: words.versions, cell: ({ versionCount }) => versionCount },
  { title: words.changedAt, cell: ({ updateTime }) => <Time at={updateTime} /> },
]

function Versions({ of: { uid, name } }: { of: Artifact }) {
  const read = useLoad(`versions ${uid}`, (signal) =>
    readPage<ArtifactVersion>(`/libraries/v2/artifacts/${uid}/versions`, 'artifactVersions', { size: 200, signal }),
  )
  return (
    <section aria-label={words.versionsOf(name)}>
      <h2>{words.versionsOf(name)}</h2>
      <Shown of={read}>
        {({ items }) => (
          <Table
            caption={words.versionsOf(name)}
            items={items}
            keyOf={(one) => one.uid}
            columns={[
              { title: words.version, isHead: true, cell: ({ version }) => <bdi>{version}</bdi> },
              {
                title: words.size,
                cell: ({ sizeBytes }) => (sizeBytes === '0' ? words.unknown : bytes(Number(sizeBytes))),
              },
              { title: words.createdAt, cell: ({ createTime }) => <Time at={createTime} /> },
            ]}
          />
        )}
      </Shown>
    </section>
  )
}
