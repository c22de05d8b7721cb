// Tabs of a repository: tags in pages, history, readme, pull command, and settings.
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { can, me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { type Paged, readNext, readPage } from '../../data/list.ts'
import type { WithPath } from '../../data/names.ts'
import type { Repo, Tag } from '../../data/types.ts'
import { DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, pageOf, Table } from '../../ui/table.tsx'
import { Badge, Copy, Digest, Time } from '../../ui/text.tsx'
import { repoWords } from '../../words/repos.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { pinOf } from '../start/start.tsx'
import { readMoves } from '../tags/moves.ts'
import { When } from '../tags/when.tsx'
import { Pull } from './pull.tsx'
import { Readme } from './readme.tsx'
import { RepoFrame } from './repo-frame.tsx'
import { RepoSettings } from './settings.tsx'

const size = 50
const orders = ['name', 'update_time', 'create_time']

type Props = { names: readonly string[]; query: URLSearchParams }

export function TagsScreen({ names, query }: Props) {
  return (
    <RepoFrame names={names} view="tags">
      {({ item }) => <Tags names={names} repo={item} query={query} />}
    </RepoFrame>
  )
}

export function RepoHistoryScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="history">
      {({ item }) => <RepoHistory names={names} repo={item} />}
    </RepoFrame>
  )
}

export function ReadmeScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="readme">
      {({ item }) => <Readme repo={item.uid} />}
    </RepoFrame>
  )
}

export function PullScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="pull">
      {({ item }) => <Pull names={names} repo={item} />}
    </RepoFrame>
  )
}

export function RepoSettingsScreen({ names }: Props) {
  return (
    <RepoFrame names={names} view="settings">
      {({ item }, { reload }) => <RepoSettings names={names} repo={item} onChange={reload} />}
    </RepoFrame>
  )
}

type TagsProps = { names: readonly string[]; repo: WithPath<Repo>['item']; query: URLSearchParams }

function Tags({ names, repo, query }: TagsProps) {
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
              <Table
                caption={repoWords.tagsOf(names.join('/'))}
                columns={columnsFor(names, repo.uid, tags.reload)}
                items={items}
                keyOf={({ uid }) => uid}
                order={name === '' ? order : 'name asc'}
              />
              {name === '' && total > size && <Pages isBelow page={page} size={size} total={total} />}
            </>
          )
        }
      </Shown>
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
  const everything = { includeReferrers: true, includeDates: true, includeEpochs: true }
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
  const query = { 'uidp.childrenOf': repo, orderBy: order }
  return readPage<Tag>('/registry/v2/tags', 'tags', { page, size, query, signal })
}

/** Pages with few nodes are drawn quickly, so cells have few nodes. Tag names are ASCII, so they need no `bdi`. */
function columnsFor(names: readonly string[], repo: string, reload: () => void): Column<Tag>[] {
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
    { title: words.updatedAt, order: 'update_time', cell: ({ updateTime }) => <Time at={updateTime} /> },
    { title: words.createdAt, order: 'create_time', cell: ({ createTime }) => <Time at={createTime} /> },
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
          reload()
        }}
      />
    ),
  }
  return [...columns, remove]
}

type HistoryProps = { names: readonly string[]; repo: Repo; after?: string }

/** Tag history of a repository, newest entry first, in pages. */
function RepoHistory({ names, repo, after = '' }: HistoryProps) {
  const page = useLoad(`history ${repo.uid} ${after}`, (signal) => readMoves(repo.uid, { after, size: 100 }, signal))
  return (
    <Shown of={page}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{repoWords.noRepoHistory}</Empty>}
          {items.length > 0 && (
            <Table
              caption={repoWords.tagHistory}
              items={items}
              keyOf={({ tag, time }) => `${tag} ${time}`}
              columns={[
                {
                  title: words.tag,
                  isHead: true,
                  cell: ({ tag, time }) => (
                    <a data-main href={paths.tag(names, tag, { at: time })}>
                      <bdi>{tag}</bdi>
                    </a>
                  ),
                },
                { title: words.event, cell: ({ event }) => tagWords.tagEvents[event] ?? event },
                {
                  title: words.digest,
                  cell: ({ digest }) => <Digest of={digest} href={paths.digest(names, digest)} />,
                },
                { title: words.time, cell: (move) => <When move={move} /> },
                { title: words.actor, cell: ({ actorName }) => <bdi>{actorName || words.nameUnknown}</bdi> },
                { title: tagWords.source, cell: ({ source }) => tagWords.sources[source] },
              ]}
            />
          )}
          <More next={next} label={words.showOlder}>
            {(rest) => <RepoHistory names={names} repo={repo} after={rest} />}
          </More>
        </>
      )}
    </Shown>
  )
}
