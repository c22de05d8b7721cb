// Common rules of transactions on both engines, such as that a failed statement always ends the transaction.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ProcessLock, Sql, Tx } from './sql.ts'

/** Functions of the engine that a Tx calls. */
export type Steps = {
  all<T>(query: Sql): Promise<T[]>
  run(query: Sql): Promise<number>
  /** Enters a lock of this process. May throw, which ends the transaction. Undefined if the engine has no such locks. */
  meet?(meeting: ProcessLock): void
  /** Called before each statement. If it returns a promise, the statement waits for it. */
  pause?(): Promise<void> | undefined
}

/** `stepError` is the first error of a statement. `error` may differ, since the work may have wrapped or caught that error. */
export type Outcome<T> =
  | { ok: true; value: T; after: readonly (() => void)[] }
  | { ok: false; error: unknown; stepError: unknown }

export type Guard = {
  /** Throws if called inside a transaction. There, `db` would wait for the transaction itself, or would not see its writes. */
  outside(method: string): void
  run<T>(steps: Steps, shard: number, work: (tx: Tx) => Promise<T>, limitMs?: number): Promise<Outcome<T>>
}

export function createGuard(engine: Tx['engine']): Guard {
  const running = new AsyncLocalStorage<{ open: boolean }>()
  return {
    outside(method) {
      // `open` is checked, since code that outlives a transaction, such as a timer, still has this async context.
      if (running.getStore()?.open) throw new Error(`db.${method} called inside a transaction; use its tx`)
    },

    async run(steps, shard, work, limitMs) {
      const state: State = { open: true, failed: false, stepError: undefined, after: [] }
      const tx = openTx(steps, { engine, shard }, state)
      let timer: NodeJS.Timeout | undefined
      try {
        const working = running.run(state, work, tx)
        const value = limitMs === undefined ? await working : await Promise.race([working, expiry(limitMs)])
        // If the work has caught the error of a statement, the transaction is incomplete, and PostgreSQL would roll it back
        // without an error. So it fails with that error.
        return state.failed ? failure(state.stepError) : { ok: true, value, after: state.after }
      } catch (error) {
        return failure(error)
      } finally {
        state.open = false
        clearTimeout(timer)
      }

      function failure(error: unknown) {
        return { ok: false, error, stepError: state.stepError } as const
      }
      async function expiry(ms: number): Promise<never> {
        return new Promise((_, reject) => {
          timer = setTimeout(reject, ms, new Error(`the transaction did not finish within ${ms} ms`))
        })
      }
    },
  }
}

function noLock(_meeting: ProcessLock): void {}

type State = { open: boolean; failed: boolean; stepError: unknown; after: (() => void)[] }

function openTx(steps: Steps, of: Pick<Tx, 'engine' | 'shard'>, state: State): Tx {
  async function step<T, A extends unknown[]>(run: (...args: A) => T | Promise<T>, ...args: A): Promise<T> {
    const pausing = state.open ? steps.pause?.() : undefined
    if (pausing) await pausing
    // The time limit of the transaction may have passed during the pause.
    if (!state.open) throw new Error('the transaction has ended')
    if (state.failed) throw new Error('a statement of this transaction has failed', { cause: state.stepError })
    try {
      return await run(...args)
    } catch (error) {
      if (!state.failed) Object.assign(state, { failed: true, stepError: error })
      throw error
    }
  }
  return {
    ...of,
    all: <T>(query: Sql) => step(steps.all<T>, query),
    get: async <T>(query: Sql) => (await step(steps.all<T>, query))[0],
    run: (query) => step(steps.run, query),
    meet: (meeting) => step(steps.meet ?? noLock, meeting),
    after: (callback) => void state.after.push(callback),
  }
}
