// Connection to an SQLite file: prepared statements, bound values and rows in the form that Pinfold uses.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { Newest } from '#lib/caches/newest.ts'
import { changesOf } from '../changes.ts'
import { type Change, compile, type Sql, type Value } from '../sql.ts'

/** `changes` collects the changes of the statement. */
export type Connection = {
  all<T>(query: Sql, changes?: Set<Change>): T[]
  run(query: Sql, changes?: Set<Change>): number
  /** Transaction control, without parameters or rows. */
  control(text: string): void
  /** Sets if later commits wait until they are on disk; at first they do. Not inside a transaction. */
  waitForDisk(wait: boolean): void
  /**
   * Location of temporary data: former versions of pages, and data that is sorted. On disk at first. Not inside a transaction.
   */
  setAside(where: 'disk' | 'memory'): void
  readonly inTransaction: boolean
  close(): void
}

type Prepared = { statement: StatementSync; columns: string[] | undefined; changes: readonly Change[] }

const maxPrepared = 500

export function connect(file: string, options: { readOnly: boolean; checkpoints?: boolean }): Connection {
  const db = new DatabaseSync(file, { timeout: 5000, readOnly: options.readOnly, enableForeignKeyConstraints: true })
  if (!options.readOnly) {
    db.exec('PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 33554432')
    // 64 MiB, in pages: a thread has done most of it long before (checkpoints.ts).
    db.exec(`PRAGMA wal_autocheckpoint = ${options.checkpoints === false ? 0 : 16384}`)
  }
  let waits: boolean | undefined
  const waitForDisk = (wait: boolean): void => {
    if (wait === waits) return
    // `FULL`, because an answered request must survive a power cut: `NORMAL` syncs only at checkpoints.
    db.exec(wait ? 'PRAGMA synchronous = FULL' : 'PRAGMA synchronous = NORMAL')
    waits = wait
  }
  waitForDisk(true)
  let aside: 'disk' | 'memory' = 'disk'
  const setAside = (where: 'disk' | 'memory'): void => {
    if (where === aside) return
    // Each page that a savepoint changes would be a write to a file, once it has changed more than fifteen of them.
    db.exec(where === 'memory' ? 'PRAGMA temp_store = MEMORY' : 'PRAGMA temp_store = FILE')
    aside = where
  }
  // Most pages are read where the system has them in memory, by the connection that reads: mapped by both they would count
  // twice. Each connection fills its own cache and never gives it back.
  db.exec(
    `PRAGMA cache_size = ${options.readOnly ? -2048 : -8192}; PRAGMA mmap_size = ${options.readOnly ? 268435456 : 0}`,
  )
  const kept = new Newest<string, Prepared>(maxPrepared)
  /** Texts of the program, each made once: a new one would have to be hashed to be found again. */
  const texts = new WeakMap<object, string>()

  function prepare(text: string): Prepared {
    let prepared = kept.get(text)
    if (!prepared) {
      const statement = db.prepare(text)
      // SQLite compiles the first statement and ignores all text behind it.
      if (text.slice(statement.sourceSQL.length).trim()) throw new Error('only one statement at a time')
      statement.setReturnArrays(true)
      prepared = { statement, columns: undefined, changes: changesOf(text) }
    }
    kept.set(text, prepared) // last in the map is the latest used
    return prepared
  }

  function textOf(query: Sql): string {
    const { template } = query
    if (!template) return compile(query, '?')
    const known = texts.get(template)
    if (known !== undefined) return known
    const text = compile(query, '?')
    texts.set(template, text)
    return text
  }

  function prepareFor(query: Sql, changes: Set<Change> | undefined): Prepared {
    const prepared = prepare(textOf(query))
    if (changes) for (const change of prepared.changes) changes.add(change)
    return prepared
  }

  return {
    all<T>(query: Sql, changes?: Set<Change>): T[] {
      const prepared = prepareFor(query, changes)
      const rows = prepared.statement.all(...query.values.map(toBindable)) as unknown as unknown[][]
      if (rows.length === 0) return []
      // `SELECT *` gets wider when a migration adds a column, and SQLite compiles it again on its own.
      if (prepared.columns?.length !== rows[0]!.length) {
        prepared.columns = prepared.statement.columns().map((column) => column.name)
      }
      return rows.map((values) => toObject(prepared.columns!, values) as T)
    },
    run: (query, changes) => Number(prepareFor(query, changes).statement.run(...query.values.map(toBindable)).changes),
    control: (text) => void prepare(text).statement.run(),
    waitForDisk,
    setAside,
    get inTransaction() {
      return db.isTransaction
    },
    close: () => db.close(),
  }
}

// node:sqlite binds every number as `REAL`, which shows as 5.0 in text and JSON; a bigint is bound as INTEGER.
function toBindable(value: Value): SQLInputValue {
  return Number.isSafeInteger(value) ? BigInt(value as number) : value
}

// node:sqlite's own row objects have no prototype; built from arrays they cost no more.
function toObject(columns: string[], values: unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let i = 0; i < columns.length; i++) row[columns[i]!] = values[i]
  return row
}
