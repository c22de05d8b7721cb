// Check that no server runs, for commands that require this.
import { join } from 'node:path'
import type { Config } from '#config.ts'
import { liveNode, nodeBeats, startedSince } from '#db/nodes.ts'
import type { Db, Tx } from '#db/sql.ts'
import { takeServeLock } from '#db/sqlite/serve-lock.ts'
import { CliError, exitCodes } from '../framework/cli-error.ts'

export type Stopped = {
  /**
   * Runs a transaction during which no server can start. Throws if a server has started since the check. The transaction may
   * change any number of rows.
   */
  tx<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  release(): void
}

/** Throws if a server uses the database. With an embedded database, no server can start until `release` is called. */
export async function requireStopped(db: Db, { database, data, leaseMs }: Config): Promise<Stopped> {
  const lock = database === '' ? takeServeLock(join(data, 'serve.lock')) : undefined
  if (!lock && database === '') throw busy(`the data folder ${data} is in use`)
  // Heartbeats are read before the check for running servers. A server that starts during the check is then not mistaken for one
  // that has stopped.
  const still = await nodeBeats(db)
  const alive = db.shared ? await liveNode(db, () => true, leaseMs) : undefined
  if (alive) throw busy(`a server uses the database, with the URL ${alive.url}`)
  return {
    tx: (work) =>
      db.tx(
        async (tx) => {
          const started = await startedSince(tx, still, () => true)
          if (started) throw busy(`a server that uses the database has started, with the URL ${started.url}`)
          return work(tx)
        },
        { isolation: 'rowLocks', aside: 'disk' },
      ),
    release: () => lock?.release(),
  }
}

function busy(why: string): CliError {
  return new CliError(exitCodes.unavailable, `nothing was changed: ${why}; stop every server first`)
}
