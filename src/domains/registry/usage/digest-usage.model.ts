/** What a caller has done with a manifest of a repo on one day, or what of it has yet to be written. */
export type Usage = {
  repo: number
  digest: string
  /** In UTC, `2026-01-31`. */
  day: string
  /** A uid; `nobody` for all without a credential, `others` for those above `maxCallers` and those of older days. */
  caller: string
  gets: number
  checks: number
  lastTime: string
}

export const nobody = ''
export const others = '*'

/** How many callers of one digest have a row of their own on one day. */
export const maxCallers = 100

/** How long callers have rows of their own; then those of a day become one. */
export const namedDays = 7

/** How long rows are kept. Those of the last day on which a manifest was pulled stay as they are for as long as the manifest. */
export const keptDays = 90
