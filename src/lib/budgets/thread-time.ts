// Attribution of the main thread's time to the requests that use it. Requests take turns at every `await`, so the time
// between two switches belongs to the request that ran in between.
import { AsyncLocalStorage } from 'node:async_hooks'
import { promiseHooks } from 'node:v8'
import type { Shares } from '../scheduling/shares.ts'

/** A request, or something else that pays for the time that it uses. */
export type Spender = {
  charge(ms: number): void
  /** Its position among the callers that wait for the thread; undefined until it is known. */
  readonly shares?: Shares | undefined
}

export type ThreadTime = {
  /** Charges `spender` for `work` and for everything that `work` awaits. */
  run<T>(spender: Spender, work: () => T): T
  /** Charges for the time up to now. Call it before a total is read. */
  settle(): void
  /** Turns of the event loop so far in which a spender was charged. */
  turns(): number
  close(): void
}

/**
 * Shared by all measurements of the process, so that queues can find the caller that waits. Each measures only the work that it
 * runs itself.
 */
const context = new AsyncLocalStorage<{ spender: Spender; by: object }>()

/** The spender that pays for the work that runs now. Returns undefined if no spender does. */
export function spenderNow(): Spender | undefined {
  return context.getStore()?.spender
}

/**
 * Measures from one continuation of a promise to the next of another spender, or to the end of the turn of the event loop.
 * Callbacks of sockets and timers are charged to the spender before them in the same turn: a hook for those too
 * (`async_hooks.createHook`) costs twice as much.
 */
export function createThreadTime(monotonic: () => number = () => performance.now()): ThreadTime {
  const by = {}
  let current: Spender | undefined
  let since = 0
  let isTurnNoted = false
  let turns = 0

  const switchTo = (next: Spender | undefined): void => {
    const now = monotonic()
    current?.charge(now - since)
    since = now
    current = next
    if (next === undefined || isTurnNoted) return
    isTurnNoted = true
    setImmediate(endTurn)
  }
  /** The wait for the next event is charged to no spender. */
  const endTurn = (): void => {
    isTurnNoted = false
    turns++
    switchTo(undefined)
  }
  const stop = promiseHooks.onBefore(() => {
    const store = context.getStore()
    const next = store?.by === by ? store.spender : undefined
    if (next !== current) switchTo(next)
  })
  return {
    run(spender, work) {
      switchTo(spender)
      return context.run({ spender, by }, work)
    },
    settle: () => switchTo(current),
    turns: () => turns,
    close() {
      stop()
      current = undefined
    },
  }
}
