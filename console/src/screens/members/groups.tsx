// Groups of the identity providers of an organization, and the roles that they grant.
import { can } from '../../app/session.ts'
import { readPage } from '../../data/list.ts'
import type { Group, Provider } from '../../data/types.ts'
import { Allowed } from '../../ui/allowed.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Shown } from '../../ui/states.tsx'
import { memberWords } from '../../words/members.ts'
import { peopleWords } from '../../words/people.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { Mappings } from '../people/mappings.tsx'

export function ProviderGroupsScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['members', 'groups']}>
      {(_, { groups }) => (
        <Allowed isAllowed={can('identity_providers.list', groups[0]!.uid)} otherwise={peopleWords.providersHidden}>
          <ProviderGroups organization={groups[0]!} />
        </Allowed>
      )}
    </GroupFrame>
  )
}

function ProviderGroups({ organization }: { organization: Group }) {
  const read = useLoad(`groups of ${organization.uid}`, (signal) => {
    const query = { 'uidp.childrenOf': organization.uid, orderBy: 'name' }
    return readPage<Provider>('/iam/v2/identityProviders', 'identityProviders', { size: 50, query, signal })
  })
  return (
    <Shown of={read}>
      {(page) =>
        page.items.length === 0 ? (
          <Empty>{memberWords.noProvidersForGroups}</Empty>
        ) : (
          <>
            <p class="dim">{memberWords.groupsText}</p>
            <Cut of={page} />
            {page.items.map(({ uid, name }) => (
              <section key={uid}>
                <h2>
                  <bdi>{name}</bdi>
                </h2>
                <Mappings provider={uid} name={name} />
              </section>
            ))}
          </>
        )
      }
    </Shown>
  )
}
