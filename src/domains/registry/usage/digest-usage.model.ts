/** Pulls of a manifest of a repository by one caller on one day. In memory, only the pulls that are not yet written. */
export type Usage = {
  repo: number
  digest: string
  /** Day in UTC, `2026-01-31`. */
  day: string
  /**
   * Uid of the caller. `nobody` stands for all callers without a credential. `others` stands for callers above `maxCallers` and
   * for callers of older days.
   */
  caller: string
  gets: number
  checks: number
  lastTime: string
}

export const nobody = ''
export const others = '*'

/** Most callers of one digest with their own row on one day. */
export const maxCallers = 100

/** Days for which each caller has its own row. Afterwards the rows of a day are merged. */
export const namedDays = 7

/** Days for which rows are kept. Rows of the last day on which a manifest was pulled are kept as long as the manifest. */
export const keptDays = 90
