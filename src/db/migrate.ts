// Migrates a database to the schema that this build expects. Changes of the schema are made in one transaction. Changes that
// other builds can run beside have a transaction each. Backfills fill the new columns and tables in batches.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { phaseOf } from './migration-ids.ts'
import { begunOf, buildIndexes, isBegun, type SplitChange, splitIndexes } from './postgres/later-indexes.ts'
import { type Db, ident, type Reader, raw, sql, type Tx } from './sql.ts'
import { type Words, words } from './words.ts'

/**
 * Never edited after release. Each string of `up` is one statement. The name contains the phase (`phaseOf`): an expansion adds
 * tables and columns that earlier builds ignore, a backfill fills them, a contraction removes those that only earlier builds
 * need.
 */
export type Migration = SchemaChange | Backfill
export type SchemaChange = { id: string; up: (t: Words) => string[] }
/**
 * Batches of a migration. `batch` does a part of the work and returns its amount, or 0 if nothing is left. Each batch is
 * committed.
 */
export type Backfill = { id: string; batch: (tx: Tx) => Promise<number> }

export type MigrateOptions = {
  /** Also applies contractions: no build that needs the removed tables and columns may be running, or come back. */
  finish?: boolean
  /**
   * Called in the transaction of a change that would break servers of an earlier build, before the change. If it throws, the
   * migration ends.
   */
  mayBreak?(tx: Tx, id: string): Promise<void>
  /** Reports the migration that runs, and the number of rows that a backfill has done. */
  progress?(id: string, rows: number): void
}

/**
 * Number of attempts of a change that waits too long for a lock. It must not wait longer, since all other statements would wait
 * behind it.
 */
const lockTries = 60
const lockPauseMs = 500
/** An index of all rows of a table is sorted first. */
const ofAnySize = { aside: 'disk', timeLimit: 'none' } as const

/**
 * Applies missing migrations and returns their ids. Refuses a database with unknown migrations, except for expansions and
 * backfills of a newer build. A contraction, and every migration after it, waits for `finish`.
 */
export async function migrate(
  db: Db,
  migrations: readonly Migration[],
  options: MigrateOptions = {},
): Promise<string[]> {
  const { finish = false, progress } = options
  checkOrder(migrations)
  const applied = await appliedBefore(db)
  const last = finish ? -1 : firstContraction(applied, migrations)
  const wanted = last < 0 ? migrations : migrations.slice(0, last)
  // No other process waits for a database that is empty, or that one process has for itself.
  const isWaitedFor = db.shared && applied.size > 0
  const isApart = ({ id }: Migration): boolean => isWaitedFor && phaseOf(id) !== 'whole'
  const done: string[] = []
  for (let at = 0; at < wanted.length; ) {
    const one = wanted[at]!
    if ('batch' in one) {
      if (await backfill(db, one, progress)) done.push(one.id)
      at++
      continue
    }
    const end = wanted.findIndex((other, i) => i > at && ('batch' in other || isApart(one) || isApart(other)))
    const some = wanted.slice(at, end < 0 ? undefined : end)
    const parts = some.flatMap((change) => ('batch' in change ? [] : partsOf(db, change, isApart(change))))
    done.push(...(await withLocks(() => applyAll(db, migrations, parts, options))))
    if (db.alone) await buildIndexes(db.alone, parts)
    at += some.length
  }
  if (wanted.length === 0) await withLocks(() => applyAll(db, migrations, []))
  return done
}

async function appliedBefore(db: Db): Promise<Map<string, string>> {
  return (await hasTable(db, 'schema_migrations')) ? appliedIn(db) : new Map()
}

/** The first one that is not there yet and not for now; -1 when there is none. */
function firstContraction(applied: ReadonlyMap<string, string>, migrations: readonly Migration[]): number {
  // No server of an earlier build can use an empty database.
  if (applied.size === 0) return -1
  return migrations.findIndex(({ id }) => phaseOf(id) === 'contract' && !applied.has(id))
}

/** The first that is missing, and for now, of the changes that no earlier build can be beside. */
export async function breakingChange(db: Db, ids: readonly string[], finish: boolean): Promise<string | undefined> {
  const applied = await appliedBefore(db)
  if (applied.size === 0) return undefined
  const first = ids.find((id) => phaseOf(id) === 'whole' && !applied.has(id))
  const waits = ids.find((id) => phaseOf(id) === 'contract' && !applied.has(id))
  return !finish && first !== undefined && waits !== undefined && first > waits ? undefined : first
}

type Parts = SplitChange & { id: string; checksum: string }

/** Splits a change into statements for its transaction, and indexes that are built after it if other servers are running. */
function partsOf(db: Db, { id, up }: SchemaChange, isApart: boolean): Parts {
  const statements = up(words[db.engine])
  const split = isApart ? splitIndexes(statements) : { now: statements, later: [] }
  return { id, checksum: checksumOf(statements), ...split }
}

