// Frame of every screen: side bar, content and dialogs.
import { useEffect, useState } from 'preact/hooks'
import { Toasts } from '../ui/toast.tsx'
import { words } from '../words.ts'
import { ErrorBoundary } from './boundary.tsx'
import { CurrentScreen } from './current-screen.tsx'
import { Help } from './help.tsx'
import { startKeys } from './keys.ts'
import { here } from './route.ts'
import { SideBar } from './side-bar.tsx'

export function Shell() {
  const [isHelp, setHelp] = useState(false)
  const showHelp = () => setHelp(true)
  useEffect(() => startKeys(showHelp), [])
  return (
    <>
      <a class="skip" href="#main">
        {words.skip}
      </a>
      <SideBar showHelp={showHelp} />
      <main id="main" tabIndex={-1}>
        <ErrorBoundary key={here().pathname}>
          <CurrentScreen />
        </ErrorBoundary>
      </main>
      <Toasts />
      {isHelp && <Help onClose={() => setHelp(false)} />}
    </>
  )
}
