// Invitations, and the identity providers of an organization.
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { Group, Invite } from '../../data/types.ts'
import { Allowed } from '../../ui/allowed.tsx'
import { DangerButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { peopleWords } from '../../words/people.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { AccessRequests } from '../members/access-requests.tsx'
import { InviteButton } from '../members/invite.tsx'
import { EmailDomains } from './domains.tsx'
import { Providers } from './providers.tsx'

export function PeopleScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['members', 'invitations']}>
      {(group, { groups }) => (
        <>
          {groups.length === 1 && can('group_invites.create', group.uid) && can('role_bindings.create', group.uid) && (
            <AccessRequests organization={group} />
          )}
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
      {can('group_invites.create', group.uid) && (
        <InviteButton group={group} organization={group.uid.split('/')[0]!} onMade={read.reload} />
      )}
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
