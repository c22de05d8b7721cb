// Invitations, and the identity providers of an organization.
import { useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { Group, Invite, Role } from '../../data/types.ts'
import { Allowed } from '../../ui/allowed.tsx'
import { DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Note, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Code, Time } from '../../ui/text.tsx'
import { peopleWords } from '../../words/people.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { EmailDomains } from './domains.tsx'
import { Providers } from './providers.tsx'

export function PeopleScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['members', 'invitations']}>
      {(group, { groups }) => (
        <>
          <h2>{peopleWords.invites}</h2>
          <Allowed isAllowed={can('group_invites.list', group.uid)} otherwise={peopleWords.invitesHidden}>
            <Invites group={group} />
          </Allowed>
          {groups.length === 1 && (
            <>
              <h2>{peopleWords.providers}</h2>
              <Allowed isAllowed={can('identity_providers.list', group.uid)} otherwise={peopleWords.providersHidden}>
                <Providers group={group} />
                <h2>{peopleWords.emailDomains}</h2>
                <EmailDomains group={group} />
              </Allowed>
            </>
          )}
        </>
      )}
    </GroupFrame>
  )
}

const root = '/iam/v2/groupInvites'

function Invites({ group }: { group: Group }) {
  const read = useLoad(`invites ${group.uid}`, (signal) =>
    readPage<Invite>(root, 'groupInvites', { size: 200, query: { 'uidp.childrenOf': group.uid }, signal }),
  )
  return (
    <>
      <Shown of={read}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty>{peopleWords.noInvites}</Empty>
          ) : (
            <>
              <Cut of={page} />
              <Table
                caption={peopleWords.invites}
                items={page.items}
                keyOf={({ uid }) => uid}
                columns={[
                  { title: words.role, isHead: true, cell: ({ role }) => <bdi>{role?.name ?? ''}</bdi> },
                  { title: peopleWords.forWhom, cell: ({ email }) => <bdi>{email || peopleWords.anybody}</bdi> },
                  {
                    title: peopleWords.uses,
                    cell: ({ singleUse }) => (singleUse ? peopleWords.once : peopleWords.often),
                  },
                  { title: words.expires, cell: ({ expirationTime }) => <Time at={expirationTime} /> },
                  ...(can('group_invites.delete', group.uid) ? [revokeColumn(read.reload)] : []),
                ]}
              />
            </>
          )
        }
      </Shown>
      {can('group_invites.create', group.uid) && <NewInvite group={group} onMade={read.reload} />}
    </>
  )
}

const revokeColumn = (reload: () => void) => ({
  title: words.actions,
  cell: ({ uid, role, email }: Invite) => (
    <DangerButton
      button={words.revoke}
      label={peopleWords.revokeInviteOf(role?.name ?? '', email)}
      title={peopleWords.revokeInviteOf(role?.name ?? '', email)}
      text={peopleWords.revokeInviteText}
      act={async () => {
        await ask('DELETE', `${root}/${uid}`)
        reload()
      }}
    />
  ),
})

function NewInvite({ group, onMade }: { group: Group; onMade: () => void }) {
  const [link, setLink] = useState<string>()
  const roles = useLoad('roles to invite', (signal) =>
    readPage<Role>('/iam/v2/roles', 'roles', { size: 200, query: { 'uidp.inRoot': true, orderBy: 'name' }, signal }),
  )
  const make = async ({ roleUid, email, days, singleUse }: Record<string, string>) => {
    const body = { roleUid, ...(email && { email }), ttl: `${Number(days) * 86_400}s`, singleUse: singleUse === 'yes' }
    const made = await ask<Invite>('POST', `${root}/${group.uid}`, { body })
    setLink(made.link)
    onMade()
  }
  return (
    <details>
      <summary>{peopleWords.newInvite}</summary>
      <Shown of={roles}>
        {({ items }) => (
          <Form
            submit={peopleWords.createInvite}
            onSubmit={make}
            fields={[
              {
                name: 'roleUid',
                label: words.role,
                type: 'select',
                value: items.find(({ name }) => name === 'viewer')?.uid ?? '',
                options: items
                  .filter(({ name }) => name !== 'operator')
                  .map(({ uid, name }) => ({ value: uid, label: name })),
              },
              { name: 'email', label: peopleWords.onlyFor, type: 'email', isOptional: true },
              { name: 'days', label: peopleWords.days, type: 'number', value: '7' },
              { name: 'singleUse', label: peopleWords.onlyOnce, type: 'check', value: 'yes' },
            ]}
          />
        )}
      </Shown>
      {link !== undefined && (
        <Note kind="good">
          <p>{peopleWords.inviteOnce}</p>
          <Code text={link} label={peopleWords.copyLink} />
        </Note>
      )}
    </details>
  )
}
