// Account of the signed-in user: sessions, push tokens and pending invitations.
import { me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { PendingBinding, PushToken, Session } from '../../data/types.ts'
import { ActButton, DangerButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Screen } from '../../ui/screen.tsx'
import { Cut, Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Badge, Code, Time } from '../../ui/text.tsx'
import { accountWords } from '../../words/account.ts'
import { words } from '../../words.ts'

export function AccountScreen() {
  return (
    <Screen title={words.account}>
      <p>
        {accountWords.signedInAs} <bdi>{me.name}</bdi>
        {me.email !== '' && me.email !== me.name && (
          <>
            {' '}
            (<bdi>{me.email}</bdi>)
          </>
        )}
      </p>
      <Code text={me.uid} label={accountWords.copyUid} />
      <form method="post" action="/ui/signout">
        <button type="submit">{words.signOut}</button>
      </form>
      <h2>{accountWords.sessions}</h2>
      <Sessions />
      <h2>{accountWords.pushTokens}</h2>
      <PushTokens />
      <h2>{accountWords.pendingInvitations}</h2>
      <PendingInvitations />
    </Screen>
  )
}

function Sessions() {
  const read = useLoad('sessions', (signal) =>
    readPage<Session>('/control/v1/sessions', 'sessions', { size: 100, signal }),
  )
  return (
    <Shown of={read}>
      {(page) => (
        <>
          <Cut of={page} />
          <Table
            caption={accountWords.sessions}
            items={page.items}
            keyOf={({ uid }) => uid}
            columns={[
              { title: accountWords.startedAt, isHead: true, cell: ({ createTime }) => <Time at={createTime} /> },
              { title: accountWords.lastUsed, cell: ({ lastUsedTime }) => <Time at={lastUsedTime} /> },
              { title: accountWords.remoteAddress, cell: ({ remoteAddress }) => <code>{remoteAddress}</code> },
              {
                title: words.client,
                cell: ({ userAgent, kind }) => (
                  <>
                    <bdi>{userAgent}</bdi> ({accountWords.sessionKinds[kind] ?? kind})
                  </>
                ),
              },
              {
                title: words.actions,
                cell: ({ uid, current, createTime }) =>
                  current ? (
                    <Badge kind="good">{accountWords.thisSession}</Badge>
                  ) : (
                    <ActButton
                      label={accountWords.endSessionOf(createTime)}
                      act={async () => {
                        await ask('DELETE', `/control/v1/sessions/${uid}`)
                        read.reload()
                      }}
                    >
                      {accountWords.endSession}
                    </ActButton>
                  ),
              },
            ]}
          />
        </>
      )}
    </Shown>
  )
}

function PushTokens() {
  const read = useLoad('push tokens', (signal) =>
    readPage<PushToken>('/control/v1/pushTokens', 'pushTokens', { size: 200, signal }),
  )
  return (
    <Shown of={read}>
      {(page) =>
        page.items.length === 0 ? (
          <Empty command="pinfold tokens push create">{accountWords.noPushTokens}</Empty>
        ) : (
          <>
            <Cut of={page} />
            <Table
              caption={accountWords.pushTokens}
              items={page.items}
              keyOf={({ uid }) => uid}
              columns={[
                { title: words.name, isHead: true, cell: ({ name, userName }) => <bdi>{name || userName}</bdi> },
                {
                  title: accountWords.permissions,
                  cell: ({ push }) => (push ? accountWords.pushAndPull : accountWords.pullOnly),
                },
                { title: accountWords.lastUsed, cell: ({ lastUsedTime }) => <Time at={lastUsedTime} /> },
                { title: words.expires, cell: ({ expireTime }) => <Time at={expireTime} /> },
                {
                  title: words.actions,
                  cell: ({ uid, name }) => (
                    <DangerButton
                      button={words.revoke}
                      label={accountWords.revokeOf(name)}
                      title={accountWords.revokeOf(name)}
                      text={accountWords.revokeText}
                      act={async () => {
                        await ask('DELETE', `/control/v1/pushTokens/${uid}`)
                        read.reload()
                      }}
                    />
                  ),
                },
              ]}
            />
          </>
        )
      }
    </Shown>
  )
}

/** Roles that take effect once the user accepts them. */
function PendingInvitations() {
  const read = useLoad('offers', (signal) =>
    readPage<PendingBinding>('/control/v1/pendingBindings', 'pendingBindings', { size: 200, signal }),
  )
  const answer = (uid: string, what: 'accept' | 'refuse') => async () => {
    await ask('POST', `/control/v1/pendingBindings/${uid}:${what}`, { body: {} })
    read.reload()
  }
  return (
    <Shown of={read}>
      {(page) =>
        page.items.length === 0 ? (
          <Empty>{accountWords.noPendingInvitations}</Empty>
        ) : (
          <>
            <Cut of={page} />
            <Table
              caption={accountWords.pendingInvitations}
              items={page.items}
              keyOf={({ uid }) => uid}
              columns={[
                { title: words.organization, isHead: true, cell: ({ organization }) => <bdi>{organization}</bdi> },
                { title: words.role, cell: ({ role }) => <bdi>{role}</bdi> },
                {
                  title: accountWords.invitedBy,
                  cell: ({ createdByName, createdBy }) => <bdi>{createdByName || createdBy}</bdi>,
                },
                { title: words.time, cell: ({ createTime }) => <Time at={createTime} /> },
                {
                  title: words.actions,
                  cell: ({ uid, organization }) => (
                    <>
                      <ActButton label={accountWords.acceptOf(organization)} act={answer(uid, 'accept')}>
                        {words.accept}
                      </ActButton>{' '}
                      <ActButton label={accountWords.declineOf(organization)} act={answer(uid, 'refuse')}>
                        {words.decline}
                      </ActButton>
                    </>
                  ),
                },
              ]}
            />
          </>
        )
      }
    </Shown>
  )
}
