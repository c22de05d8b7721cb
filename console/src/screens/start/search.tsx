// Results of a search for a path, a tag, a digest, a vulnerability or a name.
import { useEffect } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { useLoad } from '../../ui/load.ts'
import { noImagesText } from '../../ui/scan-words.ts'
import { Screen } from '../../ui/screen.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Digest } from '../../ui/text.tsx'
import { startWords } from '../../words/start.ts'
import { words } from '../../words.ts'
import { type FoundImage, type FoundResource, find, targetOf } from './find.ts'
import { TagTable } from './start.tsx'

export function SearchScreen({ q }: { q: string }) {
  const found = useLoad(`search ${q}`, (signal) => find(q, signal))
  const target = found.data && targetOf(found.data)
  useEffect(() => {
    if (target !== undefined) go(target, { replace: true })
  }, [target])
  return (
    <Screen title={startWords.resultsFor(q)}>
      <Shown of={found}>
        {({ tags, images, resources, unknown, unscanned, kind }) => (
          <>
            {unknown > 0 && <Note kind="warn">{startWords.unknownImages(unknown)}</Note>}
            {images.length > 0 && unscanned !== '' && (
              <Note kind="warn">
                <bdi>{startWords.alsoUnscanned(unscanned)}</bdi>
              </Note>
            )}
            {tags.length > 0 && <TagTable caption={words.tags} tags={tags} />}
            {images.length > 0 && (
              <Table
                caption={startWords.vulnerableImages}
                columns={imageColumns}
                items={images}
                keyOf={({ repoUid, digest }) => repoUid + digest}
              />
            )}
            {resources.length > 0 && (
              <Table
                caption={startWords.foundResources}
                columns={resourceColumns}
                items={resources}
                keyOf={({ uid }) => uid}
              />
            )}
            {tags.length + images.length + resources.length === 0 && (
              <Empty>{kind === 'vulnerability' ? noImagesText(unscanned) : startWords.nothingFound[kind]}</Empty>
            )}
          </>
        )}
      </Shown>
    </Screen>
  )
}

const imageColumns: Column<FoundImage>[] = [
  {
    title: words.image,
    isHead: true,
    cell: ({ names, digest }) => (
      <>
        <a data-main href={paths.repo(names)}>
          <bdi>{names.join('/')}</bdi>
        </a>{' '}
        <Digest of={digest} href={paths.digest(names, digest)} />
      </>
    ),
  },
  {
    title: startWords.currentTags,
    cell: ({ tags, moreTags, names }) => (
      <>
        {tags.map((tag) => (
          <a key={tag} class="chip" href={paths.tag(names, tag)}>
            <bdi>{tag}</bdi>
          </a>
        ))}
        {moreTags && '…'}
      </>
    ),
  },
  { title: words.severity, cell: ({ severity }) => words.severities[severity] ?? severity },
  {
    title: words.state,
    cell: ({ state }) => (
      <Badge kind={state === 'AFFECTED' ? 'bad' : 'warn'}>{words.findingStates[state] ?? state}</Badge>
    ),
  },
  { title: words.packages, cell: ({ purls }) => <bdi>{purls.join(', ')}</bdi> },
]

const resourceColumns: Column<FoundResource>[] = [
  {
    title: words.name,
    isHead: true,
    cell: ({ href, label }) => (
      <a data-main href={href}>
        <bdi>{label}</bdi>
      </a>
    ),
  },
  { title: words.kind, cell: ({ kind }) => startWords.kinds[kind] },
  { title: words.description, cell: ({ about }) => <bdi>{about}</bdi> },
]
