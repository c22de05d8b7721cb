// Account of the signed-in user.
import type { Screens } from '../app/area.ts'
import { AccountScreen } from '../screens/account/account.tsx'

export const screens: Screens = {
  account: () => <AccountScreen />,
}
