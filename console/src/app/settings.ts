// Preferences of the user, which are stored in this browser.
import { effect, signal } from '@preact/signals'

/** Stored preference. Empty if there is none. */
export const kept = (name: string): string => {
  try {
    return localStorage.getItem(`pinfold-${name}`) ?? ''
  } catch {
    return ''
  }
}

/** Stores a preference. */
export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(`pinfold-${name}`, value)
  } catch {
    // If the browser refuses to store the preference, it applies until the page is closed.
  }
}

export type Theme = 'system' | 'light' | 'dark'
const themes: readonly string[] = ['system', 'light', 'dark']

export const theme = signal<Theme>(themes.includes(kept('theme')) ? (kept('theme') as Theme) : 'system')
/** Times in UTC, or in the zone of the browser. */
export const isUtc = signal(kept('zone') !== 'local')
/** True if single keys are shortcuts. */
export const hasKeys = signal(kept('keys') !== 'off')

export function startSettings(): void {
  effect(() => {
    keep('theme', theme.value)
    if (theme.value === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme.value
  })
  effect(() => keep('zone', isUtc.value ? 'utc' : 'local'))
  effect(() => keep('keys', hasKeys.value ? 'on' : 'off'))
}
