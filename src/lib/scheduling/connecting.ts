// Gives new connections time between long work. libuv accepts one connection in each turn of the event loop. So 64 connections
// that come at once would wait for 64 turns of long work. And a request that arrives during a turn waits for all of it. So long
// work of different kinds (a batch of writes, a large body) takes turns of its own.

/** The most turns without long work that connections may have before long work goes on. */
const mostInRow = 32
/** Milliseconds of long work in one turn after which other long work waits for the next turn. */
const mostMs = 5

export type Connecting = {
  /** To be called for each connection that is accepted. */
  note(): void
  /**
   * Calls `work` in the next turn of the event loop in which no connection was accepted, or after 32 turns. If other long work
   * has already taken 5 ms in that turn, calls `work(true)` if `isLight()`, and else waits for another turn.
   */
  behind(work: (isLight: boolean) => void, isLight?: () => boolean): void
  /** Resolves in the turn in which `behind` would call. */
  turn(): Promise<void>
}

type Work = (isLight: boolean) => void

const never = (): boolean => false

export function createConnecting(
  later: (work: () => void) => void = setImmediate,
  monotonic: () => number = () => performance.now(),
): Connecting {
  let accepted = 0
  /** Start of the long work of this turn. Undefined while there is none. */
  let began: number | undefined
  const turned = (): void => {
    began = undefined
  }
  const isTaken = (): boolean => {
    if (began !== undefined) return monotonic() - began >= mostMs
    began = monotonic()
    later(turned)
    return false
  }
  const behind = (work: Work, isLight: () => boolean, seen: number, left: number): void => {
    later(() => {
      if (accepted !== seen && left > 0) behind(work, isLight, accepted, left - 1)
      else if (!isTaken()) work(false)
      else if (isLight()) work(true)
      // Work that had to wait comes first in the next turn.
      else behind(work, isLight, accepted, left)
    })
  }
  return {
    note: () => void accepted++,
    behind: (work, isLight = never) => behind(work, isLight, accepted, mostInRow),
    turn: () => new Promise((resolve) => behind(() => resolve(), never, accepted, mostInRow)),
  }
}

/** The instance of this process. */
export const connecting: Connecting = createConnecting()
