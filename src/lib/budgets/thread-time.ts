// Measures which request uses the main thread. Requests take turns at each `await`, so the time between two switches belongs to
// the request that ran in between.
import { AsyncLocalStorage } from 'node:async_hooks'
import { promiseHooks } from 'node:v8'
import type { Shares } from '../scheduling/shares.ts'

/** A request, or other work whose time is measured. */
export type TimeAccount = {
  charge(ms: number): void
  /** Its shares among the callers that wait for the thread. Undefined while the sender is unknown. */
  readonly shares?: Shares | undefined
}

export type ThreadTime = {
  /** Runs `work` and charges its time to `spender`, including everything that `work` awaits. */
  run<T>(spender: TimeAccount, work: () => T): T
  /** Charges the time since the last switch. Call it before a total is read. */
  settle(): void
  /** Number of event loop turns so far in which time was charged. */
  turns(): number
  close(): void
}

/**
 * Current spender in the async context. All measurements of the process share it, so that queues can find the current caller.
 * Each measurement includes only work that it has started.
 */
const context = new AsyncLocalStorage<{ spender: TimeAccount; by: object }>()

/** Spender of the running work. Undefined if its time is not measured. */
export function currentAccount(): TimeAccount | undefined {
  return context.getStore()?.spender
}

/**
 * Creates a measurement. Time is measured from one promise continuation to the next one of another spender, or to the end of the
 * event loop turn. Socket and timer callbacks are charged to the previous spender of the same turn. Measuring them too
 * (`async_hooks.createHook`) would cost twice as much.
 */
export function createThreadTime(monotonic: () => number = () => performance.now()): ThreadTime {
  const by = {}
  let current: TimeAccount | undefined
  let since = 0
  let isTurnNoted = false
  let turns = 0

  const switchTo = (next: TimeAccount | undefined): void => {
    const now = monotonic()
    current?.charge(now - since)
    since = now
    current = next
    if (next === undefined || isTurnNoted) return
    isTurnNoted = true
    setImmediate(endTurn)
  }
  /** The wait for the next event is not charged. */
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
