// Keyboard shortcuts of one key each. They do nothing while an input field has the focus.
import { openPalette } from './palette.ts'
import { hasKeys } from './settings.ts'

const typing = 'input, textarea, select, [contenteditable], dialog'

/** Ctrl or Cmd K opens the palette, `/` the filter of a list, `j` and `k` select rows, `c` copies the image name with its digest, `?` shows help. */
export function startKeys(showHelp: () => void): void {
  document.addEventListener('keydown', (event) => {
    const isSearch = event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey) && !event.altKey
    if (isSearch) {
      event.preventDefault()
      return openPalette()
    }
    if (!hasKeys.value || event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return
    if ((event.target as Element).closest?.(typing)) return
    const action = actions[event.key] ?? (event.key === '?' ? showHelp : undefined)
    if (!action) return
    event.preventDefault()
    action()
  })
}

const actions: Record<string, () => void> = {
  '/': () => {
    const filter = document.querySelector<HTMLInputElement>('main input[type=search]')
    if (filter?.checkVisibility({ visibilityProperty: true }) !== true) return openPalette()
    filter.focus()
    filter.select()
  },
  j: () => moveSelection(1),
  k: () => moveSelection(-1),
  c: () => {
    const row = document.activeElement?.closest('tr')
    const button = row?.querySelector<HTMLButtonElement>('[data-pin]') ?? document.querySelector('main [data-pin]')
    ;(button as HTMLButtonElement | null)?.click()
  },
}

/** Moves the focus to the link of the next or previous row. */
function moveSelection(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>('main [data-main]')]
  const at = links.findIndex((one) => one.closest('tr, li')?.contains(document.activeElement))
  links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)]?.focus()
}
