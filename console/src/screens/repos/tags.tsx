// Tags of a repository with the facts of their images. Sorting, filter and page are in the address.
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { can, me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { type Paged, readNext, readPage } from '../../data/list.ts'
import { readImageSummaries } from '../../data/summaries.ts'
import type { ImageSummary, Repo, Tag } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { ScanResult } from '../../ui/findings.tsx'
import { DangerButton, Form } from '../../ui/form.tsx'
import { type Loaded, useLoad } from '../../ui/load.ts'
import { Empty, Note, Problem, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, pageOf, Table } from '../../ui/table.tsx'
import { Badge, bytes, Copy, Digest } from '../../ui/text.tsx'
import { repoWords } from '../../words/repos.ts'
import { tagWords } from '../../words/tags.ts'
import { numbers, words } from '../../words.ts'
import { platformText } from '../digests/platforms.ts'
import { pinOf } from '../start/start.tsx'

const size = 50
const orders = ['name', 'update_time', 'create_time']
/** Dated tags and tags of package epochs are tags like others. Tags of referrers are on the page of their image. */
const shown = { includeDates: true, includeEpochs: true }

type Props = { names: readonly string[]; repo: Repo; query: URLSearchParams }

export function Tags({ names, repo, query }: Props) {
  const page = pageOf(query)
  const [by = '', way = ''] = (query.get('order') ?? '').split(' ')
  const order = orders.includes(by) && ['asc', 'desc'].includes(way) ? `${by} ${way}` : 'update_time desc'
  const name = query.get('name') ?? ''
  const tags = useLoad(`tags ${repo.uid} ${page} ${order} ${name}`, (signal) =>
    name === '' ? readTags(repo.uid, { page, order, signal }) : searchTags(repo.uid, name, signal),
  )
  const find = ({ tag = '' }: Record<string, string>) =>
    go(tag === '' ? paths.repo(names) : `${paths.repo(names)}?${new URLSearchParams({ name: tag })}`)
  return (
    <>
      <Form
        key={name}
        isLine
        submit={words.find}
        onSubmit={find}
        fields={[{ name: 'tag', label: repoWords.tagByName, type: 'search', value: name, isOptional: true }]}
      />
      <Shown of={tags}>
        {({ items, total = items.length, next }) =>
          items.length === 0 ? (
            name === '' ? (
              <NoItems page={page} size={size} total={total}>
                <Empty command={`docker push ${me.host}/${names.join('/')}:TAG`}>{repoWords.noTags}</Empty>
              </NoItems>
            ) : (
              <NoSuchTag names={names} name={name} />
            )
          ) : (
            <>
              {name === '' && <Pages page={page} size={size} total={total} />}
              {name !== '' && next !== '' && <Note>{repoWords.moreTags(size)}</Note>}
              <TagTable
                names={names}
                repo={repo.uid}
                tags={items}
                order={name === '' ? order : 'name asc'}
                onChange={tags.reload}
              />
              {name === '' && total > size && <Pages isBelow page={page} size={size} total={total} />}
            </>
          )
        }
      </Shown>
    </>
  )
}

type TableProps = {
  names: readonly string[]
  repo: string
  tags: readonly Tag[]
  order: string
  onChange: () => void
}

/** The tags are shown at once. The facts of their images follow, and a failure to read them hides no tag. */
function TagTable({ names, repo, tags, order, onChange }: TableProps) {
  const digests = tags.map(({ digest }) => digest)
  const images = useLoad(`images ${repo} ${digests.join()}`, (signal) => readImageSummaries(repo, digests, signal))
  return (
    <>
      {images.error !== undefined && <Problem error={images.error} retry={images.reload} />}
      <Table
        caption={repoWords.tagsOf(names.join('/'))}
        columns={columnsFor(names, { repo, images, onChange })}
        items={tags}
        keyOf={({ uid }) => uid}
        order={order}
      />
    </>
  )
}

/** Link to the history of a deleted tag. */
function NoSuchTag({ names, name }: { names: readonly string[]; name: string }) {
  return (
    <Empty>
      {repoWords.noTagNamed(name)} {name !== '' && <a href={paths.tag(names, name)}>{repoWords.deletedTagHistory}</a>}
    </Empty>
  )
}

/** Finds the first tags whose names contain a text. Reads further pages of the API, since a page can have few matches. */
async function searchTags(repo: string, part: string, signal: AbortSignal): Promise<Paged<Tag>> {
  const everything = { includeReferrers: true, ...shown }
  const items: Tag[] = []
  let after = ''
  do {
    const query = { part, ...everything }
    const page = await readNext<Tag>(`/registry/v2/repos/${repo}/tags`, 'tags', { after, size, query, signal })
    items.push(...page.items)
    after = page.next
  } while (after !== '' && items.length < size)
  return { items: items.slice(0, size), total: undefined, next: after }
}

type Wanted = { page: number; order: string; signal: AbortSignal }

function readTags(repo: string, { page, order, signal }: Wanted): Promise<Paged<Tag>> {
  const query = { 'uidp.childrenOf': repo, orderBy: order, ...shown }
  return readPage<Tag>('/registry/v2/tags', 'tags', { page, size, query, signal })
}

type Images = Loaded<ReadonlyMap<string, ImageSummary>>
type Context = { repo: string; images: Images; onChange: () => void }

/** Pages with few nodes are drawn quickly, so cells have few nodes. Tag names are ASCII, so they need no `bdi`. */
function columnsFor(names: readonly string[], { repo, images, onChange }: Context): Column<Tag>[] {
  const columns: Column<Tag>[] = [
    {
      title: words.tag,
      order: 'name',
      isHead: true,
      cell: ({ name, deprecated }) => (
        <>
          <a data-main href={paths.tag(names, name)}>
            {name}
          </a>{' '}
          {deprecated && <Badge kind="warn">{repoWords.deprecated}</Badge>}
        </>
      ),
    },
    { title: words.digest, cell: ({ digest }) => <Digest isBare of={digest} href={paths.digest(names, digest)} /> },
    ...imageColumns(names, images),
    { title: words.updatedAt, order: 'update_time', cell: ({ updateTime }) => <Ago at={updateTime} /> },
    {
      title: words.copy,
      cell: ({ name, digest }) => (
        <>
          <Copy isPin text={pinOf(names, digest)} label={tagWords.copyWithDigestOf(name)}>
            {repoWords.withDigest}
          </Copy>{' '}
          <Copy text={`${me.host}/${names.join('/')}:${name}`} label={repoWords.copyWithTagOf(name)}>
            {repoWords.withTag}
          </Copy>
        </>
      ),
    },
  ]
  if (!can('tag.delete', repo)) return columns
  const remove: Column<Tag> = {
    title: words.actions,
    cell: ({ uid, name }) => (
      <DangerButton
        button={words.delete}
        label={repoWords.deleteTagOf(name)}
        title={repoWords.deleteTagOf(name)}
        text={repoWords.deleteTagText}
        mustType={name}
        act={async () => {
          await ask('DELETE', `/registry/v2/tags/${uid}`)
          onChange()
        }}
      />
    ),
  }
  return [...columns, remove]
}

function imageColumns(names: readonly string[], images: Images): Column<Tag>[] {
  const cell = (show: (image: ImageSummary) => preact.ComponentChildren) => (tag: Tag) => {
    const image = images.data?.get(tag.digest)
    if (image) return show(image)
    const isWaiting = images.data === undefined && images.error === undefined
    return isWaiting ? '…' : <span title={repoWords.imageUnknown}>–</span>
  }
  return [
    {
      title: words.vulnerabilities,
      cell: cell(({ digest, vulnerabilities, coverage }) => (
        <ScanResult counts={vulnerabilities} coverage={coverage} href={paths.digest(names, digest)} />
      )),
    },
    { title: repoWords.platformsOfTag, cell: cell(({ platforms }) => platformText(platforms)) },
    { title: words.size, isNumber: true, cell: cell((image) => (image.size ? bytes(Number(image.size)) : '–')) },
    {
      title: repoWords.signed,
      cell: cell(({ signatures }) => (signatures > 0 ? repoWords.isSigned : repoWords.notSigned)),
    },
    {
      title: repoWords.recentPulls,
      isNumber: true,
      cell: cell(({ recentPulls }) => (recentPulls === undefined ? '–' : numbers(Number(recentPulls)))),
    },
  ]
}
