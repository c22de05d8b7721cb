// Connection to an SQLite file: prepared statements, bound values and rows in the form that Pinfold uses.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { Newest } from '#lib/caches/newest.ts'
import { changesOf } from '../changes.ts'
import { type Change, compile, type Sql, type Value } from '../sql.ts'

/** Runs a statement and returns its rows. Adds the changes that it makes to `changes`. */
export type Connection = {
  all<T>(query: Sql, changes?: Set<Change>): T[]
  run(query: Sql, changes?: Set<Change>): number
  /** Runs a transaction command, such as `BEGIN`, which has no parameters and returns no rows. */
  control(text: string): void
  /**
   * Sets whether later commits wait until their data is on disk. The default is true. Must not be called inside a transaction.
   */
  waitForDisk(wait: boolean): void
  /**
   * Sets where SQLite keeps temporary data: former versions of pages, and rows that are being sorted. The default is `disk`. Must
   * not be called inside a transaction.
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
    // A commit runs a checkpoint itself when the log has 64 MiB (in pages). The thread in checkpoints.ts usually runs one long
    // before.
    db.exec(`PRAGMA wal_autocheckpoint = ${options.checkpoints === false ? 0 : 16384}`)
  }
  let waits: boolean | undefined
  const waitForDisk = (wait: boolean): void => {
    if (wait === waits) return
    // `FULL`, because an acknowledged request must survive a power cut. `NORMAL` syncs only at checkpoints.
    db.exec(wait ? 'PRAGMA synchronous = FULL' : 'PRAGMA synchronous = NORMAL')
    waits = wait
  }
  waitForDisk(true)
  let aside: 'disk' | 'memory' = 'disk'
  const setAside = (where: 'disk' | 'memory'): void => {
    if (where === aside) return
    // In memory, since SQLite would otherwise write a file once a savepoint has changed more than fifteen pages.
    db.exec(where === 'memory' ? 'PRAGMA temp_store = MEMORY' : 'PRAGMA temp_store = FILE')
    aside = where
  }
  // The reading connection maps the file, so it reads pages from the memory of the operating system. The writing connection does
  // not: pages mapped by both would count twice. Each connection also has a cache of its own, which it never shrinks.
  db.exec(
    `PRAGMA cache_size = ${options.readOnly ? -2048 : -8192}; PRAGMA mmap_size = ${options.readOnly ? 268435456 : 0}`,
  )
  const kept = new Newest<string, Prepared>(maxPrepared)
  /**
   * SQL texts by template. The same string object is used each time, since V8 would have to hash a new string for each look-up.
   */
  const texts = new WeakMap<object, string>()

  function prepare(text: string): Prepared {
    let prepared = kept.get(text)
    if (!prepared) {
      const statement = db.prepare(text)
      // SQLite compiles only the first statement of a text, and ignores the others.
      if (text.slice(statement.sourceSQL.length).trim()) throw new Error('only one statement at a time')
      statement.setReturnArrays(true)
      prepared = { statement, columns: undefined, changes: changesOf(text) }
    }
    kept.set(text, prepared) // The last entry of the map is the most recently used one.
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
      // A migration may add columns to `SELECT *`. SQLite then compiles the statement again, so the column names are read again
      // too.
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

// node:sqlite binds a number as `REAL`, so 5 would become 5.0 in text and JSON. It binds a bigint as INTEGER.
function toBindable(value: Value): SQLInputValue {
  return Number.isSafeInteger(value) ? BigInt(value as number) : value
}

// Builds row objects from arrays. The row objects of node:sqlite have no prototype, and are not faster.
function toObject(columns: string[], values: unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let i = 0; i < columns.length; i++) row[columns[i]!] = values[i]
  return row
}
