// Loads the script of an area when the user points at a link to it, so that the page opens without a delay.
import { routeOf } from './paths.ts'
import { findScreen, loadArea } from './screens.ts'

export function startPrefetch(): void {
  for (const event of ['pointerover', 'focusin']) document.addEventListener(event, prefetch, { passive: true })
}

function prefetch({ target }: Event): void {
  const link = (target as Element).closest?.('a')
  if (!link || link.origin !== location.origin) return
  const route = routeOf(link.pathname, link.search)
  const found = route && findScreen(route)
  // If it fails, the click shows the error.
  if (found) loadArea(found.area).catch(() => undefined)
}
