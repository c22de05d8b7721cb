// Explanation of a user's access: role bindings, roles that would be enough, members who can grant them, and refused requests.
import { useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { labelOf, type Member, readMembers } from '../../data/members.ts'
import { findGroup } from '../../data/names.ts'
import type { Explanation, RefusedRequest } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Picker } from '../../ui/picker.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { NoItems, Pages, pageOf, Table } from '../../ui/table.tsx'
import { Badge, Time } from '../../ui/text.tsx'
import { accessWords } from '../../words/access.ts'
import { peopleWords } from '../../words/people.ts'
import { words } from '../../words.ts'
import { GroupPage } from '../groups/group-frame.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }

/** Actions in the selection field. An address may contain other actions. */
const asked = [
  'CAP_MANIFEST_LIST',
  'CAP_MANIFEST_CREATE',
  'CAP_TAG_UPDATE',
  'CAP_TAG_DELETE',
  'CAP_REPO_CREATE',
] as const

export function ExplainAccessScreen({ names, query }: Props) {
  const identity = query.get('identity') ?? ''
  const capability = query.get('capability') ?? asked[0]
  const read = useLoad(`explain in ${names.join('/')}`, async (signal) => {
    const { item, groups } = await findGroup(names)
    const { members } = await readMembers(groups, signal).catch(whenRefused)
    return { group: item.uid, members: members.filter((one) => labelOf(one) !== '') }
  })
  const explain = (values: Record<string, string>) =>
    go(
      `${paths.group(names, 'members', 'explain')}?${new URLSearchParams({ identity: values.identity!, capability: values.capability! })}`,
    )
  return (
    <GroupPage names={names} tail={['members', 'explain']}>
      <Shown of={read}>
        {({ group: uid, members }) => (
          <>
            <Question key={`${identity} ${capability}`} {...{ members, identity, capability }} onExplain={explain} />
            {identity !== '' && <ExplanationTable group={uid} identity={identity} capability={capability} />}
            <h2>{accessWords.refusals}</h2>
            <Refusals names={names} group={uid} members={members} page={pageOf(query)} />
          </>
        )}
      </Shown>
    </GroupPage>
  )
}

/** Callers who cannot list members can still see the refused requests. */
const whenRefused = (error: unknown): { members: Member[] } => {
  if (error instanceof Refusal && error.status === 403) return { members: [] }
  throw error
}

type QuestionProps = {
  members: readonly Member[]
  identity: string
  capability: string
  onExplain: (values: Record<string, string>) => void
}

/** An address can have an identity that is not a member, for example of a refused request. */
function Question({ members, identity: initial, capability, onExplain }: QuestionProps) {
  const [identity, setIdentity] = useState(initial)
  const known = members.map((one) => ({
    value: one.uid,
    label: labelOf(one),
    description: (one.email !== one.name && one.email) || one.detail,
  }))
  const isKnown = identity === '' || known.some(({ value }) => value === identity)
  const other = { value: identity, label: words.nameUnknown, description: '' }
  return (
    <>
      <Picker
        label={accessWords.whose}
        options={isKnown ? known : [...known, other]}
        value={identity}
        onChoose={setIdentity}
      />
      <Form
        isLine
        submit={accessWords.explain}
        onSubmit={({ capability: chosen = '' }) => onExplain({ identity, capability: chosen })}
        fields={[
          {
            name: 'capability',
            label: accessWords.action,
            type: 'select',
            value: capability,
            options: asked.map((value) => ({ value, label: accessWords.capabilities[value] })),
          },
        ]}
      />
    </>
  )
}

