// Name and description of a group, and its deletion. Only an empty group can be deleted.
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { can, isKnown } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { forgetPaths } from '../../data/names.ts'
import type { Group } from '../../data/types.ts'
import { DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Note, Shown, Waiting } from '../../ui/states.tsx'
import { groupWords } from '../../words/groups.ts'
import { numbers, words } from '../../words.ts'
import { GroupFrame } from './group-frame.tsx'

export function GroupSettingsScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['settings']}>
      {(group) => <Settings names={names} group={group} />}
    </GroupFrame>
  )
}

type Props = { names: readonly string[]; group: Group }

function Settings({ names, group }: Props) {
  const [canChange, canDelete] = [can('groups.update', group.uid), can('groups.delete', group.uid)]
  if (!isKnown()) return <Waiting />
  if (!canChange && !canDelete) return <Empty>{groupWords.settingsHidden}</Empty>
  const describe = async ({ description }: Record<string, string>) => {
    await ask('PATCH', `/iam/v2/groups/${group.uid}`, { body: { description } })
    forgetPaths()
    go(paths.group(names))
  }
  return (
    <>
      {canChange && (
        <Form
          submit={words.save}
          onSubmit={describe}
          fields={[{ name: 'description', label: words.description, value: group.description, isOptional: true }]}
        />
      )}
      {canDelete && <DeleteGroup names={names} group={group} />}
    </>
  )
}

const blocking = ['groups', 'repos', 'roles', 'identities', 'identityProviders', 'subscriptions'] as const
const deletedWith = ['roleBindings', 'groupInvites'] as const
type Counted = (typeof blocking)[number] | (typeof deletedWith)[number]

const lists: Record<Counted, string> = {
  groups: '/iam/v2/groups',
  repos: '/registry/v2/repos',
  roles: '/iam/v2/roles',
  identities: '/iam/v2/identities',
  identityProviders: '/iam/v2/identityProviders',
  subscriptions: '/events/v2/subscriptions',
  roleBindings: '/iam/v2/roleBindings',
  groupInvites: '/iam/v2/groupInvites',
}

type Count = { what: Counted; count: number | undefined }

/** Number of resources of a kind in a group. `undefined` if the user cannot list them. */
async function countOf(what: Counted, group: string, signal: AbortSignal): Promise<Count> {
  const query = { 'uidp.childrenOf': group }
  const read = readPage(lists[what], what, { size: 1, query, signal })
  return read.then(
    ({ items, total }) => ({ what, count: total ?? items.length }),
    (error: unknown) => {
      if (error instanceof Refusal && error.status === 403) return { what, count: undefined }
      throw error
    },
  )
}

function DeleteGroup({ names, group }: Props) {
  const read = useLoad(`inside ${group.uid}`, async (signal) => {
    const counts = (all: readonly Counted[]) => Promise.all(all.map((one) => countOf(one, group.uid, signal)))
    const [inside, deletedToo] = await Promise.all([counts(blocking), counts(deletedWith)])
    return {
      inside: inside.filter(({ count }) => count !== 0),
      deletedToo: deletedToo.filter(({ count }) => count !== 0),
    }
  })
  const remove = async () => {
    await ask('DELETE', `/iam/v2/groups/${group.uid}`)
    forgetPaths()
    go(names.length > 1 ? paths.group(names.slice(0, -1)) : paths.organizations)
  }
  return (
    <>
      <h2>{groupWords.deleteGroup}</h2>
      <Shown of={read}>
        {({ inside, deletedToo }) => (
          <>
            {inside.length > 0 && (
              <Note kind="warn">
                <p>{groupWords.groupNotEmpty}</p>
                <Counts of={inside} />
              </Note>
            )}
            <p>{groupWords.deleteGroupText}</p>
            <Counts of={deletedToo} />
            {inside.every(({ count }) => count === undefined) && (
              <DangerButton
                button={words.delete}
                label={groupWords.deleteGroupOf(group.name)}
                title={groupWords.deleteGroupOf(group.name)}
                text={groupWords.deleteGroupText}
                mustType={group.name}
                act={remove}
              />
            )}
          </>
        )}
      </Shown>
    </>
  )
}

function Counts({ of }: { of: readonly Count[] }) {
  if (of.length === 0) return null
  return (
    <ul>
      {of.map(({ what, count }) => (
        <li key={what}>
          {groupWords.insideGroup[what]}: {count === undefined ? words.unknown : numbers(count)}
        </li>
      ))}
    </ul>
  )
}
