// Work that is asked for more often than it has to run.

export type Coalesced = {
  /** Asks for a run. */
  run(): void
  /** Resolves when nothing runs. */
  idle(): Promise<void>
}

/**
 * Runs one at a time. Asked again while it runs, it runs once more afterwards, unless the work has not said `begun` yet:
 * then it will see what it was asked for. With `everyMs` a run begins that long after the last one at the earliest, so that
 * it finds together what many ask for one after the other; the first of them does not wait.
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
