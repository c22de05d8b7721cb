// Screen of a group, with its folders and repositories as a tree, or those whose names contain a text as a list.
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { me } from '../../app/session.ts'
import { findGroup } from '../../data/names.ts'
import type { Group } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { NoItems, Pages, pageOf } from '../../ui/table.tsx'
import { groupWords } from '../../words/groups.ts'
import { words } from '../../words.ts'
import { CreateHere } from './create.tsx'
import { FoundInGroup } from './found-in-group.tsx'
import { GroupPage } from './group-frame.tsx'
import { type Level, pageSize, readLevel } from './levels.ts'
import { Tree } from './tree.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }

export function GroupScreen({ names, query }: Props) {
  const page = pageOf(query)
  const order = query.get('order') === 'name desc' ? 'name desc' : 'name asc'
  const text = query.get('q') ?? ''
  const read = useLoad(`group ${names.join('/')} ${page} ${order}`, async (signal) => {
    const { item: group } = await findGroup(names)
    return { group, level: await readLevel(group.uid, { order, page }, signal) }
  })
  const find = ({ q }: Record<string, string>) => go(paths.with(here(), { q, page: undefined }))
  return (
    <GroupPage
      names={names}
      tail={['repositories']}
      actions={read.data && <CreateHere group={read.data.group} names={names} />}
    >
      <Shown of={read}>
        {({ group, level }) => (
          <>
            {group.description !== '' && (
              <p class="dim">
                <bdi>{group.description}</bdi>
              </p>
            )}
            {(level.rows.length > 0 || text !== '') && (
              <Form
                key={text}
                isLine
                submit={words.find}
                onSubmit={find}
                fields={[
                  { name: 'q', label: groupWords.partOfGroupName, type: 'search', value: text, isOptional: true },
                ]}
              />
            )}
            {text === '' ? (
              <Content names={names} group={group} level={level} query={query} />
            ) : (
              <FoundInGroup names={names} group={group.uid} text={text} />
            )}
          </>
        )}
      </Shown>
    </GroupPage>
  )
}

type ContentProps = Props & { group: Group; level: Level }

function Content({ names, group, level, query }: ContentProps) {
  const page = pageOf(query)
  const order = query.get('order') === 'name desc' ? 'name desc' : 'name asc'
  if (level.rows.length === 0) {
    return (
      <NoItems page={page} size={pageSize} total={level.repos}>
        <Empty command={`docker push ${me.host}/${names.join('/')}/NAME:TAG`}>{groupWords.noRepos}</Empty>
      </NoItems>
    )
  }
  return (
    <>
      <Tree key={order} names={names} level={level} query={query} order={order} />
      <More next={level.moreFolders} label={groupWords.moreFolders}>
        {(after) => <MoreFolders names={names} group={group.uid} after={after} query={query} order={order} />}
      </More>
      {level.repos > pageSize && <Pages page={page} size={pageSize} total={level.repos} />}
    </>
  )
}

type MoreProps = Props & { group: string; after: string; order: string }

function MoreFolders({ names, group, after, query, order }: MoreProps) {
  const read = useLoad(`folders ${group} ${after} ${order}`, (signal) => readLevel(group, { order, after }, signal))
  return (
    <Shown of={read}>
      {(level) => (
        <>
          <Tree names={names} level={level} query={query} order={order} />
          <More next={level.moreFolders} label={groupWords.moreFolders}>
            {(rest) => <MoreFolders names={names} group={group} after={rest} query={query} order={order} />}
          </More>
        </>
      )}
    </Shown>
  )
}
