// Delays long work while new connections arrive. libuv accepts one connection in each turn of the event loop. So 64 simultaneous
// connections would wait for 64 turns of long work. A request that arrives during a turn waits for its end. So different kinds of
// long work, such as a batch of writes and a large body, get different turns.

/** Maximum number of turns for which new connections can delay long work. */
const mostInRow = 32
/** Milliseconds of long work in one turn after which other long work waits for the next turn. */
const mostMs = 5

export type Connecting = {
  /** Call it for each accepted connection. */
  note(): void
  /**
   * Calls `work` in the next turn of the event loop without a new connection, or after 32 turns. If other long work has already
   * taken 5 ms in that turn, calls `work(true)` if `isLight` returns true. Otherwise waits for another turn.
   */
  behind(work: (isLight: boolean) => void, isLight?: () => boolean): void
  /** Resolves in a turn that `behind` would choose. */
  turn(): Promise<void>
}

type Work = (isLight: boolean) => void

const never = (): boolean => false

export function createConnecting(
  later: (work: () => void) => void = setImmediate,
  monotonic: () => number = () => performance.now(),
): Connecting {
  let accepted = 0
  /** Time at which long work began in this turn. Undefined if there was none. */
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
      // Queued now, so this work comes first in the next turn.
      else behind(work, isLight, accepted, left)
    })
  }
  return {
    note: () => void accepted++,
    behind: (work, isLight = never) => behind(work, isLight, accepted, mostInRow),
    turn: () => new Promise((resolve) => behind(() => resolve(), never, accepted, mostInRow)),
  }
}

/** Instance that is shared by the whole process. */
export const connecting: Connecting = createConnecting()
