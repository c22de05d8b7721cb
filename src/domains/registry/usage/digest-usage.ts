// Who pulls what, counted: a pull adds to a number in memory, and a duty writes the numbers, so that a million pulls of one
// digest are one row, and no pull waits for the disk.
import type { Db, Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { maxCallers, nobody, others, type Usage } from './digest-usage.model.ts'
import { addUsage, callersOf } from './digest-usage.store.ts'

export type DigestUsage = {
  /** `caller` is a uid, empty for whoever has shown no credential; `now` as in a cause. */
  note(repo: number, digest: string, caller: string, method: 'GET' | 'HEAD', now: string): void
  /** Writes what was noted, and answers with how many rows that were. */
  flush(): Promise<number>
  close(): Promise<void>
}

/** On SQLite a commit stops everything, so none is long. */
const perCommit = 500
/** With more than these waiting, the database does not keep up, and what would be new is left out. */
const maxWaiting = 20_000

/** `report` hears of counts that could not be written, and of how many pulls were left out. */
export function createDigestUsage(
  db: Db,
  report: { failed(error: unknown): void; dropped(count: number): void },
): DigestUsage {
  let noted = new Map<string, Usage>()
  let dropped = 0
  let writing: Promise<number> | undefined

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
  const write = async (): Promise<number> => {
    if (dropped > 0) report.dropped(dropped)
    dropped = 0
    // In the same order on every node, so that no two wait for each other's rows.
    const all = [...noted].sort(([a], [b]) => (a < b ? -1 : 1))
    noted = new Map()
    const batches = chunks(all, perCommit)
    for (const [i, batch] of batches.entries()) {
      try {
        await db.tx(
          (tx) =>
            writeRows(
              tx,
              batch.map(([, usage]) => usage),
            ),
          { durability: 'later' },
        )
      } catch (error) {
        for (const [key, usage] of batches.slice(i).flat()) add(key, usage)
        throw error
      }
    }
    return all.length
  }
  const flush = (): Promise<number> => {
    writing ??= write().finally(() => {
      writing = undefined
    })
    return writing
  }
  return {
    note(repo, digest, caller, method, now) {
      const day = now.slice(0, 10)
      const [gets, checks] = method === 'GET' ? [1, 0] : [0, 1]
      add(`${repo} ${digest} ${day} ${caller}`, { repo, digest, day, caller, gets, checks, lastTime: now })
    },
    flush,
    async close() {
      await writing?.catch(() => {})
      await flush().catch(report.failed)
    },
  }
}

/** Callers that are too many for a digest and a day become one. */
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