function ExplanationTable({ group, identity, capability }: { group: string; identity: string; capability: string }) {
  const read = useLoad(`explain ${group} ${identity} ${capability}`, (signal) => {
    const query = { identityUid: identity, capability }
    return ask<Explanation>('GET', `/control/v1/access/${group}:explain`, { query, signal })
  })
  return (
    <Shown of={read}>
      {({ allowed, bindings, groupRoles, sufficientRoles, grantors }) => (
        <>
          <Note kind={allowed ? 'good' : 'warn'}>
            <strong>{allowed ? accessWords.allowed : accessWords.notAllowed}</strong>
          </Note>
          {bindings.length + groupRoles.length === 0 && <p>{accessWords.noBindingsOfIdentity}</p>}
          {bindings.length > 0 && (
            <Table
              caption={accessWords.bindings}
              items={bindings}
              keyOf={(one) => one.uid + one.groupUid + one.roleUid}
              columns={[
                { title: words.role, isHead: true, cell: ({ roleName }) => <bdi>{roleName || words.noAccess}</bdi> },
                { title: words.group, cell: ({ groupName }) => <bdi>{groupName || words.noAccess}</bdi> },
                { title: words.scope, cell: ({ inherited }) => (inherited ? words.inherited : words.here) },
                {
                  title: accessWords.effect,
                  cell: ({ effect }) => (
                    <Badge kind={effect === 'EFFECT_GRANTS' ? 'good' : 'warn'}>{accessWords.effects[effect]}</Badge>
                  ),
                },
              ]}
            />
          )}
          {groupRoles.length > 0 && (
            <Table
              caption={accessWords.rolesOfExternalGroups}
              items={groupRoles}
              keyOf={(one) =>
                [one.identityProviderUid, one.externalGroupId, one.groupUid, one.roleUid, one.provisioned].join(' ')
              }
              columns={[
                { title: words.role, isHead: true, cell: ({ roleName }) => <bdi>{roleName || words.noAccess}</bdi> },
                {
                  title: peopleWords.externalGroup,
                  cell: ({ externalGroupId, provisioned }) => (
                    <>
                      <bdi>{externalGroupId || words.noAccess}</bdi>{' '}
                      <small>{provisioned ? accessWords.provisionedGroup : accessWords.sentGroup}</small>
                    </>
                  ),
                },
                { title: words.group, cell: ({ groupName }) => <bdi>{groupName || words.noAccess}</bdi> },
                {
                  title: accessWords.effect,
                  cell: ({ effect }) => (
                    <Badge kind={effect === 'EFFECT_GRANTS' ? 'good' : 'warn'}>{accessWords.effects[effect]}</Badge>
                  ),
                },
              ]}
            />
          )}
          {sufficientRoles.length > 0 && (
            <p>
              {accessWords.sufficientRoles} <bdi>{sufficientRoles.map(({ name }) => name).join(', ')}</bdi>
            </p>
          )}
          {grantors.length > 0 && (
            <p>
              {accessWords.grantors} <bdi>{grantors.map(({ name }) => name || words.unnamed).join(', ')}</bdi>
            </p>
          )}
        </>
      )}
    </Shown>
  )
}

const size = 50

type RefusalProps = { names: readonly string[]; group: string; members: readonly Member[]; page: number }

function Refusals({ names, group, members, page }: RefusalProps) {
  const nameOf = (uid: string) => {
    const member = members.find((one) => one.uid === uid)
    return (member && labelOf(member)) || words.nameUnknown
  }
  const read = useLoad(`refusals ${group} ${page}`, (signal) =>
    readPage<RefusedRequest>(`/events/v2/refusals/${group}`, 'refusals', { page, size, signal }),
  )
  return (
    <Shown of={read}>
      {({ items, total = items.length }) =>
        items.length === 0 ? (
          <NoItems page={page} size={size} total={total}>
            <Empty>{accessWords.noRefusals}</Empty>
          </NoItems>
        ) : (
          <>
            <Table
              caption={accessWords.refusals}
              items={items}
              keyOf={(one) =>
                [one.repository, one.reference, one.action, one.caller, one.code, one.remoteAddress].join(' ')
              }
              columns={[
                {
                  title: words.repository,
                  isHead: true,
                  cell: ({ repository, reference }) => (
                    <bdi>
                      {repository}
                      {reference && ` ${reference}`}
                    </bdi>
                  ),
                },
                { title: accessWords.action, cell: ({ action }) => action },
                {
                  title: words.identity,
                  cell: ({ caller }) =>
                    caller === '' ? (
                      words.anonymous
                    ) : (
                      <a href={`${paths.group(names, 'members', 'explain')}?identity=${caller}`}>
                        <bdi>{nameOf(caller)}</bdi>
                      </a>
                    ),
                },
                { title: words.reason, cell: ({ reason, code }) => <bdi>{reason || code}</bdi> },
                { title: accessWords.count, cell: ({ count }) => count },
                { title: words.time, cell: ({ lastTime }) => <Time at={lastTime} /> },
              ]}
            />
            <Pages page={page} size={size} total={total} />
          </>
        )
      }
    </Shown>
  )
}
