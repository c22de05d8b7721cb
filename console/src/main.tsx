// Entry point of the console. All data comes from the API, and all state is in the address.
import { render } from 'preact'
import { startOrganization } from './app/organization.ts'
import { startPrefetch } from './app/prefetch.ts'
import { startRouting } from './app/route.ts'
import { startSession } from './app/session.ts'
import { startSettings } from './app/settings.ts'
import { Shell } from './app/shell.tsx'

startSettings()
startRouting()
startOrganization()
startPrefetch()
// The permissions are loaded after the first screen is shown. If the request fails, buttons stay hidden, and each screen shows
// why.
void startSession()
render(<Shell />, document.body)
