// Embedded engine. Writers queue for one connection and share commits, because one fsync costs more than a hundred statements.
// Readers have a connection of their own and see only committed data.
import { AsyncResource } from 'node:async_hooks'
import { longTurns } from '#lib/scheduling/long-turns.ts'
import { createCommits } from '../changes.ts'
import { createGuard, type Outcome, type Steps } from '../guard.ts'
import { type Change, type Db, raw, type Sql, sql, type Tx, type TxOptions } from '../sql.ts'
import { createCheckpoints } from './checkpoints.ts'
import { type Connection, connect } from './sqlite-connection.ts'
import { type Job, WriteQueue } from './write-queue.ts'

const workMs = 5000
/** Temporary data of a transaction is kept in memory by default. */
type Settings = Omit<TxOptions, 'aside'> & { aside?: Job['aside'] }
const nothing = (): undefined => undefined

/**
 * Opens or creates the database in `file`, whose folder must exist. With `external`, another program manages the log, so the
 * server never checkpoints it: a log that is not copied yet must not be overwritten.
 */
export function openSqlite(file: string, by: 'server' | 'external' = 'server'): Db {
  const writer = connect(file, { readOnly: false, checkpoints: by === 'server' })
  const reader = connect(file, { readOnly: true })
  const snapshot = shareSnapshots(reader)
  const checkpoints = by === 'server' ? createCheckpoints(file) : undefined
  const guard = createGuard('sqlite')
  const commits = createCommits()
  // A checkpoint as part of a commit could not finish while a reader still uses an older snapshot.
  const [beforeCommit, afterCommit, hold] = [snapshot.end, checkpoints?.note ?? nothing, checkpoints?.hold ?? nothing]
  const queue = new WriteQueue({ writer, commits, beforeCommit, afterCommit, hold })
  let closed = false

  return {
    engine: 'sqlite',
    shared: false,

    async all<T>(query: Sql) {
      guard.outside('all')
      const rows = snapshot.all<T>(query)
      await longTurns.letOthersRun()
      return rows
    },

    async get<T>(query: Sql) {
      guard.outside('get')
      const [row] = snapshot.all<T>(query)
      await longTurns.letOthersRun()
      return row
    },

    async tx<T>(work: (tx: Tx) => Promise<T>, { durability, aside = 'memory' }: Settings = {}): Promise<T> {
      guard.outside('tx')
      if (closed) throw new Error('the database is closed')
      // The batch runs in the context of the first caller; each transaction must run in that of its own caller.
      const caller = new AsyncResource('pinfold.tx')
      const outcome = await new Promise<Outcome<unknown>>((settle) => {
        const changes = new Set<Change>()
        const run = () =>
          caller.runInAsyncScope(async () => {
            // Time is charged to the request that runs after an `await` (lib/budgets/thread-time.ts).
            await undefined
            return guard.run(createSteps(writer, changes, queue), 0, work, workMs)
          })
        queue.push({ durable: durability !== 'later', aside, changes, run, settle })
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
    stats: () => ({ ...queue.counts }),

    async close() {
      if (closed) return
      closed = true
      await queue.idle()
      await checkpoints?.close()
      snapshot.end()
      reader.close()
      writer.close()
    },
  }
}

function createSteps(writer: Connection, changes: Set<Change>, queue: WriteQueue): Steps {
  // A full disk can make SQLite roll back the whole transaction; the next statement would then commit on its own.
  const inTransaction = <T>(step: () => T): T => {
    if (!writer.inTransaction) throw new Error('the transaction was rolled back by SQLite')
    return step()
  }
  return {
    all: async <T>(query: Sql) => inTransaction(() => writer.all<T>(query, changes)),
    run: async (query: Sql) => inTransaction(() => writer.run(query, changes)),
    pause: () => queue.pause(),
  }
}

/**
 * Reads of one turn of the event loop share a snapshot, since taking one costs several system calls. It ends with the turn, and
 * with every commit of ours, so that listeners of a change also read it.
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
