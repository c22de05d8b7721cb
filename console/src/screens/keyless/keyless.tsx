// Setup of a CI job that signs in without a password, in three steps: preview, create, copy.
import { useRef, useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { ClaimChecks, Group, Identity, Role } from '../../data/types.ts'
import { Allowed } from '../../ui/allowed.tsx'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Note, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Badge, Code } from '../../ui/text.tsx'
import { keylessWords } from '../../words/keyless.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { type Conditions, type Plan, planOf } from './conditions.ts'
import { workflowOf } from './workflow.ts'

export function KeylessScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['members', 'keyless']}>
      {(group) => (
        <Allowed
          isAllowed={can('identity.create', group.uid) && can('role_bindings.create', group.uid)}
          otherwise={keylessWords.keylessHidden}
        >
          <Steps group={group} />
        </Allowed>
      )}
    </GroupFrame>
  )
}

function Steps({ group }: { group: Group }) {
  const [plan, setPlan] = useState<Plan>()
  const [made, setMade] = useState<string>()
  const preview = ({ given = '' }: Record<string, string>) => {
    const found = planOf(given)
    if (!found) throw new Refusal(400, keylessWords.noPlan)
    setPlan(found)
    setMade(undefined)
  }
  return (
    <>
      <p>{keylessWords.keylessIntro}</p>
      <Form
        submit={keylessWords.preview}
        onSubmit={preview}
        fields={[{ name: 'given', label: keylessWords.repositoryOrToken, hint: keylessWords.tokenHint, type: 'lines' }]}
      />
      {plan && <Preview key={JSON.stringify(plan)} group={group} plan={plan} onMade={setMade} />}
      {plan && made !== undefined && (
        <>
          <Note kind="good">{keylessWords.identityCreated}</Note>
          <Code text={workflowOf(plan.platform, made, location.origin)} label={keylessWords.copyWorkflow} />
        </>
      )}
    </>
  )
}

type PreviewProps = { group: Group; plan: Plan; onMade: (uid: string) => void }

function Preview({ group, plan, onMade }: PreviewProps) {
  const { conditions, claims, isRecyclable, name } = plan
  const [isMade, setMade] = useState(false)
  const roles = useLoad('roles to push', (signal) =>
    readPage<Role>('/iam/v2/roles', 'roles', { size: 200, query: { 'uidp.inRoot': true, orderBy: 'name' }, signal }),
  )
  // The uid of the created identity. If creating the binding fails, the next attempt uses this identity again.
  const identity = useRef<string>(undefined)
  const create = async (values: Record<string, string>) => {
    const wanted = { name: values.name, claimMatch: conditions }
    identity.current ??= (await ask<Identity>('POST', `/iam/v2/identities/${group.uid}`, { body: wanted })).uid
    const uid = identity.current
    const body = { identityUid: uid, roleUid: values.roleUid }
    await ask('POST', `/iam/v2/roleBindings/${group.uid}`, { body })
    setMade(true)
    onMade(uid)
  }
  return (
    <>
      <h2>{keylessWords.requiredClaims}</h2>
      <RequiredClaims conditions={conditions} />
      {isRecyclable && <Note kind="warn">{keylessWords.recyclable}</Note>}
      {claims !== undefined && <DryRun group={group} claims={claims} conditions={conditions} />}
      {!isMade && (
        <Shown of={roles}>
          {({ items }) => (
            <Form
              submit={words.create}
              onSubmit={create}
              fields={[
                { name: 'name', label: words.name, value: name },
                {
                  name: 'roleUid',
                  label: words.role,
                  type: 'select',
                  value: items.find((one) => one.name === 'registry.push')?.uid ?? '',
                  options: items
                    .filter(({ name }) => name !== 'operator')
                    .map((one) => ({ value: one.uid, label: one.name })),
                },
              ]}
            />
          )}
        </Shown>
      )}
    </>
  )
}

function RequiredClaims({ conditions }: { conditions: Conditions }) {
  const { claims = {}, ...rest } = conditions
  const rows = [...Object.entries(rest), ...Object.entries(claims)]
  return (
    <Table
      caption={keylessWords.requiredClaims}
      items={rows}
      keyOf={([claim]) => claim}
      columns={[
        { title: keylessWords.claim, isHead: true, cell: ([claim]) => keylessWords.claims[claim] ?? claim },
        { title: keylessWords.requiredValue, cell: ([, value]) => <code>{value}</code> },
      ]}
    />
  )
}

/** Shows whether an exchange of the token would succeed. The server gets the claims of the token, without the signature. */
function DryRun({ group, claims, conditions }: { group: Group; claims: string; conditions: Conditions }) {
  const read = useLoad(`check ${claims}`, (signal) =>
    ask<ClaimChecks>('POST', `/control/v1/claimChecks/${group.uid}`, { body: { claims, match: conditions }, signal }),
  )
  return (
    <Shown of={read}>
      {({ matches, checks }) => (
        <>
          <Note kind={matches ? 'good' : 'warn'}>{matches ? keylessWords.wouldMatch : keylessWords.wouldNotMatch}</Note>
          <Table
            caption={keylessWords.dryRun}
            items={checks}
            keyOf={({ claim }) => claim}
            columns={[
              { title: keylessWords.claim, isHead: true, cell: ({ claim }) => <bdi>{claim}</bdi> },
              { title: keylessWords.requiredValue, cell: ({ wanted }) => <bdi>{wanted}</bdi> },
              { title: keylessWords.tokenValue, cell: ({ got }) => <bdi>{got || '–'}</bdi> },
              {
                title: words.state,
                cell: (one) => (
                  <Badge kind={one.matches ? 'good' : 'bad'}>
                    {one.matches ? keylessWords.matches : keylessWords.differs}
                  </Badge>
                ),
              },
            ]}
          />
        </>
      )}
    </Shown>
  )
}
