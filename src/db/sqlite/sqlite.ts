// SQLite engine. Writers share one connection and one commit, because one fsync costs more than a hundred statements. Readers use
// another connection, and see only committed data.
import { AsyncResource } from 'node:async_hooks'
import { longTurns } from '#lib/scheduling/long-turns.ts'
import { createCommits } from '../changes.ts'
import { createGuard, type Outcome, type Steps } from '../guard.ts'
import { type Change, type Db, raw, type Sql, sql, type Tx, type TxOptions } from '../sql.ts'
import { createCheckpoints } from './checkpoints.ts'
import { type Connection, connect } from './sqlite-connection.ts'
import { type Job, WriteQueue } from './write-queue.ts'

const workMs = 5000
/** By default, a transaction keeps its temporary data in memory. */
type Settings = Omit<TxOptions, 'aside'> & { aside?: Job['aside'] }
const nothing = (): undefined => undefined

/**
 * Opens or creates the database in `file`, whose folder must exist. With `external`, a replication tool manages the write-ahead
 * log, so the server never runs a checkpoint. A checkpoint could overwrite log pages that the tool has not copied yet.
 */
export function openSqlite(file: string, by: 'server' | 'external' = 'server'): Db {
  const writer = connect(file, { readOnly: false, checkpoints: by === 'server' })
  const reader = connect(file, { readOnly: true })
  const snapshot = shareSnapshots(reader)
  const checkpoints = by === 'server' ? createCheckpoints(file) : undefined
  const guard = createGuard('sqlite')
  const commits = createCommits()
  // Ends the snapshot of the readers before a commit. With an open snapshot, a checkpoint in the commit could not finish.
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
      // A batch runs in the async context of its first caller, so each transaction is moved into the context of its own caller.
      const caller = new AsyncResource('pinfold.tx')
      const outcome = await new Promise<Outcome<unknown>>((settle) => {
        const changes = new Set<Change>()
        const run = () =>
          caller.runInAsyncScope(async () => {
            // Time is charged to the request whose code continues after an `await`, so the work starts after one
            // (lib/budgets/thread-time.ts).
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
  // If the disk is full, SQLite may roll back the whole transaction. The next statement must not run then, since it would commit
  // on its own.
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
 * Reads in one turn of the event loop share a snapshot, since opening a snapshot costs several system calls. A snapshot ends with
 * the turn and with each commit, so listeners to a commit read its changes.
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
