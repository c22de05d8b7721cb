// The embedded engine. Writers queue for one connection and share commits, because one fsync costs more than a
// hundred statements; readers have a connection of their own and see only what is committed.
import { AsyncResource } from 'node:async_hooks'
import { createCommits } from '../changes.ts'
import { createGuard, type Outcome } from '../guard.ts'
import { type Change, type Db, raw, type Sql, sql, type Tx, type TxOptions } from '../sql.ts'
import { createCheckpoints } from './checkpoints.ts'
import { type Connection, connect } from './sqlite-connection.ts'

const batchWorks = 256
const batchMs = 20
const workMs = 5000

/** One queued transaction: `run` does its work, `settle` tells the caller once the commit has or has not happened. */
type Job = {
  durable: boolean
  changes: ReadonlySet<Change>
  run(): Promise<Outcome<unknown>>
  settle(outcome: Outcome<unknown>): void
}

/** Opens or creates the database in `file`, whose folder must exist. */
export function openSqlite(file: string): Db {
  const writer = connect(file, { readOnly: false })
  const reader = connect(file, { readOnly: true })
  const snapshot = shareSnapshots(reader)
  const checkpoints = createCheckpoints(file)
  const guard = createGuard()
  const commits = createCommits()
  const counts = { transactions: 0, commits: 0, retries: 0 }
  const queue: Job[] = []
  let flushing: Promise<void> | undefined
  let closed = false

  const stepsOf = (changes: Set<Change>) => ({
    all: async <T>(query: Sql) => inTransaction(() => writer.all<T>(query, changes)),
    run: async (query: Sql) => inTransaction(() => writer.run(query, changes)),
  })

  // A full disk can make SQLite roll back everything; the next statement would then commit on its own.
  function inTransaction<T>(step: () => T): T {
    if (!writer.inTransaction) throw new Error('the transaction was rolled back by SQLite')
    return step()
  }

  async function flushAll(): Promise<void> {
    while (queue.length > 0) {
      // All requests that the event loop has ready get to queue before the batch starts.
      await new Promise((resolve) => setImmediate(resolve))
      await flush()
    }
    flushing = undefined
  }

  async function flush(): Promise<void> {
    const begun: Job[] = []
    const outcomes: Outcome<unknown>[] = []
    // Settled before the transaction begins, since SQLite does not change it inside one.
    const durable = queue.some((job) => job.durable)
    const isNext = (job: Job | undefined) => job && (durable || !job.durable)
    try {
      writer.waitForDisk(durable)
      writer.control('BEGIN IMMEDIATE')
      const end = performance.now() + batchMs
      while (isNext(queue[0]) && begun.length < batchWorks && performance.now() < end) {
        begun.push(queue.shift()!)
        outcomes.push(await attempt(writer, begun.at(-1)!))
      }
      // A commit that is also a checkpoint could not finish that while a reader looks at what was before.
      snapshot.end()
      writer.control('COMMIT')
      counts.commits++
      commits.report(begun.flatMap(({ changes }, i) => (outcomes[i]!.ok ? [changes] : [])))
      checkpoints.note()
    } catch (error) {
      rollBack(writer)
      // Without a transaction nobody in the queue can be served; the next call tries again.
      if (begun.length === 0) begun.push(...queue.splice(0))
      // Also those that failed alone: they may have seen rows that are gone now.
      outcomes.splice(0, Infinity, ...begun.map(() => failed(error)))
    }
    counts.transactions += begun.length
    for (const [i, job] of begun.entries()) job.settle(outcomes[i]!)
  }

  return {
    engine: 'sqlite',
    shared: false,

    async all<T>(query: Sql) {
      guard.outside('all')
      return snapshot.all<T>(query)
    },

    async get<T>(query: Sql) {
      guard.outside('get')
      return snapshot.all<T>(query)[0]
    },

    async tx<T>(work: (tx: Tx) => Promise<T>, { durability }: TxOptions = {}): Promise<T> {
      guard.outside('tx')
      if (closed) throw new Error('the database is closed')
      // The batch runs in the context of whoever came first; each work must run in its own caller's.
      const caller = new AsyncResource('pinfold.tx')
      const outcome = await new Promise<Outcome<unknown>>((settle) => {
        const changes = new Set<Change>()
        const run = () => caller.runInAsyncScope(() => guard.run(stepsOf(changes), 0, work, workMs))
        queue.push({ durable: durability !== 'later', changes, run, settle })
        flushing ??= flushAll()
      })
      if (!outcome.ok) throw outcome.error
      return outcome.value as T
    },

    onCommit: commits.listen,

    async plan(query) {
      const rows = reader.all<{ detail: string }>(sql`${raw('EXPLAIN QUERY PLAN ')}${query}`)
      return rows.map((row) => row.detail).join('\n')
    },

    ping: async () => void reader.all(sql`SELECT 1 AS one`),
    stats: () => ({ ...counts }),

    async close() {
      if (closed) return
      closed = true
      await flushing
      await checkpoints.close()
      snapshot.end()
      reader.close()
      writer.close()
    },
  }
}

/** Runs one work inside its savepoint. Throws only when the whole batch is lost. */
async function attempt(writer: Connection, job: Job): Promise<Outcome<unknown>> {
  writer.control('SAVEPOINT work')
  const outcome = await job.run()
  if (!writer.inTransaction) throw outcome.ok ? new Error('the transaction was rolled back by SQLite') : outcome.error
  if (!outcome.ok) writer.control('ROLLBACK TO work')
  writer.control('RELEASE work')
  if (outcome.ok) for (const callback of outcome.after) callback()
  return outcome
}

function rollBack(writer: Connection): void {
  try {
    if (writer.inTransaction) writer.control('ROLLBACK')
  } catch {
    // Then the next BEGIN fails too, and this is tried again.
  }
}

function failed(error: unknown): Outcome<unknown> {
  return { ok: false, error, stepError: undefined }
}

/**
 * Reads of one turn of the event loop share a snapshot, since taking one costs several system calls. It ends with the
 * turn, and with every commit of ours, so that whoever was told of a change also reads it.
 */
function shareSnapshots(reader: Connection): { all<T>(query: Sql): T[]; end(): void } {
  let turn: NodeJS.Immediate | undefined
  const end = (): void => {
    if (!turn) return
    clearImmediate(turn)
    turn = undefined
    if (reader.inTransaction) reader.control('COMMIT')
  }
  return {
    all(query) {
      if (!turn) {
        reader.control('BEGIN')
        turn = setImmediate(end)
      }
      return reader.all(query)
    },
    end,
  }
}
