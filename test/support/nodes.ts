// Second server on the database of the first one, in the same process. It has its own database connection, caches and port.
import { startServer } from '#api/server.ts'
import { ownClocks } from '#db/skew.ts'
import { raw } from '#db/sql.ts'
import { createApp } from '../../src/create-app.ts'
import { onPostgres, type Pinfold } from './pinfold.ts'
import { type RegistryClient, registryClient } from './registry.ts'

export type Node = Awaited<ReturnType<typeof secondNode>>

/**
 * Starts a second server. On SQLite, where there can be only one, returns the first server. The clock of the second one is ahead
 * by `aheadMs`.
 */
export async function secondNode(first: Pick<Pinfold, 'app' | 'url' | 'port'>, aheadMs: number | (() => number) = 0) {
  if (!onPostgres) return { app: first.app, url: first.url, port: first.port, async [Symbol.asyncDispose]() {} }
  const listen = { host: '127.0.0.1', port: 0 }
  const ahead = typeof aheadMs === 'number' ? () => aheadMs : aheadMs
  const clock = aheadMs === 0 ? first.app.clock : undefined
  const machine = { ...ownClocks, time: () => Date.now() + ahead() }
  const app = await createApp({ ...first.app.config, listen, url: first.url }, clock, undefined, machine)
  const server = await startServer(app)
  return {
    app,
    url: first.url,
    port: server.port,
    async [Symbol.asyncDispose]() {
      await server.close()
      await app.close()
    },
  }
}

/** The same client, with requests to another server. */
export function clientAt(node: Node, { token }: RegistryClient): RegistryClient {
  return registryClient(`http://127.0.0.1:${node.port}`, token)
}

/** Resolves once the given number of transactions are waiting for a lock. */
export async function someoneWaits({ app: { db } }: Pick<Pinfold, 'app'>, wanted = 1): Promise<void> {
  const waiting = raw(`
    SELECT count(*) AS n FROM pg_stat_activity
     WHERE wait_event_type = 'Lock' AND query LIKE '%FROM repos WHERE%' AND pid <> pg_backend_pid()
       AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = pg_stat_activity.pid
                      AND l.relation = to_regclass('repos'))`)
  for (let tries = 0; (await db.get<{ n: number }>(waiting))!.n < wanted; tries++) {
    if (tries > 4000) throw new Error('nobody waits for a repo')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
