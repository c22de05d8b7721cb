// Audit log and settings of an organization or a folder.
import type { Screens } from '../app/area.ts'
import { AuditScreen } from '../screens/audit/audit.tsx'
import { GroupSettingsScreen } from '../screens/groups/settings.tsx'

export const screens: Screens = {
  audit: ({ names, query }) => <AuditScreen names={names} query={query} />,
  settings: ({ names }) => <GroupSettingsScreen names={names} />,
}
