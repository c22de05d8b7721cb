// SQL as values: text and parameters stay separate until the engine binds them. One text serves both engines.

import { invalid } from '#lib/errors.ts'
import type { Verb } from '#lib/resource.ts'

export type Value = string | number | null | Uint8Array

/**
 * Piece of SQL with its parameters; there is always one more part than there are values. `template` identifies its position in
 * the program, where the whole text is the same each time.
 */
export type Sql = {
  readonly parts: readonly string[]
  readonly values: readonly Value[]
  readonly template?: TemplateStringsArray | undefined
}

/** Change of a table by a statement. An INSERT that may update an existing row counts as both. */
export type Change = `${Verb} ${string}`

/** Reads from the database. Db reads committed data, a Tx also its own writes. */
export type Reader = {
  all<T>(query: Sql): Promise<T[]>
  get<T>(query: Sql): Promise<T | undefined>
}

/** One transaction. Its first failed statement ends it on both engines, so conflicts are handled with `ON CONFLICT`, not catch. */
export type Tx = Reader & {
  readonly engine: 'sqlite' | 'postgres'
  /** Resolves to the number of rows changed. */
  run(query: Sql): Promise<number>
  /** Counter shard that this connection writes, 0 to 255, so that concurrent writers do not meet in one row. */
  readonly shard: number
  /**
   * Announces that this transaction is about to lock rows that others of this process lock too. As many run at once as the
   * meeting allows. The others run again when it is their turn, without a connection until then. Rejects with UNAVAILABLE if too
   * many wait. Has no effect on an embedded database, which has one writer at a time.
   */
  meet(meeting: Meeting): Promise<void>
  /**
   * Calls back after this transaction succeeded: on SQLite before its commit, so that a transaction started now shares it, on
   * PostgreSQL after. The callback must not throw.
   */
  after(callback: () => void): void
}

export type TxOptions = {
  /** `rowLocks` is without serializability, for transactions that only share rows that they lock, and so hardly ever conflict. */
  isolation?: 'rowLocks'
  /**
   * `later` does not wait for the disk, for data without a guarantee. A power cut may undo the last of such transactions, though
   * none in part and none out of order; the end of the process undoes nothing. A later transaction that waits for the disk also
   * stores them.
   */
  durability?: 'later'
  /**
   * For a transaction that sorts or rewrites an unbounded number of rows: SQLite keeps its temporary data in files, not in
   * memory. Also for one with very many statements that change very many pages. In memory, SQLite would search all temporary data
   * at the end of each statement.
   */
  aside?: 'disk'
  /** `none` lets each statement take as long as it does, for migrations and for reading whole tables. */
  timeLimit?: 'none'
  /** Meeting of this transaction, as for `Tx.meet`; the transaction waits for its turn before it begins, and not inside. */
  meets?: Meeting
}

/** Name of a lock that several transactions of this process need, and the most that may run at once. */
export type Meeting = { place: string; most: number }

export type Db = Reader & {
  readonly engine: 'sqlite' | 'postgres'
  /** True if other processes may serve from the same database. */
  readonly shared: boolean
  /**
   * Resolves once the transaction is on disk, unless `durability` has another value. The work may run more than once, so it must
   * only use its `tx`.
   */
  tx<T>(work: (tx: Tx) => Promise<T>, options?: TxOptions): Promise<T>
  /**
   * The same for signs of life: a statement fails that is not answered within seconds. Absent where no network is in between.
   */
  quick?: Pick<Db, 'get' | 'tx'>
  /**
   * One connection outside of any transaction and without time limits, for operations that do not run in a transaction, such as
   * building an index beside writers. Absent for a database with one process.
   */
  alone?<T>(work: (one: Reader) => Promise<T>): Promise<T>
  /**
   * Calls back after each commit of this process that changed something, before the callers of its transactions continue. Gets
   * the changes of all transactions in the commit. The listener must not throw.
   */
  onCommit(listener: (changes: ReadonlySet<Change>) => void): void
  /** The engine's plan as text, one step a line, for tests that insist on an index. */
  plan(query: Sql): Promise<string>
  /** Rejects unless the engine answers, and takes writes. */
  ping(): Promise<void>
  /**
   * `refused` counts transactions that got no connection, or could not wait with others. `again` counts retries by cause: the
   * command and the reason, with a space between them.
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
/** Commands at which a transaction may have to be retried, and the reasons. */
export const retriedCommands = ['select', 'insert', 'update', 'delete', 'commit', 'other'] as const
export const retryReasons = ['conflict', 'constraint'] as const

// A class, so that no object made from a request's JSON can pass for a fragment.
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

/** Writes a query; every `${}` is a parameter, except fragments, which become part of the text. */
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

/** Text that this repository wrote, such as a migration. Nothing from outside may ever come near it. */
export function raw(text: string): Sql {
  return new Fragment([text], [])
}

/** The name of a column or table, alone or as `table.column`. */
export function ident(name: string): Sql {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(name)) throw new TypeError(`not an SQL name: ${name}`)
  return raw(name)
}

/** The name of a result column that is written in camel case. */
export function quoted(name: string): Sql {
  if (!/^[a-zA-Z][a-zA-Z0-9]*$/.test(name)) throw new TypeError(`not a column name: ${name}`)
  return raw(`"${name}"`)
}

/** Puts fragments behind one another; `separator` is text of the program, such as `' AND '`. */
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

/** The inside of `IN (...)`. An empty list is NULL, which no value is in. */
export function list(values: readonly Value[]): Sql {
  if (values.length === 0) return raw('NULL')
  const parts = ['', ...Array<string>(values.length - 1).fill(', '), '']
  return new Fragment(parts, values.map(checked))
}

/** The text with numbered parameters: `?1` for SQLite, `$1` for PostgreSQL. */
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

// node:sqlite takes an object for a bag of named parameters and then stores NULL, so nothing unknown may get there.
function checked(value: unknown): Value {
  // REST names the field earlier; this is for text that came over gRPC. PostgreSQL would fail on it.
  if (typeof value === 'string' && value.includes('\0')) {
    throw invalid({ field: 'request', description: 'a text must not contain a NUL character' })
  }
  if (typeof value === 'string' || value === null || value instanceof Uint8Array) return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  const what = typeof value === 'object' ? value?.constructor?.name : typeof value === 'number' ? value : typeof value
  throw new TypeError(`not an SQL value: ${what}`)
}

/** Rows of a query without a limit of time, for queries that read whole tables. It blocks no other work. */
export function allAtLeisure<T>(db: Db, query: Sql): Promise<T[]> {
  if (db.engine === 'sqlite') return db.all(query)
  return db.tx((tx) => tx.all(query), { isolation: 'rowLocks', timeLimit: 'none' })
}
