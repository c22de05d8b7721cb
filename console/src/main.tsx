// The console. Everything that it shows comes from the API, and everything that it remembers is in the address.
import { render } from 'preact'
import { startRouting } from './app/route.ts'
import { startSession } from './app/session.ts'
import { startSettings } from './app/settings.ts'
import { Shell } from './app/shell.tsx'

startSettings()
startRouting()
// What the person may do is known a moment later; without an answer they are shown no control, and each screen says why.
void startSession()
render(<Shell />, document.body)
