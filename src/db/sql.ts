// SQL as values: text and parameters stay separate until the engine binds them. One text serves both engines.

import { invalid } from '#lib/errors.ts'
import type { Verb } from '#lib/resource.ts'

export type Value = string | number | null | Uint8Array

/**
 * Piece of SQL with its parameters. There is one more part of text than there are values. `template` identifies the place in the
 * source code, where the text is always the same.
 */
export type Sql = {
  readonly parts: readonly string[]
  readonly values: readonly Value[]
  readonly template?: TemplateStringsArray | undefined
}

/** Change that a statement makes to a table. An INSERT that may update an existing row is both an insert and an update. */
export type Change = `${Verb} ${string}`

/** Reads from the database. A Db reads committed data. A Tx also reads its own writes. */
export type Reader = {
  all<T>(query: Sql): Promise<T[]>
  get<T>(query: Sql): Promise<T | undefined>
}

/**
 * One transaction. On both engines, the first failed statement ends it. So conflicts are handled with `ON CONFLICT`, not with
 * catch.
 */
export type Tx = Reader & {
  readonly engine: 'sqlite' | 'postgres'
  /** Runs a statement. Resolves to the number of changed rows. */
  run(query: Sql): Promise<number>
  /**
   * Counter shard of this connection, 0 to 255. Each connection adds to a row of its own, so concurrent writers do not conflict.
   */
  readonly shard: number
  /**
   * Enters a lock of this process, before the transaction locks rows that other transactions of this process lock too. At most
   * `most` of them run at once. The others release their connection, and run again when it is their turn. Rejects with
   * UNAVAILABLE if too many wait. Does nothing on SQLite, which has one writer at a time.
   */
  meet(meeting: ProcessLock): Promise<void>
  /**
   * Calls `callback` if this transaction succeeds. On PostgreSQL, that is after the commit. On SQLite, it is before the commit,
   * so a transaction that the callback starts shares the commit. The callback must not throw.
   */
  after(callback: () => void): void
}

export type TxOptions = {
  /** `rowLocks` is not serializable. It is for transactions that share only rows that they lock, so they hardly ever conflict. */
  isolation?: 'rowLocks'
  /**
   * With `later`, the commit does not wait for the disk, for data without a guarantee. A power cut may undo the latest such
   * transactions, but always whole ones and the latest first. The end of the process undoes nothing. The next transaction that
   * waits for the disk also stores the earlier ones.
   */
  durability?: 'later'
  /**
   * `disk` is for transactions that sort or rewrite an unlimited number of rows. SQLite then keeps its temporary data in files
   * instead of memory. It is also for transactions with very many statements that change very many pages. In memory, SQLite would
   * search all temporary data after each statement.
   */
  aside?: 'disk'
  /** With `none`, statements have no time limit, for migrations and for reading whole tables. */
  timeLimit?: 'none'
  /** Lock of this process, as for `Tx.meet`. The transaction enters it before it begins. */
  meets?: ProcessLock
}

/** Lock of this process: its name, and the maximum number of transactions that may have it at once. */
export type ProcessLock = { name: string; most: number }

export type Db = Reader & {
  readonly engine: 'sqlite' | 'postgres'
  /** True if several processes can use the database at the same time. */
  readonly shared: boolean
  /**
   * Runs a transaction. Resolves once it is on disk, unless `durability` has another value. The work may be retried, so it must
   * have no effects outside of its `tx`.
   */
  tx<T>(work: (tx: Tx) => Promise<T>, options?: TxOptions): Promise<T>
  /**
   * Like `get` and `tx`, for heartbeats: a statement without a response fails within seconds. Undefined for SQLite, which uses no
   * network.
   */
  quick?: Pick<Db, 'get' | 'tx'>
  /**
   * Runs work on one connection, outside of any transaction and without time limits. Building an index while others write needs
   * this. Undefined for SQLite, which only one process uses.
   */
  alone?<T>(work: (one: Reader) => Promise<T>): Promise<T>
  /**
   * Calls `listener` after each commit of this process with changes, before the callers of its transactions continue. The
   * listener gets the changes of all transactions in the commit, and must not throw.
   */
  onCommit(listener: (changes: ReadonlySet<Change>) => void): void
  /** Query plan as text, one line for each operation. Tests use it to check that an index is used. */
  plan(query: Sql): Promise<string>
  /** Rejects if the database does not respond, or refuses writes. */
  ping(): Promise<void>
  /**
   * `refused` counts transactions that got no connection, or that could not wait for a lock. `again` counts retries by command
   * and reason, with a space between the two.
   */
  stats(): DbCounts
  close(): Promise<void>
}

