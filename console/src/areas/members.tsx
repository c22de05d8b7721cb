// Members of an organization or a folder: roles, invitations, sign-in, and service accounts of CI jobs.
import type { Screens } from '../app/area.ts'
import { AccessScreen } from '../screens/access/access.tsx'
import { ExplainAccessScreen } from '../screens/access/explain-access.tsx'
import { KeylessScreen } from '../screens/keyless/keyless.tsx'
import { PeopleScreen } from '../screens/people/people.tsx'

export const screens: Screens = {
  access: ({ names, query }) => <AccessScreen names={names} query={query} />,
  explain: ({ names, query }) => <ExplainAccessScreen names={names} query={query} />,
  invitations: ({ names }) => <PeopleScreen names={names} />,
  keyless: ({ names }) => <KeylessScreen names={names} />,
}
