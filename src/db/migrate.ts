// Brings a database to the shape this build expects, all of it in one transaction or none of it.
import { createHash } from 'node:crypto'
import { type Db, ident, type Reader, raw, sql, type Tx } from './sql.ts'
import { type Words, words } from './words.ts'

/** Never edited after release. Each string of `up` is one statement. */
export type Migration = { id: string; up: (t: Words) => string[] }

/** Applies what is missing and returns those ids. Refuses a database that was written by other migrations than these. */
export async function migrate(db: Db, migrations: readonly Migration[]): Promise<string[]> {
  checkOrder(migrations)
  const t = words[db.engine]
  return await db.tx(async (tx) => {
    await prepare[db.engine](tx)
    await tx.run(
      raw(`CREATE TABLE IF NOT EXISTS schema_migrations (
             id ${t.text} PRIMARY KEY, checksum ${t.text} NOT NULL, applied_time ${t.text} NOT NULL
           )${t.strict}`),
    )
    const rows = await tx.all<{ id: string; checksum: string }>(sql`SELECT id, checksum FROM schema_migrations`)
    const applied = new Map(rows.map((row) => [row.id, row.checksum]))
    checkKnown(
      migrations.map(({ id }) => id),
      applied,
    )

    const now: string[] = []
    for (const { id, up } of migrations) {
      const statements = up(t)
      const checksum = createHash('sha256').update(JSON.stringify(statements)).digest('hex')
      if (applied.has(id)) {
        if (applied.get(id) !== checksum) throw new Error(`migration ${id} was edited after it was applied`)
        continue
      }
      for (const statement of statements) await apply(tx, id, statement)
      await tx.run(sql`
        INSERT INTO schema_migrations (id, checksum, applied_time)
        VALUES (${id}, ${checksum}, ${new Date().toISOString()})`)
      now.push(id)
    }
    return now
  })
}

/** Whether there are tables of ours, and all that these migrations make. Throws where `migrate` would refuse. */
export async function schemaState(db: Db, ids: readonly string[]): Promise<'none' | 'old' | 'current'> {
  if (!(await hasTable(db, 'schema_migrations'))) return 'none'
  const rows = await db.all<{ id: string }>(sql`SELECT id FROM schema_migrations`)
  const applied = new Map(rows.map(({ id }) => [id, id]))
  checkKnown(ids, applied)
  return ids.every((id) => applied.has(id)) ? 'current' : 'old'
}

/** Whether the schema that is in use has such a table. */
export async function hasTable(reader: Reader & Pick<Db, 'engine'>, name: string): Promise<boolean> {
  const found =
    reader.engine === 'sqlite'
      ? await reader.get(sql`SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ${name}`)
      : await reader.get(sql`
          SELECT 1 AS found FROM information_schema.tables
           WHERE table_schema = current_schema() AND table_name = ${name}`)
  return found !== undefined
}

async function apply(tx: Tx, id: string, statement: string): Promise<void> {
  try {
    await tx.run(raw(statement))
  } catch (cause) {
    throw new Error(`migration ${id} failed: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}

function checkOrder(migrations: readonly Migration[]): void {
  for (const [i, { id }] of migrations.entries()) {
    const before = migrations[i - 1]?.id
    if (before !== undefined && before >= id) throw new Error(`migration ${id} must sort after ${before}`)
  }
}

function checkKnown(ids: readonly string[], applied: Map<string, string>): void {
  const known = new Set(ids)
  for (const id of applied.keys()) {
    if (!known.has(id)) throw new Error(`the database was written by a newer version: migration ${id} is unknown here`)
  }
}

/** What an engine needs at the start of the migrating transaction, so that only one node applies anything. */
const prepare: Record<Db['engine'], (tx: Tx) => Promise<void>> = {
  // The one immediate transaction is the lock.
  async sqlite() {},

  async postgres(tx) {
    // A serializable snapshot would be older than the lock, and would not show what the other node has just applied.
    await tx.run(sql`SET TRANSACTION ISOLATION LEVEL READ COMMITTED`)
    await tx.run(sql`SET LOCAL statement_timeout = 0`)
    await tx.all(sql`SELECT pg_advisory_xact_lock(7420001, hashtext(current_setting('search_path'))) IS NULL`)
    const schema = await tx.get<{ current: string | null; wanted: string }>(
      sql`SELECT current_schema() AS current, current_setting('search_path') AS wanted`,
    )
    if (schema?.current === null) await tx.run(sql`CREATE SCHEMA ${ident(schema.wanted)}`)
  },
}
