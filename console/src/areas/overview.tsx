// Overview of an organization, and the first page after the sign-in.
import type { Screens } from '../app/area.ts'
import { OverviewScreen } from '../screens/overview/overview.tsx'
import { HomeScreen } from '../screens/start/start.tsx'

export const screens: Screens = {
  home: () => <HomeScreen />,
  overview: ({ names }) => <OverviewScreen names={names} />,
}
