// Detection of a PostgreSQL server whose disk is full. Its disk cannot be seen from here, and only writes fail, so the check writes
// as well. It does so only after a write of this process has failed.
import { performance } from 'node:perf_hooks'
import type pg from 'pg'
import { diskFull as code, isDiskFull, isUnavailable, StoppedByFullDisk } from '../unavailable.ts'
import type { Sends } from './send.ts'

/** Writes about 1 MiB. The table is temporary and belongs to a transaction that is rolled back. */
const probe = 'CREATE TEMP TABLE pinfold_room AS SELECT md5(i::text) AS text FROM generate_series(1, 20000) AS i'

/** `fullMs` is the time after a failed write for which the disk counts as full in any case. */
export function createFullDisk({ send, limits }: Sends, fullMs: number) {
  let failedAt: number | undefined
  let hasStopped = false
  function note(error: unknown): void {
    if (!isDiskFull(error)) return
    failedAt = performance.now()
    // PostgreSQL stops if it cannot write to its log. Only the connection that wrote learns the reason.
    if ((error as { severity?: unknown }).severity === 'PANIC') hasStopped = true
  }

  /** Names the full disk in a failure of `asked`, if the server has stopped because of it and does not answer yet. */
  async function explain<T>(asked: Promise<T>): Promise<T> {
    try {
      const answer = await asked
      hasStopped = false
      return answer
    } catch (error) {
      throw hasStopped && isUnavailable(error) && !isDiskFull(error) ? new StoppedByFullDisk(error) : error
    }
  }

  return {
    explain,
    /** Like `explain`, and notes if `asked` fails because of a full disk. Not for the check, which itself fails for a while. */
    watch<T>(asked: Promise<T>): Promise<T> {
      return explain(
        asked.catch((error: unknown) => {
          note(error)
          throw error
        }),
      )
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
