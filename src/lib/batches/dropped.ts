/** Counts items that were dropped for lack of space. Logs their number at most once a minute. */
export type Dropped = {
  add(count: number): void
  /** Logs the dropped items that were not logged yet. */
  close(): void
}

const everyMs = 60_000

/** `count` adds to a metric. `warn` logs the number of dropped items since its last call. */
export function createDropped(
  count: (by: number) => void,
  warn: (since: number) => void,
  monotonic: () => number,
): Dropped {
  let unlogged = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  const logDropped = (): void => {
    if (unlogged === 0) return
    warn(unlogged)
    unlogged = 0
    loggedAt = monotonic()
  }
  return {
    add(by) {
      if (by > 0) count(by)
      unlogged += by
      if (monotonic() - loggedAt >= everyMs) logDropped()
    },
    close: logDropped,
  }
}
