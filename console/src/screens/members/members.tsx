// Members of an organization or a folder, by name and email: people, or service accounts.
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { labelOf, type Member, type MemberRole, mostBindings, readMembers } from '../../data/members.ts'
import { findGroup } from '../../data/names.ts'
import { Person } from '../../ui/avatar.tsx'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { accessWords } from '../../words/access.ts'
import { memberWords } from '../../words/members.ts'
import { words } from '../../words.ts'
import { GroupPage } from '../groups/group-frame.tsx'
import { AddButton, MemberActions } from './change-members.tsx'
import { InviteButton } from './invite.tsx'

type Props = { names: readonly string[]; query: URLSearchParams; kind: 'people' | 'serviceAccounts' }

export function MembersScreen({ names, query, kind }: Props) {
  const read = useLoad(`members ${names.join('/')}`, async (signal) => {
    const { groups } = await findGroup(names)
    return { groups, ...(await readMembers(groups, signal)) }
  })
  const tail = kind === 'people' ? ['members'] : ['members', 'service-accounts']
  const text = query.get('q') ?? ''
  const identity = query.get('identity') ?? ''
  const groups = read.data?.groups ?? []
  const actions = groups.length > 0 && <Actions names={names} kind={kind} groups={groups} reload={read.reload} />
  return (
    <GroupPage names={names} tail={tail} actions={actions}>
      <Shown of={read}>
        {({ members, hidden, isCut }) => {
          const shown = members.filter((one) => isShown(one, { kind, text, identity }))
          const only = members.find(({ uid }) => uid === identity)
          return (
            <>
              {identity === '' && <Search key={text} text={text} />}
              {identity !== '' && (
                <Note>
                  {accessWords.onlyRolesOf((only && labelOf(only)) || words.nameUnknown)}{' '}
                  <a href={paths.group(names, 'members')}>{words.showAll}</a>
                </Note>
              )}
              {hidden > 0 && <Note kind="warn">{accessWords.hiddenBindings(hidden)}</Note>}
              {isCut && <Note kind="warn">{memberWords.cutMembers(mostBindings)}</Note>}
              {shown.length === 0 ? (
                <NoMembers kind={kind} text={text} />
              ) : (
                <Table
                  caption={memberWords[kind]}
                  columns={columnsFor(names, kind, groups, read.reload)}
                  items={shown}
                  keyOf={({ uid }) => uid}
                />
              )}
            </>
          )
        }}
      </Shown>
    </GroupPage>
  )
}

type Wanted = { kind: Props['kind']; text: string; identity: string }

/** A search by uid finds people and service accounts on either page. */
function isShown(member: Member, { kind, text, identity }: Wanted): boolean {
  if (identity !== '') return member.uid === identity
  const part = text.toLowerCase()
  const isFound = [member.name, member.email, member.detail].some((one) => one.toLowerCase().includes(part))
  return member.isPerson === (kind === 'people') && isFound
}

function Search({ text }: { text: string }) {
  return (
    <Form
      isLine
      submit={words.find}
      onSubmit={({ q }) => go(paths.with(here(), { q }))}
      fields={[{ name: 'q', label: memberWords.nameOrEmail, type: 'search', value: text, isOptional: true }]}
    />
  )
}

function NoMembers({ kind, text }: { kind: Props['kind']; text: string }) {
  if (text === '') return <Empty>{kind === 'people' ? memberWords.noPeople : memberWords.noServiceAccounts}</Empty>
  const clear = <a href={paths.with(here(), { q: undefined })}>{memberWords.showAllMembers}</a>
  return <Empty action={clear}>{memberWords.noMemberFound(text)}</Empty>
}

type Groups = Parameters<typeof AddButton>[0]['groups']
type ActionProps = { names: readonly string[]; kind: Props['kind']; groups: Groups; reload: () => void }

function Actions({ names, kind, groups, reload }: ActionProps) {
  const group = groups.at(-1)!
  return (
    <>
      {can('role_bindings.create', group.uid) && <AddButton groups={groups} onDone={reload} />}
      {kind === 'serviceAccounts' && can('identity.create', group.uid) && (
        <a class="button primary" href={paths.group(names, 'members', 'keyless')}>
          {memberWords.newServiceAccount}
        </a>
      )}
      {kind === 'people' && can('group_invites.create', group.uid) && (
        <InviteButton group={group} organization={groups[0]!.uid} onMade={reload} />
      )}
    </>
  )
}

function columnsFor(
  names: readonly string[],
  kind: Props['kind'],
  groups: Groups,
  reload: () => void,
): Column<Member>[] {
  const organization = groups[0]!.uid
  return [
    {
      title: words.name,
      isHead: true,
      cell: (member) => (
        <a data-main href={`${paths.group(names, 'members')}?identity=${member.uid}`}>
          <Name member={member} />
        </a>
      ),
    },
    {
      title: memberWords.roles,
      cell: ({ roles }) =>
        roles.length === 0 ? (
          <span class="dim">{memberWords.noRole}</span>
        ) : (
          <ul class="plain">
            {roles.map((one) => (
              <li key={one.uid}>{roleText(one)}</li>
            ))}
          </ul>
        ),
    },
    ...(kind === 'serviceAccounts'
      ? [
          {
            title: memberWords.lastSeen,
            cell: ({ lastSeenTime }: Member) =>
              lastSeenTime ? <Time at={lastSeenTime} /> : <span class="dim">{memberWords.never}</span>,
          },
        ]
      : []),
    {
      title: words.actions,
      cell: (member) => (
        <>
          <MemberActions member={member} groups={groups} organization={organization} onDone={reload} />{' '}
          <a
            href={`${paths.group(names, 'members', 'explain')}?identity=${member.uid}`}
            aria-label={accessWords.explainOf(labelOf(member) || memberWords.notAccepted)}
          >
            {accessWords.explain}
          </a>
        </>
      ),
    },
  ]
}

function Name({ member }: { member: Member }) {
  const { name, email, detail, isPerson } = member
  if (name === '' && email === '') return <span title={memberWords.notAcceptedHint}>{memberWords.notAccepted}</span>
  const second = isPerson ? (email === name ? '' : email) : detail
  return (
    <>
      <Person name={name || email} isBot={!isPerson} />
      {second !== '' && name !== '' && (
        <small class="second">
          <bdi>{second}</bdi>
        </small>
      )}
    </>
  )
}

function roleText({ role, group, where }: MemberRole): string {
  if (where === 'here') return role
  return where === 'below' ? memberWords.roleIn(role, group.name) : memberWords.roleFrom(role, group.name)
}
