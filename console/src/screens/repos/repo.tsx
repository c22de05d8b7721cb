// Screen of a repository: its tags in pages, and its other tabs.
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { can, me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { type Paged, readNext, readPage } from '../../data/list.ts'
import { findRepo, type WithPath } from '../../data/names.ts'
import type { Repo, Tag } from '../../data/types.ts'
import { DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Screen, trailOf } from '../../ui/screen.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, pageOf, Table } from '../../ui/table.tsx'
import { Badge, Code, Copy, Digest, Time } from '../../ui/text.tsx'
import { words } from '../../words.ts'
import { CopiesOf } from '../mirrors/copies.tsx'
import { RepoMirror } from '../mirrors/mirror.tsx'
import { AdmissionPolicies } from '../rules/admission.tsx'
import { CooldownPolicies } from '../rules/cooldown.tsx'
import { Retention } from '../rules/retention.tsx'
import { Risks } from '../rules/risks.tsx'
import { TooYoungTags } from '../rules/too-young-tags.tsx'
import { DeniedTags } from '../rules/verdicts.tsx'
import { pinOf } from '../start/start.tsx'
import { readMoves } from '../tags/moves.ts'
import { When } from '../tags/when.tsx'
import { Readme } from './readme.tsx'
import { RepoSettings } from './settings.tsx'

const size = 200
const orders = ['name', 'update_time', 'create_time']

type Props = { names: readonly string[]; query: URLSearchParams }

export function RepoScreen({ names, query }: Props) {
  const read = useLoad(`repo ${names.join('/')}`, () => findRepo(names))
  const view = query.get('view') ?? 'tags'
  const here = paths.repo(names)
  const tabs = [
    ...Object.entries(words.repoViews).map(([name, label]) => ({
      ...{ label, href: name === 'tags' ? here : `${here}?view=${name}`, isNow: view === name },
    })),
    { label: words.access, href: paths.group(names.slice(0, -1), 'access'), isNow: false },
  ]
  return (
    <Screen title={names.join('/')} trail={trailOf(names)} tabs={tabs}>
      <Shown of={read}>
        {({ item, groups }) => (
          <>
            {item.description !== '' && (
              <p>
                <bdi>{item.description}</bdi>
              </p>
            )}
            {view === 'tags' && <Tags names={names} repo={item} query={query} />}
            {view === 'history' && <RepoHistory names={names} repo={item} />}
            {view === 'promises' && <Retention at={{ uid: item.uid, groups }} query={query} />}
            {view === 'pulls' && (
              <>
                <CooldownPolicies at={{ uid: item.uid, groups }} query={query} />
                <TooYoungTags names={names} repo={item.uid} />
              </>
            )}
            {view === 'gates' && (
              <>
                <AdmissionPolicies at={{ uid: item.uid, groups }} query={query} />
                <DeniedTags names={names} repo={item.uid} />
              </>
            )}
            {view === 'risks' && <Risks at={{ uid: item.uid, groups }} query={query} />}
            {view === 'mirror' && (
              <>
                <RepoMirror repo={item.uid} />
                <CopiesOf repo={item} />
              </>
            )}
            {view === 'readme' && <Readme repo={item.uid} />}
            {view === 'settings' && <RepoSettings names={names} repo={item} onChange={read.reload} />}
            {view === 'pull' && <Code text={`docker pull ${me.host}/${names.join('/')}`} label={words.copyCommand} />}
          </>
        )}
      </Shown>
    </Screen>
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
        fields={[{ name: 'tag', label: words.tagByName, type: 'search', value: name, isOptional: true }]}
      />
      <Shown of={tags}>
        {({ items, total = items.length, next }) =>
          items.length === 0 ? (
            name === '' ? (
              <NoItems page={page} size={size} total={total}>
                <Empty command={`docker push ${me.host}/${names.join('/')}:TAG`}>{words.noTags}</Empty>
              </NoItems>
            ) : (
              <NoSuchTag names={names} name={name} />
            )
          ) : (
            <>
              {name === '' && <Pages page={page} size={size} total={total} />}
              {name !== '' && next !== '' && <Note>{words.moreTags(size)}</Note>}
              <Table
                caption={words.tagsOf(names.join('/'))}
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
      {words.noTagNamed(name)} {name !== '' && <a href={paths.tag(names, name)}>{words.deletedTagHistory}</a>}
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

/** A page has two hundred rows, so cells have few nodes. Tag names are ASCII, so they need no `bdi`. */
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
          {deprecated && <Badge kind="warn">{words.deprecated}</Badge>}
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
          <Copy isPin text={pinOf(names, digest)} label={words.copyWithDigestOf(name)}>
            {words.withDigest}
          </Copy>{' '}
          <Copy text={`${me.host}/${names.join('/')}:${name}`} label={words.copyWithTagOf(name)}>
            {words.withTag}
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
        label={words.deleteTagOf(name)}
        title={words.deleteTagOf(name)}
        text={words.deleteTagText}
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
          {items.length === 0 && <Empty>{words.noRepoHistory}</Empty>}
          {items.length > 0 && (
            <Table
              caption={words.tagHistory}
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
                { title: words.event, cell: ({ event }) => words.tagEvents[event] ?? event },
                {
                  title: words.digest,
                  cell: ({ digest }) => <Digest of={digest} href={paths.digest(names, digest)} />,
                },
                { title: words.time, cell: (move) => <When move={move} /> },
                { title: words.actor, cell: ({ actorName }) => <bdi>{actorName || words.nameUnknown}</bdi> },
                { title: words.source, cell: ({ source }) => words.sources[source] },
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
