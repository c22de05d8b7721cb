// Screen of the current address. Its script is loaded first.
import { useEffect, useState } from 'preact/hooks'
import { Screen } from '../ui/screen.tsx'
import { Empty, Problem, Waiting } from '../ui/states.tsx'
import { words } from '../words.ts'
import { route } from './route.ts'
import { findScreen, loadArea, screensOf } from './screens.ts'

export function CurrentScreen() {
  const found = findScreen(route.value)
  if (!found) return <PageNotFound />
  return <Loaded key={found.area} area={found.area} screen={found.screen} />
}

function Loaded({ area, screen }: NonNullable<ReturnType<typeof findScreen>>) {
  const [state, setState] = useState<{ error?: unknown }>({})
  const screens = screensOf(area)
  useEffect(() => {
    if (screens) return
    loadArea(area).then(
      () => setState({}),
      (error: unknown) => setState({ error }),
    )
  }, [area])
  // The script is missing if the server was updated after the page was loaded.
  if (state.error !== undefined) return <Problem error={state.error} retry={() => location.reload()} />
  return screens ? screens[screen]!(route.value) : <Waiting />
}

function PageNotFound() {
  return (
    <Screen title={words.pageNotFound}>
      <Empty>{words.pageNotFoundText}</Empty>
    </Screen>
  )
}
