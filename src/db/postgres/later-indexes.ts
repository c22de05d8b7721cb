// Indexes of tables that may have many rows already, in a database that others write meanwhile: one is built outside of any
// transaction and beside writers, once what it is of is there. Until then the migration that has it is only begun.
import { type Db, type Reader, raw, sql } from '../sql.ts'

const begun = 'indexes missing: '

export type SplitChange = { now: string[]; later: Index[] }
type Index = { name: string; statement: string }

/** What has to be part of the change, and the indexes that can be built after it. */
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

/** What is noted of a migration whose indexes are not there yet. */
export const begunOf = (checksum: string): string => begun + checksum

export const isBegun = (noted: string): boolean => noted.startsWith(begun)

/** Builds what is missing, one process at a time. What was cut short is thrown away and built anew. */
export async function buildIndexes(
  alone: NonNullable<Db['alone']>,
  changes: readonly { id: string; later: readonly Index[]; checksum: string }[],
): Promise<void> {
  const missing = changes.filter(({ later }) => later.length > 0)
  if (missing.length === 0) return
  await alone(async (one) => {
    const place = sql`7420002, hashtext(current_setting('search_path'))`
    await one.all(sql`SELECT pg_advisory_lock(${place}) IS NULL`)
    try {
      for (const { id, later, checksum } of missing) {
        const noted = await one.get(sql`
          SELECT 1 AS found FROM schema_migrations WHERE id = ${id} AND checksum = ${begunOf(checksum)}`)
        if (!noted) continue
        for (const index of later) await build(one, id, index)
        await one.all(sql`UPDATE schema_migrations SET checksum = ${checksum} WHERE id = ${id}`)
      }
    } finally {
      await one.all(sql`SELECT pg_advisory_unlock(${place})`)
    }
  })
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
