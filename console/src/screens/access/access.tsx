// Role bindings in a group and above it.
import { paths } from '../../app/paths.ts'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { findGroup } from '../../data/names.ts'
import type { Group, Identity, Role, RoleBinding } from '../../data/types.ts'
import { DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Breakable } from '../../ui/text.tsx'
import { accessWords } from '../../words/access.ts'
import { words } from '../../words.ts'
import { GroupPage } from '../groups/group-frame.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }
type Row = RoleBinding & { above: Group | undefined }
const most = 200

export function AccessScreen({ names, query }: Props) {
  const identity = query.get('identity') ?? ''
  const read = useLoad(`access ${names.join('/')} ${identity}`, async (signal) => {
    const { item: group, groups } = await findGroup(names)
    const lists = await Promise.all(groups.toReversed().map((one) => bindingsOf(one, identity, signal)))
    const rows = lists.flatMap(({ items }, i): Row[] => {
      const at = groups.toReversed()[i]!
      return items.map((binding) => ({ ...binding, above: at.uid === group.uid ? undefined : at }))
    })
    return {
      group,
      rows,
      hidden: lists.filter(({ isHidden }) => isHidden).length,
      cut: lists.some(({ isCut }) => isCut),
    }
  })
  return (
    <GroupPage names={names} tail={['members']}>
      <Shown of={read}>
        {({ group, rows, hidden, cut }) => (
          <>
            {identity !== '' && (
              <Note>
                {accessWords.onlyRolesOf(rows[0]?.identity.name || identity)}{' '}
                <a href={paths.group(names, 'members')}>{words.showAll}</a>
              </Note>
            )}
            {hidden > 0 && <Note kind="warn">{accessWords.hiddenBindings(hidden)}</Note>}
            {cut && <Note>{accessWords.cutBindings(most)}</Note>}
            {rows.length === 0 ? (
              <Empty command="pinfold members add">{accessWords.noBindings}</Empty>
            ) : (
              <Table
                caption={accessWords.access}
                columns={columnsFor(names, group.uid, read.reload)}
                items={rows}
                keyOf={({ uid }) => uid}
              />
            )}
            {can('role_bindings.create', group.uid) && <NewBinding group={group.uid} onMade={read.reload} />}
          </>
        )}
      </Shown>
    </GroupPage>
  )
}

type Bindings = { items: RoleBinding[]; isHidden: boolean; isCut: boolean }

/** Bindings of one group. If this is a group above, the user may have no access to its bindings. */
async function bindingsOf({ uid }: Group, identity: string, signal: AbortSignal): Promise<Bindings> {
  const query = { 'uidp.childrenOf': uid, identity }
  try {
    const { items, next } = await readPage<RoleBinding>('/iam/v2/roleBindings', 'roleBindings', {
      size: most,
      query,
      signal,
    })
    return { items, isHidden: false, isCut: next !== '' }
  } catch (error) {
    if (error instanceof Refusal && error.status === 403) return { items: [], isHidden: true, isCut: false }
    throw error
  }
}

function columnsFor(names: readonly string[], group: string, reload: () => void): Column<Row>[] {
  const columns: Column<Row>[] = [
    {
      title: words.identity,
      isHead: true,
      cell: ({ identity, identityUid }) => (
        <a data-main href={`${paths.group(names, 'members')}?identity=${identityUid}`}>
          <bdi>{identity.name || identity.email || identityUid}</bdi>
        </a>
      ),
    },
    {
      title: words.role,
      cell: ({ role }) => (
        <span title={role.description}>
          <Breakable text={role.name} />
        </span>
      ),
    },
    { title: words.scope, cell: ({ above }) => (above ? words.inheritedFrom(above.name) : words.here) },
    {
      title: accessWords.issuerAndSubject,
      cell: ({ identity }) => <bdi>{[identity.issuer, identity.subject].filter(Boolean).join(' ')}</bdi>,
    },
    {
      title: accessWords.explanation,
      cell: ({ identity, identityUid }) => (
        <a
          href={`${paths.group(names, 'members', 'explain')}?identity=${identityUid}`}
          aria-label={accessWords.explainOf(identity.name || identityUid)}
        >
          {accessWords.explain}
        </a>
      ),
    },
  ]
  if (!can('role_bindings.delete', group)) return columns
  const remove: Column<Row> = {
    title: words.actions,
    cell: ({ uid, above, identity, role }) =>
      above === undefined && (
        <DangerButton
          button={accessWords.remove}
          label={accessWords.removeRoleOf(role.name, identity.name)}
          title={accessWords.removeRoleOf(role.name, identity.name)}
          text={accessWords.removeRoleText}
          act={async () => {
            await ask('DELETE', `/iam/v2/roleBindings/${uid}`)
            reload()
          }}
        />
      ),
  }
  return [...columns, remove]
}

function NewBinding({ group, onMade }: { group: string; onMade: () => void }) {
  const choices = useLoad(`choices ${group}`, async (signal) => {
    const [builtIn, own, identities] = await Promise.all([
      readPage<Role>('/iam/v2/roles', 'roles', { size: 200, query: { 'uidp.inRoot': true, orderBy: 'name' }, signal }),
      readPage<Role>('/iam/v2/roles', 'roles', {
        size: 200,
        query: { 'uidp.childrenOf': group, orderBy: 'name' },
        signal,
      }),
      readPage<Identity>('/iam/v2/identities', 'identities', {
        size: 200,
        query: { 'uidp.childrenOf': group, orderBy: 'name' },
        signal,
      }),
    ])
    return { roles: [...own.items, ...builtIn.items], identities: identities.items }
  })
  const give = async ({ identityUid, roleUid }: Record<string, string>) => {
    await ask('POST', `/iam/v2/roleBindings/${group}`, { body: { identityUid, roleUid } })
    onMade()
  }
  return (
    <details>
      <summary>{accessWords.grantRole}</summary>
      <Shown of={choices}>
        {({ roles, identities }) => (
          <Form
            submit={accessWords.grant}
            onSubmit={give}
            fields={[
              {
                name: 'identityUid',
                label: accessWords.identityUid,
                hint: accessWords.identityHint(identities.map((one) => `${one.name}: ${one.uid}`).slice(0, 5)),
              },
              {
                name: 'roleUid',
                label: words.role,
                type: 'select',
                options: roles.map(({ uid, name }) => ({ value: uid, label: name })),
              },
            ]}
          />
        )}
      </Shown>
    </details>
  )
}
