// Group mappings: roles for the groups of an identity provider.
import { useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { parentOf } from '../../data/names.ts'
import type { Mapping, Role } from '../../data/types.ts'
import { DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { peopleWords } from '../../words/people.ts'
import { words } from '../../words.ts'
import { readRoles, roleOptions } from './roles.ts'

const root = '/iam/v2/externalGroupRoleMappings'
const size = 200

export function Mappings({ provider, name }: { provider: string; name: string }) {
  const read = useLoad(`mappings ${provider}`, async (signal) => {
    const query = { identityProviderUid: provider }
    const [mappings, roles] = await Promise.all([
      readPage<Mapping>(root, 'externalGroupRoleMappings', { size, query, signal }),
      readRoles(parentOf(provider), signal),
    ])
    return { mappings, roles }
  })
  return (
    <Shown of={read}>
      {({ mappings, roles }) => (
        <>
          {mappings.items.length === 0 ? (
            <p>{peopleWords.noMappings}</p>
          ) : (
            <Table
              caption={peopleWords.mappingsOf(name)}
              isCaptionShown
              items={mappings.items}
              keyOf={({ uid }) => uid}
              columns={columnsFor(provider, roles, read.reload)}
            />
          )}
          <Cut of={mappings} />
          {can('identity_providers.create', provider) && can('role_bindings.create', provider) && (
            <NewMapping provider={provider} roles={roles} onMade={read.reload} />
          )}
        </>
      )}
    </Shown>
  )
}

function columnsFor(provider: string, roles: readonly Role[], reload: () => void): Column<Mapping>[] {
  const roleOf = (uid: string) => roles.find((one) => one.uid === uid)?.name
  const columns: Column<Mapping>[] = [
    { title: peopleWords.externalGroup, isHead: true, cell: ({ externalGroupId }) => <bdi>{externalGroupId}</bdi> },
    {
      title: words.role,
      cell: ({ roleUid }) => <bdi title={roleUid}>{roleOf(roleUid) ?? roleUid.slice(-16)}</bdi>,
    },
    { title: words.createdAt, cell: ({ createTime }) => <Time at={createTime} /> },
  ]
  if (!can('identity_providers.delete', provider)) return columns
  const remove: Column<Mapping> = {
    title: words.actions,
    cell: ({ uid, externalGroupId }) => (
      <DangerButton
        button={words.delete}
        label={peopleWords.deleteMappingOf(externalGroupId)}
        title={peopleWords.deleteMappingOf(externalGroupId)}
        text={peopleWords.deleteMappingText}
        act={async () => {
          await ask('DELETE', `${root}/${uid}`)
          reload()
        }}
      />
    ),
  }
  return [...columns, remove]
}

type New = { provider: string; roles: readonly Role[]; onMade: () => void }

function NewMapping({ provider, roles, onMade }: New) {
  const [made, setMade] = useState(0)
  const make = async ({ externalGroupId, roleUid }: Record<string, string>) => {
    await ask('POST', `${root}/${provider}`, { body: { externalGroupId, roleUid, scope: parentOf(provider) } })
    setMade(made + 1)
    onMade()
  }
  return (
    <details>
      <summary>{peopleWords.newMapping}</summary>
      <Form
        key={made}
        submit={words.create}
        onSubmit={make}
        fields={[
          { name: 'externalGroupId', label: peopleWords.externalGroup, hint: peopleWords.externalGroupHint },
          { name: 'roleUid', label: words.role, type: 'select', options: roleOptions(roles) },
        ]}
      />
    </details>
  )
}
