// Entry point of the console. All data comes from the API, and all state is in the address.
import { render } from 'preact'
import { startRouting } from './app/route.ts'
import { startSession } from './app/session.ts'
import { startSettings } from './app/settings.ts'
import { Shell } from './app/shell.tsx'

startSettings()
startRouting()
// Permissions arrive a moment later. Without an answer, no control is shown, and each screen says why.
void startSession()
render(<Shell />, document.body)
