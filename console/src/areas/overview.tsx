// Overview of an organization, and the page of users without one.
import type { Screens } from '../app/area.ts'
import { StartScreen } from '../screens/start/start.tsx'

export const screens: Screens = {
  home: () => <StartScreen />,
}
