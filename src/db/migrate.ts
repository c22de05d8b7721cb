// Migrates a database to the schema of this build. Schema changes share one transaction. Changes that other builds can run beside
// have one transaction each. Backfills fill new columns and tables in batches.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { phaseOf } from './migration-ids.ts'
import { begunOf, buildIndexes, isBegun, type SplitChange, splitIndexes } from './postgres/later-indexes.ts'
import { type Db, ident, type Reader, raw, sql, type Tx } from './sql.ts'
import { type Words, words } from './words.ts'

/**
 * Migration, which is never edited after its release. Each string of `up` is one statement. The ID contains the phase
 * (`phaseOf`). An expansion adds tables and columns that earlier builds ignore. A backfill fills them. A contraction removes
 * tables and columns that only earlier builds need.
 */
export type Migration = SchemaChange | Backfill
export type SchemaChange = { id: string; up: (t: Words) => string[] }
/**
 * Migration of rows in batches. `batch` migrates some rows and returns their number, or 0 if none are left. Each batch is
 * committed.
 */
export type Backfill = { id: string; batch: (tx: Tx) => Promise<number> }

export type MigrateOptions = {
  /** Applies contractions too. No build that needs the removed tables and columns may be running or be started later. */
  finish?: boolean
  /**
   * Called in the transaction of a change that would break running servers of an earlier build, before the change. If it throws,
   * the migration stops.
   */
  mayBreak?(tx: Tx, id: string): Promise<void>
  /** Reports the running migration, and the number of rows that a backfill has migrated. */
  progress?(id: string, rows: number): void
}

/** Number of attempts of a change that waits for a lock. Each wait is short, since all other statements wait behind it. */
const lockTries = 60
const lockPauseMs = 500
/** Building an index sorts all rows of its table, so temporary data is kept on disk and there is no time limit. */
const ofAnySize = { aside: 'disk', timeLimit: 'none' } as const

/**
 * Applies missing migrations and returns their IDs. Throws for a database with unknown migrations, except expansions and
 * backfills of a newer build. Without `finish`, stops before the first contraction.
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
  // If the database is empty, or only one process uses it, no other process waits for the migration.
  const isWaitedFor = db.shared && applied.size > 0
  const isDone = ({ id }: Migration): boolean => applied.has(id) && !isBegun(applied.get(id)!)
  // A migration that was applied before is only checked, so it shares a transaction with others.
  const isApart = (one: Migration): boolean => isWaitedFor && phaseOf(one.id) !== 'whole' && !isDone(one)
  const isBackfill = (one: Migration): one is Backfill => 'batch' in one && !isDone(one)
  const done: string[] = []
  for (let at = 0; at < wanted.length; ) {
    const one = wanted[at]!
    if (isBackfill(one)) {
      if (await backfill(db, one, progress)) done.push(one.id)
      at++
      continue
    }
    const end = wanted.findIndex((other, i) => i > at && (isBackfill(other) || isApart(one) || isApart(other)))
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

/** Position of the first contraction that is missing in the database. -1 if there is none. */
function firstContraction(applied: ReadonlyMap<string, string>, migrations: readonly Migration[]): number {
  // An empty database has no servers of an earlier build, so contractions can be applied at once.
  if (applied.size === 0) return -1
  return migrations.findIndex(({ id }) => phaseOf(id) === 'contract' && !applied.has(id))
}

/**
 * First missing change that would break running servers of an earlier build. Without `finish`, ignores changes after the first
 * contraction.
 */
export async function breakingChange(db: Db, ids: readonly string[], finish: boolean): Promise<string | undefined> {
  const applied = await appliedBefore(db)
  if (applied.size === 0) return undefined
  const first = ids.find((id) => phaseOf(id) === 'whole' && !applied.has(id))
  const waits = ids.find((id) => phaseOf(id) === 'contract' && !applied.has(id))
  return !finish && first !== undefined && waits !== undefined && first > waits ? undefined : first
}

type Parts = SplitChange & { id: string; checksum: string }

/**
 * Splits a change into the statements of its transaction, and the indexes that are built afterwards if other servers are running.
 */
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
    const ids = all.map(({ id }) => id)
    checkKnown(ids, applied)
    const done: string[] = []
    for (const { id, now, later, checksum } of some) {
      const noted = applied.get(id)
      if (noted !== undefined) {
        if (![checksum, begunOf(checksum)].includes(noted))
          throw new Error(`migration ${id} was changed after it was applied`)
        continue
      }
      // If the database was empty, no server can be using it, so the change breaks none.
      if (applied.size > 0 && ['whole', 'contract'].includes(phaseOf(id))) await mayBreak?.(tx, id)
      progress?.(id, 0)
      for (const statement of now) await apply(tx, id, statement)
      await note(tx, id, later.length > 0 ? begunOf(checksum) : checksum)
      done.push(id)
    }
    return done
  }, ofAnySize)
}

/**
 * Runs a backfill in batches, so that other processes wait for one batch at most. An interrupted backfill continues where it
 * stopped.
 */
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
  // The first missing contraction, and all migrations after it, do not count. They wait until the operator confirms that no
  // earlier build will run again.
  const first = ids.findIndex((id) => phaseOf(id) === 'contract' && !applied.has(id))
  const wanted = first < 0 ? ids : ids.slice(0, first)
  return wanted.every((id) => !isBegun(applied.get(id) ?? begunOf(''))) ? 'current' : 'old'
}

/** Throws if a newer build has made a change that breaks this build. */
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

/** Prepares the migrating transaction, so that only one node applies changes. */
const prepare: Record<Db['engine'], (tx: Tx) => Promise<void>> = {
  // SQLite has one write transaction at a time, so it needs no other lock.
  async sqlite() {},

  async postgres(tx) {
    // A serializable snapshot is older than the lock. It would not show migrations that another node has just applied.
    await tx.run(sql`SET TRANSACTION ISOLATION LEVEL READ COMMITTED`)
    // Limits the wait for a table lock, since all later statements on the table wait behind it.
    await tx.run(sql`SET LOCAL lock_timeout = 2000`)
    await tx.all(sql`SELECT pg_advisory_xact_lock(7420001, hashtext(current_setting('search_path'))) IS NULL`)
    // Locks a table first. Otherwise a connection with an earlier snapshot would not see schemas that another process has just
    // created.
    const schema = await tx.get<{ current: string | null; wanted: string }>(
      sql`SELECT current_schema() AS current, current_setting('search_path') AS wanted FROM pg_namespace LIMIT 1`,
    )
    if (schema?.current === null) await tx.run(sql`CREATE SCHEMA ${ident(schema.wanted)}`)
  },
}
