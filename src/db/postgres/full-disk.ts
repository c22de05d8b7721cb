// Detection of a PostgreSQL server whose disk is full. Its disk cannot be seen from here, and only writes fail, so the check writes
// as well. It does so only after a write of this process has failed.
import { performance } from 'node:perf_hooks'
import type pg from 'pg'
import { diskFull as code, isDiskFull } from '../unavailable.ts'
import type { Sends } from './send.ts'

/** Writes about 1 MiB. The table is temporary and belongs to a transaction that is rolled back. */
const probe = 'CREATE TEMP TABLE pinfold_room AS SELECT md5(i::text) AS text FROM generate_series(1, 20000) AS i'

/** `fullMs` is the time after a failed write for which the disk counts as full in any case. */
export function createFullDisk({ send, limits }: Sends, fullMs: number) {
  let failedAt: number | undefined
  return {
    note(error: unknown): void {
      if (isDiskFull(error)) failedAt = performance.now()
    },
    /** Throws if the disk is full. */
    async require(client: pg.PoolClient): Promise<void> {
      if (failedAt === undefined) return
      const ask = (text: string) => send(client, { text }, limits.quick)
      await ask('BEGIN')
      const error = await ask(probe).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      await ask('ROLLBACK')
      if (isDiskFull(error)) throw error
      // A user without the right to create temporary tables cannot check the disk. Then only time passes.
      if (performance.now() - failedAt >= fullMs) failedAt = undefined
      else throw Object.assign(new Error('a write failed, because the disk of the database is full'), { code })
    },
  }
}
