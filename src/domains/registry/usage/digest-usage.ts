// Pull counts by caller. A pull adds to a number in memory, and a background job writes the numbers to the database. So no pull
// waits for the disk, and a million pulls of one digest become one row.
import type { Db, Tx } from '#db/sql.ts'
import { type BatchWriter, createBatchWriter, inOrder } from '#lib/batches/batch-writer.ts'
import { maxCallers, nobody, others, type Usage } from './digest-usage.model.ts'
import { addUsage, callersOf } from './digest-usage.store.ts'

/** Counter of pulls. `flush` writes the counts and returns the number of written rows. */
export type DigestUsage = BatchWriter & {
  /** Counts a pull. `caller` is a uid, or empty without a credential. `now` is the time of the request. */
  note(repo: number, digest: string, caller: string, method: 'GET' | 'HEAD', now: string): void
}

/** Most rows in one commit. With SQLite, other writers wait for a commit, so each must be short. */
const perCommit = 500
/** Most rows that wait to be written. If there are more, the database is too slow, and new rows are dropped. */
const maxWaiting = 20_000

export type UsageReport = {
  /** Called if counts could not be written and are lost. */
  failed(error: unknown): void
  /** Called with each write. `count` is the number of dropped pulls, or 0. */
  dropped(count: number): void
}

export function createDigestUsage(db: Db, report: UsageReport): DigestUsage {
  let noted = new Map<string, Usage>()
  let dropped = 0

  const add = (key: string, some: Usage): void => {
    const known = noted.get(key)
    if (!known) {
      if (noted.size < maxWaiting) noted.set(key, some)
      else dropped += some.gets + some.checks
      return
    }
    known.gets += some.gets
    known.checks += some.checks
    if (some.lastTime > known.lastTime) known.lastTime = some.lastTime
  }
  const writer = createBatchWriter<[string, Usage]>({
    take() {
      report.dropped(dropped)
      dropped = 0
      const all = inOrder(noted)
      noted = new Map()
      return all
    },
    putBack(left) {
      for (const [key, usage] of left) add(key, usage)
    },
    async write(batch) {
      const rows = batch.map(([, usage]) => usage)
      await db.tx((tx) => writeRows(tx, rows), { durability: 'later' })
      return rows.length
    },
    perBatch: perCommit,
    failed: report.failed,
  })
  return {
    ...writer,
    note(repo, digest, caller, method, now) {
      const day = now.slice(0, 10)
      const [gets, checks] = method === 'GET' ? [1, 0] : [0, 1]
      add(`${repo} ${digest} ${day} ${caller}`, { repo, digest, day, caller, gets, checks, lastTime: now })
    },
  }
}

/** Writes rows. Callers above the limit for a digest and a day are merged into one row. */
async function writeRows(tx: Tx, noted: readonly Usage[]): Promise<void> {
  const rows: Usage[] = []
  for (const [, same] of Map.groupBy(noted, ({ repo, digest, day }) => `${repo} ${digest} ${day}`)) {
    const named = new Set(await callersOf(tx, same[0]!))
    const rest: Usage = { ...same[0]!, caller: others, gets: 0, checks: 0, lastTime: '' }
    for (const one of same) {
      if (one.caller === nobody || named.has(one.caller) || named.size < maxCallers) {
        if (one.caller !== nobody) named.add(one.caller)
        rows.push(one)
        continue
      }
      rest.gets += one.gets
      rest.checks += one.checks
      if (one.lastTime > rest.lastTime) rest.lastTime = one.lastTime
    }
    if (rest.lastTime !== '') rows.push(rest)
  }
  await addUsage(tx, rows)
}
