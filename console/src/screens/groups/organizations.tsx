// List of the organizations that the user can see.
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { readPage } from '../../data/list.ts'
import { readTopGroups } from '../../data/top-groups.ts'
import type { Group } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Screen } from '../../ui/screen.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { Pages, pageOf, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { startWords } from '../../words/start.ts'
import { words } from '../../words.ts'
import { CreateButton } from './create.tsx'

const size = 100

export function OrganizationsScreen({ query }: { query: URLSearchParams }) {
  const page = pageOf(query)
  const groups = useLoad(`organizations ${page}`, async (signal) => {
    const asked = { 'uidp.inRoot': true, orderBy: 'name' }
    const { items, total } = await readPage<Group>('/iam/v2/groups', 'groups', { page, size, query: asked, signal })
    const named = items.map((group) => ({ group, names: [group.name] }))
    return items.length > 0 ? { items: named, total } : { items: await readTopGroups(signal), total: undefined }
  })
  return (
    <Screen
      title={words.organizations}
      actions={me.isOperator && <CreateButton kind="organization" parent="" names={[]} isPrimary />}
    >
      <Shown of={groups}>
        {({ items, total = items.length }) =>
          items.length === 0 ? (
            <Empty command="pinfold orgs create NAME">
              {me.isOperator ? startWords.noOrganizations : startWords.notMember}
            </Empty>
          ) : (
            <>
              <Table
                caption={words.organizations}
                items={items}
                keyOf={({ group }) => group.uid}
                columns={[
                  {
                    title: words.name,
                    isHead: true,
                    cell: ({ group, names }) => (
                      <a data-main href={paths.group(names)}>
                        <bdi>{group.name}</bdi>
                      </a>
                    ),
                  },
                  { title: words.description, cell: ({ group }) => <bdi>{group.description}</bdi> },
                  { title: words.createdAt, cell: ({ group }) => <Time at={group.createTime} /> },
                ]}
              />
              <Pages page={page} size={size} total={total} />
            </>
          )
        }
      </Shown>
    </Screen>
  )
}
