// Changes of members: grant a role to somebody by name, change roles, and remove a member after a look at the effects.
import { useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { countPushTokens, labelOf, type Member, type MemberRole, readMembers } from '../../data/members.ts'
import type { Group } from '../../data/types.ts'
import { Dialog, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Picker } from '../../ui/picker.tsx'
import { Shown } from '../../ui/states.tsx'
import { showToast } from '../../ui/toast.tsx'
import { memberWords } from '../../words/members.ts'
import { readRoles, roleOptions } from '../people/roles.ts'
import { defaultRole, RoleChoice, readScopes, scopeField, sortRoles } from './role-choice.tsx'

/** Groups on the path of the page, the organization first. The last one is the group of the page. */
type Here = { groups: readonly Group[]; onDone: () => void }
const bindings = '/iam/v2/roleBindings'

export function AddButton(here: Here) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {memberWords.addMember}
      </button>
      {isOpen && <AddDialog {...here} onClose={() => setOpen(false)} />}
    </>
  )
}

function AddDialog({ groups, onDone, onClose }: Here & { onClose: () => void }) {
  const group = groups.at(-1)!
  const [member, setMember] = useState('')
  const [chosen, setRole] = useState<string>()
  const read = useLoad(`add ${group.uid}`, async (signal) => {
    const [{ members }, roles, scopes] = await Promise.all([
      // Everybody whom the organization knows can get a role in a folder.
      readMembers(groups.slice(0, 1), signal),
      readRoles(groups[0]!.uid, signal),
      readScopes(group, signal),
    ])
    return { members: members.filter((one) => labelOf(one) !== ''), roles, scopes }
  })
  const add = async (members: readonly Member[], roleUid: string, scope: string) => {
    if (member === '') throw new Refusal(400, memberWords.chooseMember)
    await ask('POST', `${bindings}/${scope}`, { body: { identityUid: member, roleUid } })
    showToast(memberWords.memberAdded(labelOf(members.find(({ uid }) => uid === member)!)))
    onClose()
    onDone()
  }
  return (
    <Dialog title={memberWords.addTo(group.name)} onClose={onClose}>
      <Shown of={read}>
        {({ members, roles, scopes }) => {
          const role = chosen ?? defaultRole(roles)
          return (
            <>
              <Picker
                label={memberWords.member}
                hint={memberWords.memberHint}
                options={members.map((one) => ({
                  value: one.uid,
                  label: labelOf(one),
                  description: (one.email !== one.name && one.email) || one.detail || memberWords.serviceAccounts,
                }))}
                value={member}
                onChoose={setMember}
              />
              <Form
                submit={memberWords.add}
                onSubmit={({ scope }) => add(members, role, scope || group.uid)}
                fields={scopeField({ scopes })}
              >
                <RoleChoice roles={roles} value={role} onChoose={setRole} />
              </Form>
            </>
          )
        }}
      </Shown>
    </Dialog>
  )
}

type About = Here & { member: Member; organization: string }

/** Roles that the page can change: those of the group and below it. */
const changeable = ({ roles }: Member): MemberRole[] => roles.filter(({ where }) => where !== 'above')

export function MemberActions(about: About) {
  const [open, setOpen] = useState<'roles' | 'remove'>()
  const { member, groups } = about
  const group = groups.at(-1)!.uid
  const [canChange, canRemove] = [can('role_bindings.update', group), can('role_bindings.delete', group)]
  const roles = changeable(member)
  const who = labelOf(member) || memberWords.notAccepted
  const close = () => setOpen(undefined)
  const isDeletable = !member.isPerson && can('identity.delete', group)
  return (
    <>
      {canChange && roles.length > 0 && (
        <button
          type="button"
          class="small"
          aria-label={memberWords.changeRolesOf(who)}
          onClick={() => setOpen('roles')}
        >
          {memberWords.changeRoles}
        </button>
      )}{' '}
      {((canRemove && roles.length > 0) || isDeletable) && (
        <button type="button" class="small" aria-label={memberWords.removeOf(who)} onClick={() => setOpen('remove')}>
          {memberWords.remove}
        </button>
      )}
      {open === 'roles' && <RolesDialog {...about} who={who} onClose={close} />}
      {open === 'remove' && <RemoveDialog {...about} who={who} onClose={close} />}
    </>
  )
}

type Named = About & { who: string; onClose: () => void }
const none = 'none'

function RolesDialog({ member, organization, who, onDone, onClose }: Named) {
  const read = useLoad(`roles ${organization}`, (signal) => readRoles(organization, signal))
  const save = async (values: Record<string, string>) => {
    for (const { uid, roleUid } of changeable(member)) {
      const wanted = values[uid]
      if (wanted === none) await ask('DELETE', `${bindings}/${uid}`)
      else if (wanted !== roleUid) await ask('PATCH', `${bindings}/${uid}`, { body: { roleUid: wanted } })
    }
    showToast(memberWords.rolesSaved(who))
    onClose()
    onDone()
  }
  return (
    <Dialog title={memberWords.changeRolesOf(who)} onClose={onClose}>
      <Shown of={read}>
        {(roles) => (
          <Form
            submit={memberWords.saveRoles}
            onSubmit={save}
            fields={changeable(member).map(({ uid, role, roleUid, group }) => ({
              name: uid,
              label: memberWords.roleAt(group.name),
              type: 'select',
              value: roleUid,
              options: [
                ...(roles.some((one) => one.uid === roleUid) ? [] : [{ value: roleUid, label: role }]),
                ...roleOptions(sortRoles(roles)),
                { value: none, label: memberWords.withoutRole },
              ],
            }))}
          >
            <p class="hint">{memberWords.inheritedStay}</p>
          </Form>
        )}
      </Shown>
    </Dialog>
  )
}

function RemoveDialog({ member, groups, who, onDone, onClose }: Named) {
  const group = groups.at(-1)!
  const read = useLoad(`tokens of ${member.uid} in ${group.uid}`, (signal) =>
    countPushTokens(group.uid, member.uid, signal).then((tokens) => ({ tokens })),
  )
  const roles = changeable(member)
  const isDeletion = !member.isPerson && can('identity.delete', member.uid)
  const remove = async () => {
    if (isDeletion) await ask('DELETE', `/iam/v2/identities/${member.uid}`)
    else for (const { uid } of roles) await ask('DELETE', `${bindings}/${uid}`)
    showToast(memberWords.memberRemoved(who))
    onClose()
    onDone()
  }
  const names = roles.map((one) => memberWords.roleIn(one.role, one.group.name)).join(', ')
  return (
    <Dialog title={memberWords.removeTitle(who, group.name)} onClose={onClose}>
      <Shown of={read}>
        {({ tokens = 0 }) => (
          <>
            <p>
              {roles.length > 0 && memberWords.removeEffect(names)} {memberWords.removeTokens(tokens)}{' '}
              {isDeletion ? memberWords.deleteAccountEffect : memberWords.removeUndo}
            </p>
            {!isDeletion && <p class="hint">{memberWords.inheritedStay}</p>}
            <Form
              fields={[]}
              submit={isDeletion ? memberWords.deleteAccount : memberWords.removeMember}
              isDanger
              onSubmit={remove}
            />
          </>
        )}
      </Shown>
    </Dialog>
  )
}
