// Members of an organization or a folder: roles, invitations, sign-in, and service accounts of CI jobs.
import type { Screens } from '../app/area.ts'
import { ExplainAccessScreen } from '../screens/access/explain-access.tsx'
import { KeylessScreen } from '../screens/keyless/keyless.tsx'
import { ProviderGroupsScreen } from '../screens/members/groups.tsx'
import { MembersScreen } from '../screens/members/members.tsx'
import { RolesScreen } from '../screens/members/roles.tsx'
import { PeopleScreen } from '../screens/people/people.tsx'

export const screens: Screens = {
  people: ({ names, query }) => <MembersScreen names={names} query={query} kind="people" />,
  serviceAccounts: ({ names, query }) => <MembersScreen names={names} query={query} kind="serviceAccounts" />,
  groups: ({ names }) => <ProviderGroupsScreen names={names} />,
  explain: ({ names, query }) => <ExplainAccessScreen names={names} query={query} />,
  invitations: ({ names }) => <PeopleScreen names={names} />,
  roles: ({ names }) => <RolesScreen names={names} />,
  keyless: ({ names }) => <KeylessScreen names={names} />,
}
