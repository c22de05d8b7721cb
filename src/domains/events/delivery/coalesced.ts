// Work that is asked for more often than it has to run.

export type Coalesced = {
  /** Asks for a run. */
  run(): void
  /** Resolves when nothing runs. */
  idle(): Promise<void>
}

/**
 * Runs one at a time. Asked again while it runs, it runs once more afterwards, unless the work has not said `begun` yet:
 * then it will see what it was asked for.
 */
export function coalesced(
  work: (begun: () => void) => Promise<void>,
  onEnd: () => void,
  onError: (error: unknown) => void,
): Coalesced {
  let running: Promise<void> | undefined
  let again = false
  const begun = (): void => {
    again = false
  }
  const runAll = async (): Promise<void> => {
    do {
      again = false
      await work(begun).then(onEnd, onError)
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
