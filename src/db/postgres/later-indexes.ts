// Builds indexes on large tables while other processes write to the database. Such an index is built outside of a transaction,
// after its table and columns exist. Until the index exists, its migration is marked as begun.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Db, type Reader, raw, type Sql, sql } from '../sql.ts'

const begun = 'indexes missing: '
/** Milliseconds between two attempts while another process builds indexes. */
const pauseMs = 200

export type SplitChange = { now: string[]; later: Index[] }
type Index = { name: string; statement: string }

/** Splits a change into the statements of its transaction, and the indexes that can be built later. */
export function splitIndexes(statements: readonly string[]): SplitChange {
  const made = new Set(statements.flatMap((one) => /^CREATE TABLE (\w+)/.exec(one)?.[1] ?? []))
  const now: string[] = []
  const later: Index[] = []
  for (const statement of statements) {
    const [, name, table] = /^CREATE INDEX (\w+)\s+ON (\w+)/.exec(statement) ?? []
    if (name && table && !made.has(table)) later.push({ name, statement })
    else now.push(statement)
  }
  return { now, later }
}

/** Checksum in `schema_migrations` for a migration whose indexes are not built yet. */
export const begunOf = (checksum: string): string => begun + checksum

export const isBegun = (noted: string): boolean => noted.startsWith(begun)

/** Builds missing indexes, one process at a time. Drops an incomplete index and builds it again. */
export async function buildIndexes(
  alone: NonNullable<Db['alone']>,
  changes: readonly { id: string; later: readonly Index[]; checksum: string }[],
): Promise<void> {
  const missing = changes.filter(({ later }) => later.length > 0)
  if (missing.length === 0) return
  await alone(async (one) => {
    const key = sql`7420002, hashtext(current_setting('search_path'))`
    await takeTurn(one, key)
    try {
      for (const { id, later, checksum } of missing) {
        const noted = await one.get(sql`
          SELECT 1 AS found FROM schema_migrations WHERE id = ${id} AND checksum = ${begunOf(checksum)}`)
        if (!noted) continue
        for (const index of later) await build(one, id, index)
        await one.all(sql`UPDATE schema_migrations SET checksum = ${checksum} WHERE id = ${id}`)
      }
    } finally {
      await one.all(sql`SELECT pg_advisory_unlock(${key})`)
    }
  })
}

/**
 * Waits while another process builds indexes. The wait is between statements. The build waits for every statement that began
 * earlier, so waiting inside a statement would be a deadlock.
 */
async function takeTurn(one: Reader, key: Sql): Promise<void> {
  const take = sql`SELECT pg_try_advisory_lock(${key}) AS taken`
  while (!(await one.get<{ taken: number }>(take))!.taken) await sleep(pauseMs)
}

async function build(one: Reader, id: string, { name, statement }: Index): Promise<void> {
  const isHalf = await one.get(sql`
    SELECT 1 AS found FROM pg_index WHERE indexrelid = to_regclass(${name}) AND NOT indisvalid`)
  try {
    if (isHalf) await one.all(raw(`DROP INDEX CONCURRENTLY ${name}`))
    await one.all(raw(statement.replace('CREATE INDEX', 'CREATE INDEX CONCURRENTLY IF NOT EXISTS')))
  } catch (cause) {
    throw new Error(`migration ${id} failed: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}
