// State of the command palette. Its script is loaded with the one of the search results.
import { signal } from '@preact/signals'

/** Text with which the palette opens. Undefined while it is closed. */
export const palette = signal<string | undefined>(undefined)

export const openPalette = (text = ''): void => {
  palette.value = text
}

export const closePalette = (): void => {
  palette.value = undefined
}
