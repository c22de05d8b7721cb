// Screen of a group, with its folders and repositories.
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { readNext, readPage } from '../../data/list.ts'
import { findGroup } from '../../data/names.ts'
import type { Group, Repo } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, pageOf, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { groupWords } from '../../words/groups.ts'
import { words } from '../../words.ts'
import { CreateHere } from './create.tsx'
import { GroupPage } from './group-frame.tsx'

const size = 100

export function GroupScreen({ names, query }: { names: readonly string[]; query: URLSearchParams }) {
  const page = pageOf(query)
  const read = useLoad(`group ${names.join('/')} ${page}`, async (signal) => {
    const { item: group } = await findGroup(names)
    const asked = { 'uidp.childrenOf': group.uid, orderBy: 'name' }
    return { group, repos: await readPage<Repo>('/registry/v2/repos', 'repos', { page, size, query: asked, signal }) }
  })
  return (
    <GroupPage
      names={names}
      tail={['repositories']}
      actions={read.data && <CreateHere group={read.data.group} names={names} />}
    >
      <Shown of={read}>
        {({ group, repos }) => (
          <>
            {group.description !== '' && (
              <p class="dim">
                <bdi>{group.description}</bdi>
              </p>
            )}
            <Folders names={names} group={group.uid} />
            {repos.items.length > 0 ? (
              <>
                <Table
                  caption={groupWords.repositories}
                  isCaptionShown
                  columns={repoColumns(names)}
                  items={repos.items}
                  keyOf={({ uid }) => uid}
                />
                <Pages page={page} size={size} total={repos.total ?? repos.items.length} />
              </>
            ) : (
              <NoItems page={page} size={size} total={repos.total ?? 0}>
                <Empty command={`docker push ${me.host}/${names.join('/')}/NAME:TAG`}>{groupWords.noRepos}</Empty>
              </NoItems>
            )}
          </>
        )}
      </Shown>
    </GroupPage>
  )
}

type FoldersProps = { names: readonly string[]; group: string; after?: string }

/** Folders of a group, in pages. Shows nothing if the group has no folders. */
function Folders({ names, group, after = '' }: FoldersProps) {
  const read = useLoad(`folders ${group} ${after}`, (signal) => {
    const query = { 'uidp.childrenOf': group, orderBy: 'name' }
    return readNext<Group>('/iam/v2/groups', 'groups', { after, size: 200, query, signal })
  })
  return (
    <Shown of={read}>
      {({ items, next }) => (
        <>
          {items.length > 0 && (
            <Table
              caption={groupWords.folders}
              isCaptionShown
              columns={folderColumns(names)}
              items={items}
              keyOf={({ uid }) => uid}
            />
          )}
          <More next={next}>{(rest) => <Folders names={names} group={group} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}

const folderColumns = (names: readonly string[]): Column<Group>[] => [
  {
    title: words.name,
    isHead: true,
    cell: ({ name }) => (
      <a data-main href={paths.group([...names, name])}>
        <bdi>{name}</bdi>/
      </a>
    ),
  },
  { title: words.description, cell: ({ description }) => <bdi>{description}</bdi> },
]

const repoColumns = (names: readonly string[]): Column<Repo>[] => [
  {
    title: words.name,
    isHead: true,
    cell: ({ name }) => (
      <a data-main href={paths.repo([...names, name])}>
        <bdi>{name}</bdi>
      </a>
    ),
  },
  { title: words.description, cell: ({ description }) => <bdi>{description}</bdi> },
  { title: words.createdAt, cell: ({ createTime }) => <Time at={createTime} /> },
]
