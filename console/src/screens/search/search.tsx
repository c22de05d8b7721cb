// Page of search results: names that contain the text, or the images with a vulnerability.
import { useEffect } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { Ago } from '../../ui/ago.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { noImagesText } from '../../ui/scan-words.ts'
import { Screen } from '../../ui/screen.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Digest } from '../../ui/text.tsx'
import { searchWords } from '../../words/search.ts'
import { words } from '../../words.ts'
import { type Found, type FoundImage, find, findNames } from './find.ts'
import { Marked } from './marked.tsx'
import { hrefOf, iconOf, isKind, kinds, labelOf, type Result } from './results.ts'

export function SearchScreen({ q, kind }: { q: string; kind: string }) {
  const found = useLoad(`search ${kind} ${q}`, (signal) => find(q, kind, signal))
  const target = found.data?.kind === 'target' ? found.data.href : undefined
  useEffect(() => {
    if (target !== undefined) go(target, { replace: true })
  }, [target])
  const tab = (label: string, of?: string) => ({
    label,
    href: paths.with(here(), { kind: of, page: undefined }),
    isNow: (isKind(kind) ? kind : undefined) === of,
  })
  const tabs = [tab(searchWords.allKinds), ...kinds.map((one) => tab(searchWords.kinds[one], one))]
  return (
    <Screen title={searchWords.resultsFor(q)} tabs={tabs}>
      <Shown of={found}>{(data) => <Results found={data} kind={kind} />}</Shown>
    </Screen>
  )
}

function Results({ found, kind }: { found: Found; kind: string }) {
  if (found.kind === 'target') return null
  if (found.kind === 'vulnerability') return <VulnerableImages found={found} />
  const { q, results, next } = found
  if (results.length === 0 && next === '') return <Empty>{searchWords.none(q)}</Empty>
  return (
    <>
      <Table
        caption={searchWords.foundNames}
        columns={columnsFor(q)}
        items={results}
        keyOf={(one) => one.kind + one.path + one.name + one.resourceUid}
      />
      <More next={next}>{(after) => <Rest q={q} kind={kind} after={after} />}</More>
    </>
  )
}

function Rest({ q, kind, after }: { q: string; kind: string; after: string }) {
  const found = useLoad(`search ${kind} ${q} ${after}`, (signal) => findNames(q, kind, after, signal))
  return <Shown of={found}>{(data) => <Results found={data} kind={kind} />}</Shown>
}

type Vulnerable = Extract<Found, { kind: 'vulnerability' }>

function VulnerableImages({ found: { images, unknown, unscanned } }: { found: Vulnerable }) {
  if (images.length === 0) return <Empty>{noImagesText(unscanned)}</Empty>
  // The summary of what was not scanned covers the images that could not be read.
  const warning =
    unscanned !== '' ? searchWords.alsoUnscanned(unscanned) : unknown > 0 && searchWords.unknownImages(unknown)
  return (
    <>
      {warning && (
        <Note kind="warn">
          <bdi>{warning}</bdi>
        </Note>
      )}
      <Table
        caption={searchWords.vulnerableImages}
        columns={imageColumns}
        items={images}
        keyOf={({ repoUid, digest }) => repoUid + digest}
      />
    </>
  )
}

const imageColumns: Column<FoundImage>[] = [
  {
    title: words.image,
    isHead: true,
    cell: ({ names, digest }) => <ImageLink names={names} digest={digest} />,
  },
  { title: searchWords.currentTags, cell: (image) => <TagLinks {...image} /> },
  { title: words.severity, cell: ({ severity }) => words.severities[severity] ?? severity },
  {
    title: words.state,
    cell: ({ state }) => (
      <Badge kind={state === 'AFFECTED' ? 'bad' : 'warn'}>{words.findingStates[state] ?? state}</Badge>
    ),
  },
  { title: words.packages, cell: ({ purls }) => <bdi>{purls.join(', ')}</bdi> },
]

export function ImageLink({ names, digest }: { names: readonly string[]; digest: string }) {
  return (
    <>
      <a data-main href={paths.digest(names, digest)}>
        <bdi>{names.join('/')}</bdi>
      </a>{' '}
      <Digest of={digest} href={paths.digest(names, digest)} />
    </>
  )
}

type Tagged = { tags: readonly string[]; moreTags: boolean; names: readonly string[] }

export function TagLinks({ tags, moreTags, names }: Tagged) {
  return (
    <>
      {tags.map((tag) => (
        <a key={tag} class="chip" href={paths.tag(names, tag)}>
          <bdi>{tag}</bdi>
        </a>
      ))}
      {moreTags && '…'}
    </>
  )
}

const columnsFor = (q: string): Column<Result>[] => [
  {
    title: words.name,
    isHead: true,
    cell: (one) => (
      <a data-main href={hrefOf(one)}>
        <bdi>
          <Marked label={labelOf(one)} q={q} />
        </bdi>
      </a>
    ),
  },
  {
    title: words.kind,
    cell: ({ kind }) => (
      <span class="with-icon">
        <Icon name={iconOf[kind]} /> {searchWords.kindOf[kind]}
      </span>
    ),
  },
  { title: searchWords.detail, cell: ({ detail }) => <bdi>{detail}</bdi> },
  { title: searchWords.updated, cell: ({ updateTime }) => updateTime !== undefined && <Ago at={updateTime} /> },
]
