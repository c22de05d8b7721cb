// Frame of every screen: side bar, content and dialogs.
import { useEffect, useState } from 'preact/hooks'
import { Toasts } from '../ui/toast.tsx'
import { words } from '../words.ts'
import { ErrorBoundary } from './boundary.tsx'
import { CurrentScreen } from './current-screen.tsx'
import { Help } from './help.tsx'
import { startKeys } from './keys.ts'
import { closePalette, palette } from './palette.ts'
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
      <PaletteFrame />
      {isHelp && <Help onClose={() => setHelp(false)} />}
    </>
  )
}

const loadPalette = () => import('../areas/search.tsx')
type PaletteModule = Awaited<ReturnType<typeof loadPalette>>

/** Command palette. Its script is loaded when the first screen is drawn, so that it opens at once. */
function PaletteFrame() {
  const [module, setModule] = useState<PaletteModule>()
  const text = palette.value
  const isWanted = text !== undefined
  useEffect(() => {
    if (module) return
    const load = () =>
      void loadPalette().then(
        (loaded) => setModule(() => loaded),
        // Without the script, the search box of the side bar still works.
        closePalette,
      )
    const timer = setTimeout(load, isWanted ? 0 : 300)
    return () => clearTimeout(timer)
  }, [isWanted, module])
  return isWanted && module ? <module.Palette text={text} /> : null
}
