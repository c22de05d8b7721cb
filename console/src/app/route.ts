// Current address of the console. Links do not reload the page, and screens keep their state only in the address.
import { computed, signal } from '@preact/signals'
import { movedPath, type Route, routeOf } from './paths.ts'

/** Address in the browser. The address of a page that has moved is replaced. */
function currentAddress(): { pathname: string; search: string } {
  const { pathname, search } = location
  const moved = movedPath(pathname)
  if (moved === undefined) return { pathname, search }
  history.replaceState(null, '', moved + search)
  return { pathname: moved, search }
}

const address = signal(currentAddress())

/** Current route. */
export const route = computed<Route>(
  () => routeOf(address.value.pathname, address.value.search) ?? { ...nowhere, query: new URLSearchParams() },
)

const nowhere = { head: '404', names: [], tail: [] }

export const here = (): { pathname: string; search: string } => address.value

/** Goes to an address of the console. `replace` overwrites the current entry of the history. */
export function go(to: string, { replace = false } = {}): void {
  const url = new URL(to, location.href)
  const isOther = url.pathname !== location.pathname
  if (replace) history.replaceState(null, '', url)
  else history.pushState(null, '', url)
  address.value = currentAddress()
  if (isOther) scrollTo(0, 0)
}

/** Handles links and the back button without a reload of the page. */
export function startRouting(): void {
  addEventListener('popstate', () => {
    address.value = currentAddress()
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
    const link = (event.target as Element).closest?.('a')
    if (link?.target !== '' || link.origin !== location.origin || link.hash !== '') return
    if (!routeOf(link.pathname, link.search)) return
    event.preventDefault()
    go(link.href)
  })
}