async function withLocks<T>(work: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await work()
    } catch (error) {
      const { cause = error } = error as Error
      if ((cause as { code?: string }).code !== '55P03' || tried >= lockTries) throw error
      await sleep(lockPauseMs)
    }
  }
}

async function applyAll(
  db: Db,
  all: readonly Migration[],
  some: readonly Parts[],
  { mayBreak, progress }: MigrateOptions = {},
): Promise<string[]> {
  const t = words[db.engine]
  return db.tx(async (tx) => {
    await prepare[db.engine](tx)
    await tx.run(
      raw(`CREATE TABLE IF NOT EXISTS schema_migrations (
             id ${t.text} PRIMARY KEY, checksum ${t.text} NOT NULL, applied_time ${t.text} NOT NULL
           )${t.strict}`),
    )
    const applied = await appliedIn(tx)
    checkKnown(
      all.map(({ id }) => id),
      applied,
    )
    const done: string[] = []
    for (const { id, now, later, checksum } of some) {
      const noted = applied.get(id)
      if (noted !== undefined) {
        if (![checksum, begunOf(checksum)].includes(noted))
          throw new Error(`migration ${id} was changed after it was applied`)
        continue
      }
      // No server can use a database that was empty.
      if (applied.size > 0 && ['whole', 'contract'].includes(phaseOf(id))) await mayBreak?.(tx, id)
      progress?.(id, 0)
      for (const statement of now) await apply(tx, id, statement)
      await note(tx, id, later.length > 0 ? begunOf(checksum) : checksum)
      done.push(id)
    }
    return done
  }, ofAnySize)
}

/** Runs in batches, so that no other process waits for all of it. A backfill that was interrupted continues where it stopped. */
async function backfill(db: Db, one: Backfill, progress?: MigrateOptions['progress']): Promise<boolean> {
  if ((await appliedIn(db)).has(one.id)) return false
  for (let rows = 0, some = 1; some > 0; rows += some) {
    progress?.(one.id, rows)
    some = await db.tx(one.batch, { timeLimit: 'none' })
  }
  await db.tx((tx) => note(tx, one.id, 'backfill'))
  return true
}

async function appliedIn(reader: Reader): Promise<Map<string, string>> {
  const rows = await reader.all<{ id: string; checksum: string }>(sql`SELECT id, checksum FROM schema_migrations`)
  return new Map(rows.map((row) => [row.id, row.checksum]))
}

async function note(tx: Tx, id: string, checksum: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO schema_migrations (id, checksum, applied_time) VALUES (${id}, ${checksum}, ${new Date().toISOString()})
        ON CONFLICT (id) DO NOTHING`)
}

const checksumOf = (statements: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(statements)).digest('hex')

/** Tells if the database has our tables, and all tables of these migrations. Throws if `migrate` would refuse. */
export async function schemaState(db: Db, ids: readonly string[]): Promise<'none' | 'old' | 'current'> {
  if (!(await hasTable(db, 'schema_migrations'))) return 'none'
  const applied = await appliedIn(db)
  checkKnown(ids, applied)
  // Contractions wait until the operator confirms that no earlier build comes back.
  const first = ids.findIndex((id) => phaseOf(id) === 'contract' && !applied.has(id))
  const wanted = first < 0 ? ids : ids.slice(0, first)
  return wanted.every((id) => !isBegun(applied.get(id) ?? begunOf(''))) ? 'current' : 'old'
}

/** Throws if a newer build has made a change that this build cannot run beside. */
export async function requireKnown(reader: Reader, ids: readonly string[]): Promise<void> {
  checkKnown(ids, await appliedIn(reader))
}

/** True if the current schema has this table. */
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
    if (known.has(id) || ['expand', 'backfill'].includes(phaseOf(id))) continue
    throw new Error(`the database has the schema of a newer version: this version does not know migration ${id}`)
  }
}

/** Preparation of the migrating transaction by engine, so that only one node applies changes. */
const prepare: Record<Db['engine'], (tx: Tx) => Promise<void>> = {
  // The one immediate transaction is the lock.
  async sqlite() {},

  async postgres(tx) {
    // A serializable snapshot would be older than the lock, and would not show the migrations that the other node has just
    // applied.
    await tx.run(sql`SET TRANSACTION ISOLATION LEVEL READ COMMITTED`)
    // If a change waits for a table, all later statements wait behind it.
    await tx.run(sql`SET LOCAL lock_timeout = 2000`)
    await tx.all(sql`SELECT pg_advisory_xact_lock(7420001, hashtext(current_setting('search_path'))) IS NULL`)
    // Reads from a table, since a connection with an earlier snapshot sees new schemas of others only after it locks a table.
    const schema = await tx.get<{ current: string | null; wanted: string }>(
      sql`SELECT current_schema() AS current, current_setting('search_path') AS wanted FROM pg_namespace LIMIT 1`,
    )
    if (schema?.current === null) await tx.run(sql`CREATE SCHEMA ${ident(schema.wanted)}`)
  },
}