export type DbCounts = {
  transactions: number
  commits: number
  retries: number
  refused: number
  again: ReadonlyMap<string, number>
}
/** Commands and reasons by which retries of transactions are counted. */
export const retriedCommands = ['select', 'insert', 'update', 'delete', 'commit', 'other'] as const
export const retryReasons = ['conflict', 'constraint'] as const

// A class, so that an object from the JSON of a request can never be used as SQL.
class Fragment implements Sql {
  readonly parts: readonly string[]
  readonly values: readonly Value[]
  readonly template: TemplateStringsArray | undefined
  constructor(parts: readonly string[], values: readonly Value[], template?: TemplateStringsArray) {
    this.parts = parts
    this.values = values
    this.template = template
  }
}

/** Creates a query. Every `${}` becomes a parameter, except SQL fragments, which become part of the text. */
export function sql(strings: TemplateStringsArray, ...values: (Value | Sql)[]): Sql {
  if (!values.some((value) => value instanceof Fragment)) return new Fragment(strings, values.map(checked), strings)
  const parts = [strings[0]!]
  const flat: Value[] = []
  for (const [i, value] of values.entries()) {
    if (value instanceof Fragment) append(parts, flat, value)
    else {
      flat.push(checked(value))
      parts.push('')
    }
    parts[parts.length - 1] += strings[i + 1]!
  }
  return new Fragment(parts, flat)
}

/** SQL from a text of our own code, such as a migration. Never call it with data from outside. */
export function raw(text: string): Sql {
  return new Fragment([text], [])
}

/** Name of a column or table, or of a column as `table.column`. */
export function ident(name: string): Sql {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(name)) throw new TypeError(`not an SQL name: ${name}`)
  return raw(name)
}

/** Quoted name of a result column, which keeps its camel case. */
export function quoted(name: string): Sql {
  if (!/^[a-zA-Z][a-zA-Z0-9]*$/.test(name)) throw new TypeError(`not a column name: ${name}`)
  return raw(`"${name}"`)
}

/** Joins fragments. `separator` is a text of our own code, such as `' AND '`. */
export function join(fragments: readonly Sql[], separator: string): Sql {
  const parts = ['']
  const values: Value[] = []
  for (const [i, fragment] of fragments.entries()) {
    if (!(fragment instanceof Fragment)) throw new TypeError('join takes fragments made with sql')
    if (i > 0) parts[parts.length - 1] += separator
    append(parts, values, fragment)
  }
  return new Fragment(parts, values)
}

/** Values of an `IN (...)`. An empty list becomes NULL, so `IN` matches nothing. */
export function list(values: readonly Value[]): Sql {
  if (values.length === 0) return raw('NULL')
  const parts = ['', ...Array<string>(values.length - 1).fill(', '), '']
  return new Fragment(parts, values.map(checked))
}

/** SQL text with numbered parameters: `?1` for SQLite, `$1` for PostgreSQL. */
export function compile(query: Sql, mark: '?' | '$'): string {
  let text = query.parts[0]!
  for (let i = 1; i < query.parts.length; i++) text += mark + i + query.parts[i]!
  return text
}

function append(parts: string[], values: Value[], fragment: Fragment): void {
  parts[parts.length - 1] += fragment.parts[0]!
  for (let i = 1; i < fragment.parts.length; i++) parts.push(fragment.parts[i]!)
  for (const value of fragment.values) values.push(value)
}

// Throws for any other type. node:sqlite would treat an object as named parameters and store NULL.
function checked(value: unknown): Value {
  // PostgreSQL refuses text with zero bytes. REST refuses it earlier and names the field, so this is for text from gRPC.
  if (typeof value === 'string' && value.includes('\0')) {
    throw invalid({ field: 'request', description: 'a text must not contain a NUL character' })
  }
  if (typeof value === 'string' || value === null || value instanceof Uint8Array) return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  const what = typeof value === 'object' ? value?.constructor?.name : typeof value === 'number' ? value : typeof value
  throw new TypeError(`not an SQL value: ${what}`)
}

/** Reads rows without a time limit, for queries that read whole tables. Does not block other work. */
export function allAtLeisure<T>(db: Db, query: Sql): Promise<T[]> {
  if (db.engine === 'sqlite') return db.all(query)
  return db.tx((tx) => tx.all(query), { isolation: 'rowLocks', timeLimit: 'none' })
}
