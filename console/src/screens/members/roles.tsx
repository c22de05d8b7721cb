// Roles of an organization or a folder: built-in ones, and custom ones that members create.
import { useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { parentOf } from '../../data/names.ts'
import { capabilityNames } from '../../data/rights.ts'
import type { Group, Role } from '../../data/types.ts'
import { DangerButton, Dialog, Form } from '../../ui/form.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useLoad } from '../../ui/load.ts'
import { Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Badge } from '../../ui/text.tsx'
import { creationWords } from '../../words/creation.ts'
import { memberWords } from '../../words/members.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { sortRoles } from './role-choice.tsx'

export function RolesScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['members', 'roles']}>
      {(group) => <Roles group={group} />}
    </GroupFrame>
  )
}

const path = '/iam/v2/roles'
const isCustom = ({ uid }: Role): boolean => parentOf(uid) !== ''

function Roles({ group }: { group: Group }) {
  const [edited, setEdited] = useState<Role | 'new'>()
  const read = useLoad(`roles in ${group.uid}`, async (signal) => {
    const pages = [{ 'uidp.childrenOf': group.uid }, { 'uidp.inRoot': true }].map((query) =>
      readPage<Role>(path, 'roles', { size: 200, query: { ...query, orderBy: 'name' }, signal }),
    )
    const [own, builtIn] = await Promise.all(pages)
    return [...own!.items, ...sortRoles(builtIn!.items.filter(({ name }) => name !== 'operator'))]
  })
  return (
    <>
      {can('roles.create', group.uid) && (
        <p>
          <button type="button" onClick={() => setEdited('new')}>
            <Icon name="add" />
            {creationWords.newRole}
          </button>
        </p>
      )}
      <Shown of={read}>
        {(roles) => (
          <>
            <Table
              caption={memberWords.roles}
              items={roles}
              keyOf={({ uid }) => uid}
              columns={[
                { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
                { title: words.description, cell: ({ description }) => <bdi>{description}</bdi> },
                {
                  title: words.kind,
                  cell: (role) => (
                    <Badge kind="plain">{isCustom(role) ? creationWords.customRole : creationWords.builtInRole}</Badge>
                  ),
                },
                {
                  title: words.details,
                  cell: ({ capabilities }) => creationWords.capabilityCount(capabilities.length),
                },
                {
                  title: words.actions,
                  cell: (role) =>
                    isCustom(role) && (
                      <>
                        {can('roles.update', group.uid) && (
                          <button
                            type="button"
                            class="small"
                            aria-label={creationWords.editRole(role.name)}
                            onClick={() => setEdited(role)}
                          >
                            {words.edit}
                          </button>
                        )}{' '}
                        {can('roles.delete', group.uid) && (
                          <DangerButton
                            button={words.delete}
                            label={creationWords.deleteRole(role.name)}
                            title={creationWords.deleteRole(role.name)}
                            text={creationWords.deleteRoleText}
                            act={async () => {
                              await ask('DELETE', `${path}/${role.uid}`)
                              read.reload()
                            }}
                          />
                        )}
                      </>
                    ),
                },
              ]}
            />
            {edited && (
              <RoleDialog
                group={group.uid}
                roles={roles}
                role={edited === 'new' ? undefined : edited}
                onDone={read.reload}
                onClose={() => setEdited(undefined)}
              />
            )}
          </>
        )}
      </Shown>
    </>
  )
}

type DialogProps = {
  group: string
  roles: readonly Role[]
  role: Role | undefined
  onDone: () => void
  onClose: () => void
}

function RoleDialog({ group, roles, role, onDone, onClose }: DialogProps) {
  const [held, setHeld] = useState<ReadonlySet<string>>(new Set(role?.capabilities ?? []))
  const known = new Set<string>(capabilityNames.map(([, enumName]) => enumName))
  const others = [...held].filter((one) => !known.has(one))
  const toggle = (one: string) => setHeld(new Set(held.has(one) ? [...held].filter((x) => x !== one) : [...held, one]))
  const like = (uid: string) => setHeld(new Set(roles.find((one) => one.uid === uid)?.capabilities ?? []))
  const save = async ({ name, description }: Record<string, string>) => {
    if (held.size === 0) throw new Refusal(400, creationWords.noPermission)
    const body = { name, description, capabilities: [...held] }
    if (role) await ask('PATCH', `${path}/${role.uid}`, { body })
    else await ask('POST', `${path}/${group}`, { body })
    onClose()
    onDone()
  }
  return (
    <Dialog title={role ? creationWords.editRole(role.name) : creationWords.newRole} onClose={onClose}>
      <Form
        submit={role ? creationWords.saveRole : creationWords.createRole}
        onSubmit={save}
        fields={[
          { name: 'name', label: creationWords.roleName, hint: creationWords.roleHint, value: role?.name ?? '' },
          {
            name: 'description',
            label: words.description,
            value: role?.description ?? '',
            isOptional: true,
          },
        ]}
      >
        {role === undefined && (
          <p class="field">
            <label for="like-role">{creationWords.likeRole}</label>
            <select id="like-role" onChange={(event) => like((event.target as HTMLSelectElement).value)}>
              <option value="">–</option>
              {roles.map(({ uid, name }) => (
                <option key={uid} value={uid}>
                  {name}
                </option>
              ))}
            </select>
          </p>
        )}
        {resources().map(([resource, capabilities]) => (
          <fieldset key={resource} class="checks">
            <legend>{creationWords.permissionsOf(resource)}</legend>
            {capabilities.map(([name, enumName]) => (
              <label key={enumName} class="check">
                <input type="checkbox" checked={held.has(enumName)} onChange={() => toggle(enumName)} />
                {name}
              </label>
            ))}
          </fieldset>
        ))}
        {others.length > 0 && <p class="hint">{creationWords.otherPermissions(others.length)}</p>}
      </Form>
    </Dialog>
  )
}

/** Capabilities by resource, such as `repo` for `repo.create`. */
function resources(): [string, (readonly [string, string])[]][] {
  const found = new Map<string, (readonly [string, string])[]>()
  for (const [name, enumName] of capabilityNames) {
    const resource = name.slice(0, name.lastIndexOf('.'))
    found.set(resource, [...(found.get(resource) ?? []), [name, enumName]])
  }
  return [...found].sort(([a], [b]) => a.localeCompare(b))
}
