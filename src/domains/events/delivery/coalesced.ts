// Merges several requests for the same work into one run.

export type Coalesced = {
  /** Requests a run of the work. */
  run(): void
  /** Resolves when the work does not run. */
  idle(): Promise<void>
}

/**
 * Runs the work one at a time. A request during a run starts another run afterwards. Exception: before the work calls `begun`,
 * the present run also serves the request. With `everyMs`, runs start at least that many milliseconds apart, so that one run
 * serves several requests. The first request does not wait.
 */
export function coalesced(
  work: (begun: () => void) => Promise<void>,
  onEnd: () => void,
  onError: (error: unknown) => void,
  everyMs = 0,
): Coalesced {
  let running: Promise<void> | undefined
  let again = false
  const begun = (): void => {
    again = false
  }
  const runAll = async (): Promise<void> => {
    do {
      again = false
      const over = everyMs > 0 ? new Promise((resolve) => setTimeout(resolve, everyMs)) : undefined
      await work(begun).then(onEnd, onError)
      await over
    } while (again)
    running = undefined
  }
  return {
    run(): void {
      if (running) again = true
      else running = runAll()
    },
    idle: async (): Promise<void> => running,
  }
}
