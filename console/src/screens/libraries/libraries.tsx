// Libraries of Java and Python, and their versions.
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { readNext } from '../../data/list.ts'
import type { Artifact, ArtifactVersion } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Screen } from '../../ui/screen.tsx'
import { useSearched } from '../../ui/searched.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, Table } from '../../ui/table.tsx'
import { bytes, Time } from '../../ui/text.tsx'
import { libraryWords } from '../../words/libraries.ts'
import { words } from '../../words.ts'

const all = 'ECOSYSTEM_JAVA,ECOSYSTEM_PYTHON'

export function LibrariesScreen({ query }: { query: URLSearchParams }) {
  const { values, page, size, read, search } = useSearched<Artifact>({
    ...{ path: '/libraries/v2/artifacts', member: 'artifacts', at: paths.libraries },
    ...{ query, names: ['q', 'ecosystem'] },
    asked: ({ q, ecosystem }) => ({ query: q, ecosystems: ecosystem || all, orderBy: 'name' }),
  })
  const { q = '', ecosystem = '' } = values
  const chosen = read.data?.items.find(({ uid }) => uid === query.get('of'))
  return (
    <Screen title={words.libraries}>
      <Form
        key={`${q} ${ecosystem}`}
        isLine
        submit={words.find}
        onSubmit={search}
        fields={[
          { name: 'q', label: libraryWords.partOfName, type: 'search', value: q, isOptional: true },
          {
            name: 'ecosystem',
            label: words.ecosystem,
            type: 'select',
            value: ecosystem,
            isOptional: true,
            options: Object.entries({ '': libraryWords.allEcosystems, ...libraryWords.ecosystems }).map(
              ([value, label]) => ({
                value,
                label,
              }),
            ),
          },
        ]}
      />
      <Shown of={read}>
        {({ items, total = items.length }) =>
          items.length === 0 ? (
            <NoItems page={page} size={size} total={total}>
              <Empty command="pinfold libraries sync">{libraryWords.noLibraries}</Empty>
            </NoItems>
          ) : (
            <>
              <Pages page={page} size={size} total={total} />
              <Table caption={words.libraries} columns={columns} items={items} keyOf={({ uid }) => uid} />
            </>
          )
        }
      </Shown>
      {chosen && (
        <>
          <h2>{libraryWords.versionsOf(chosen.name)}</h2>
          <Versions key={chosen.uid} uid={chosen.uid} name={chosen.name} />
        </>
      )}
    </Screen>
  )
}

const columns: Column<Artifact>[] = [
  {
    title: words.name,
    isHead: true,
    cell: ({ uid, name }) => (
      <a data-main href={paths.with(here(), { of: uid })}>
        <bdi>{name}</bdi>
      </a>
    ),
  },
  { title: words.ecosystem, cell: ({ ecosystem }) => libraryWords.ecosystems[ecosystem] ?? ecosystem },
  { title: libraryWords.latest, cell: ({ latestVersion }) => <bdi>{latestVersion}</bdi> },
  { title: libraryWords.versions, cell: ({ versionCount }) => versionCount },
  { title: words.updatedAt, cell: ({ updateTime }) => <Time at={updateTime} /> },
]

function Versions({ uid, name, after = '' }: { uid: string; name: string; after?: string }) {
  const read = useLoad(`versions ${uid} ${after}`, (signal) =>
    readNext<ArtifactVersion>(`/libraries/v2/artifacts/${uid}/versions`, 'artifactVersions', { after, signal }),
  )
  return (
    <Shown of={read}>
      {({ items, next }) => (
        <>
          <Table
            caption={libraryWords.versionsOf(name)}
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
          <More next={next}>{(rest) => <Versions uid={uid} name={name} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}
