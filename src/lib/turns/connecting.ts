// Room for new connections between turns. libuv accepts one connection in each turn of the event loop, so 64 that come at once
// would wait for 64 turns of long work.

/** Turns without long work that connections may have before long work goes on. */
const mostInRow = 32

export type Connecting = {
  /** To be called for each connection that is accepted. */
  note(): void
  /** Calls `work` in a later turn of the event loop: the next one in which no connection was accepted, or after 32 turns. */
  behind(work: () => void): void
}

export function createConnecting(later: (work: () => void) => void = setImmediate): Connecting {
  let accepted = 0
  const behind = (work: () => void, seen: number, left: number): void => {
    later(() => {
      if (accepted === seen || left === 0) work()
      else behind(work, accepted, left - 1)
    })
  }
  return {
    note: () => void accepted++,
    behind: (work) => behind(work, accepted, mostInRow),
  }
}

/** That of the process. */
export const connecting: Connecting = createConnecting()
