// Push tokens and pull tokens of an organization or a folder.
import { can, me } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { labelOf, readMembers } from '../../data/members.ts'
import { isPullToken } from '../../data/pull-tokens.ts'
import type { Group, Identity, PushToken } from '../../data/types.ts'
import { DangerButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Time } from '../../ui/text.tsx'
import { accountWords } from '../../words/account.ts'
import { tokenWords } from '../../words/tokens.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { NewTokenButton } from './new-token.tsx'

export function TokensScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['integrations', 'tokens']}>
      {(group, { groups }) => (
        <>
          <PushTokens group={group} groups={groups} />
          {can('identity.list', group.uid) && <PullTokens group={group} />}
        </>
      )}
    </GroupFrame>
  )
}

const size = 200

function PushTokens({ group, groups }: { group: Group; groups: readonly Group[] }) {
  const read = useLoad(`push tokens ${group.uid}`, async (signal) => {
    const all = await readPage<PushToken>(`/control/v1/groupPushTokens/${group.uid}`, 'pushTokens', {
      ...{ size, signal },
    }).catch((error: unknown) => {
      if (error instanceof Refusal && error.status === 403) return undefined
      throw error
    })
    if (all) {
      const { members } = await readMembers(groups.slice(0, 1), signal).catch(() => ({ members: [] }))
      return { page: all, isAll: true, names: new Map(members.map((one) => [one.uid, labelOf(one)])) }
    }
    const own = await readPage<PushToken>('/control/v1/pushTokens', 'pushTokens', { size, signal })
    const items = own.items.filter((one) => `${one.group}/`.startsWith(`${group.uid}/`))
    return { page: { ...own, items }, isAll: false, names: new Map<string, string>() }
  })
  const ownerOf = (names: ReadonlyMap<string, string>, uid: string) =>
    uid === me.uid ? me.name : names.get(uid) || words.nameUnknown
  return (
    <>
      <h2>{tokenWords.pushTokensHere}</h2>
      <p class="dim">{tokenWords.pushTokensText}</p>
      {can('manifest.list', group.uid) && <NewTokenButton kind="push" group={group} onMade={read.reload} />}
      <Shown of={read}>
        {({ page, isAll, names }) => (
          <>
            {!isAll && <Note>{tokenWords.onlyOwnTokens}</Note>}
            <Cut of={page} />
            {page.items.length === 0 ? (
              <Empty>{tokenWords.noPushTokensHere}</Empty>
            ) : (
              <Table
                caption={tokenWords.pushTokensHere}
                items={page.items}
                keyOf={({ uid }) => uid}
                columns={[
                  { title: words.name, isHead: true, cell: ({ name, userName }) => <bdi>{name || userName}</bdi> },
                  { title: tokenWords.owner, cell: ({ identityUid }) => <bdi>{ownerOf(names, identityUid)}</bdi> },
                  {
                    title: tokenWords.tokenPermissions,
                    cell: ({ push }) => (push ? accountWords.pushAndPull : accountWords.pullOnly),
                  },
                  lastUsed<PushToken>(({ lastUsedTime }) => lastUsedTime),
                  expires<PushToken>(({ expireTime }) => expireTime),
                  {
                    title: words.actions,
                    cell: ({ uid, name, identityUid }) =>
                      (identityUid === me.uid || can('identity.delete', group.uid)) && (
                        <DangerButton
                          button={words.revoke}
                          label={tokenWords.revokePushToken(name)}
                          title={tokenWords.revokePushToken(name)}
                          text={tokenWords.revokePushText}
                          act={async () => {
                            if (identityUid === me.uid) await ask('DELETE', `/control/v1/pushTokens/${uid}`)
                            else {
                              const path = `/control/v1/groupPushTokens/${group.uid}:revoke`
                              await ask('POST', path, { body: { pushTokenUid: uid } })
                            }
                            read.reload()
                          }}
                        />
                      ),
                  },
                ]}
              />
            )}
          </>
        )}
      </Shown>
    </>
  )
}

function PullTokens({ group }: { group: Group }) {
  const read = useLoad(`pull tokens ${group.uid}`, async (signal) => {
    const query = { 'uidp.descendantsOf': group.uid, relationshipType: 'RELATIONSHIP_TYPE_STATIC' }
    const page = await readPage<Identity>('/iam/v2/identities', 'identities', { size, query, signal })
    return { ...page, items: page.items.filter(isPullToken) }
  })
  return (
    <>
      <h2>{tokenWords.pullTokensHere}</h2>
      <p class="dim">{tokenWords.pullTokensText}</p>
      {can('identity.create', group.uid) && can('role_bindings.create', group.uid) && (
        <NewTokenButton kind="pull" group={group} onMade={read.reload} />
      )}
      <Shown of={read}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty>{tokenWords.noPullTokens}</Empty>
          ) : (
            <>
              {page.next !== '' && <Cut of={page} />}
              <Table
                caption={tokenWords.pullTokensHere}
                items={page.items}
                keyOf={({ uid }) => uid}
                columns={[
                  { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
                  lastUsed<Identity>(({ lastSeenTime }) => lastSeenTime),
                  expires<Identity>(({ staticKeys }) => staticKeys?.expirationTime ?? ''),
                  {
                    title: words.actions,
                    cell: ({ uid, name }) =>
                      can('identity.delete', uid) && (
                        <DangerButton
                          button={words.revoke}
                          label={tokenWords.revokePullToken(name)}
                          title={tokenWords.revokePullToken(name)}
                          text={tokenWords.revokePullText}
                          act={async () => {
                            await ask('DELETE', `/iam/v2/identities/${uid}`)
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
    </>
  )
}

const lastUsed = <T,>(timeOf: (one: T) => string | undefined): Column<T> => ({
  title: tokenWords.lastUse,
  cell: (one) => (timeOf(one) ? <Time at={timeOf(one)} /> : <span class="dim">{tokenWords.neverUsed}</span>),
})

const expires = <T,>(timeOf: (one: T) => string): Column<T> => ({
  title: words.expires,
  cell: (one) => (
    <>
      <Time at={timeOf(one)} />{' '}
      {Date.parse(timeOf(one)) <= Date.now() && <Badge kind="warn">{tokenWords.expired}</Badge>}
    </>
  ),
})
