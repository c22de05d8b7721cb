// Content that belongs to no single organization: the list of organizations, advisories and libraries.
import type { Screens } from '../app/area.ts'
import { AdvisoriesScreen, AdvisoryScreen } from '../screens/advisories/advisories.tsx'
import { OrganizationsScreen } from '../screens/groups/organizations.tsx'
import { LibrariesScreen } from '../screens/libraries/libraries.tsx'
import { SetupScreen } from '../screens/setup/setup.tsx'
import { SourcesScreen } from '../screens/sources/sources.tsx'

export const screens: Screens = {
  setup: () => <SetupScreen />,
  organizations: ({ query }) => <OrganizationsScreen query={query} />,
  advisories: ({ query }) => <AdvisoriesScreen query={query} />,
  advisory: ({ names }) => <AdvisoryScreen uid={names.join('/')} />,
  sources: () => <SourcesScreen />,
  libraries: ({ query }) => <LibrariesScreen query={query} />,
}
