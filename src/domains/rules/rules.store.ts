// SQL for the tables of rules, and for the tables of records that end.
import { holding, isInScope, type ScopeList, scopeList, type Where } from '#db/scope-lists.ts'
import { ident, join, quoted, type Reader, type Sql, sql, type Tx, type Value } from '#db/sql.ts'
import { snakeCase } from '#lib/fields.ts'
import type { DigestException, Ending, Holding, Rule, Scoped } from './rules.model.ts'

/** Description of the table of one kind. The columns are the members in snake case. */
type Shape<T> = {
  table: string
  /** Members of this kind, in addition to the members that all kinds have. */
  members: readonly string[]
  /** Members that are stored as JSON. */
  json?: readonly string[]
  /** Conversions for a kind whose members differ from its columns. */
  toRow?(one: T): object
  fromRow?(row: never): T
}

type ScopedTable<T, F> = {
  /** Columns that a SELECT from the table `t` reads for `fromRow`. */
  columns: Sql
  fromRow(row: object): T
  insert(tx: Tx, group: string, one: T): Promise<void>
  find(reader: Reader, uid: string): Promise<T | undefined>
  list: ScopeList<T, F>
}

export type RuleTable<T> = ScopedTable<T, unknown> & {
  patch(tx: Tx, rule: T): Promise<void>
  delete(tx: Tx, uid: string): Promise<void>
  /** True if the server has any rule of this kind. */
  any(reader: Reader): Promise<boolean>
}

export type EndingTable<T> = ScopedTable<T, Holding> & {
  /** Ends a record. The record must not have ended before. */
  end(tx: Tx, one: T): Promise<void>
  /** Records after their expiry that are not marked as ended, the earliest first. */
  due(reader: Reader, now: string, most: number): Promise<T[]>
}

export function ruleTable<T extends Rule>(shape: Shape<T>): RuleTable<T> {
  const { members, table } = shape
  const { rowOf, ...scoped } = scopedTable(shape, [...members, 'createTime', 'updateTime'], {}, () => [])
  return {
    ...scoped,
    async patch(tx, rule) {
      await tx.run(update(table, rowOf(rule), [...members, 'updateTime'], sql`uid = ${rule.uid}`))
    },
    async delete(tx, uid) {
      await tx.run(sql`DELETE FROM ${ident(table)} WHERE uid = ${uid}`)
    },
    any: async (reader) => (await reader.get(sql`SELECT 1 AS found FROM ${ident(table)} LIMIT 1`)) !== undefined,
  }
}

/** Names of the columns for the end of a record, if they differ from the members in snake case. */
type EndColumns = { endTime: string; endActor: string; endReason?: string }
const endColumns = { endTime: 'end_time', endActor: 'end_actor', endReason: 'end_reason' }

/** Creates the table of a kind of records. `members` include `expireTime` if the records expire. */
export function endingTable<T extends Ending>(shape: Shape<T>, ends: EndColumns = endColumns): EndingTable<T> {
  const { members, table } = shape
  const endTime = ident(`t.${ends.endTime}`)
  const where = members.includes('expireTime')
    ? holding(ends.endTime)
    : ({ now }: Holding) => (now === undefined ? [] : [sql`${endTime} = ''`])
  const { rowOf, ...scoped } = scopedTable(shape, [...members, 'reason', 'actor', 'createTime'], ends, where)
  return {
    ...scoped,
    async end(tx, one) {
      const isOpen = sql`uid = ${one.uid} AND ${ident(ends.endTime)} = ''`
      await tx.run(update(table, rowOf(one), Object.keys(ends), isOpen, ends))
    },
    async due(reader, now, most) {
      const rows = await reader.all<object>(sql`
        SELECT ${scoped.columns} FROM ${ident(table)} t WHERE ${endTime} = '' AND t.expire_time <= ${now}
         ORDER BY t.expire_time, t.id LIMIT ${most}`)
      return rows.map(scoped.fromRow)
    },
  }
}

type Named = Readonly<Record<string, string>>
type Row = Record<string, Value>
const columnOf = (member: string, named: Named): string => named[member] ?? snakeCase(member)

/**
 * Common parts of all tables. `written` are the members that an INSERT sets. `named` are the columns of members that are only
 * read and changed.
 */
function scopedTable<T extends Scoped, F>(
  { table, json = [], toRow, fromRow: read }: Shape<T>,
  written: readonly string[],
  named: Named,
  where: Where<F>,
): ScopedTable<T, F> & { rowOf(one: T): Row } {
  const members = ['uid', 'scopeUid', ...written]
  const columns = join(
    [...members, ...Object.keys(named)].map((one) => sql`${ident(`t.${columnOf(one, named)}`)} AS ${quoted(one)}`),
    ', ',
  )
  const inserted = join(['group_uid', ...members.map((one) => columnOf(one, {}))].map(ident), ', ')
  const fromRow = (row: object): T => {
    const parsed = json.map((member) => [member, JSON.parse((row as Record<string, string>)[member]!)])
    const one = { ...row, ...Object.fromEntries(parsed) }
    return read ? read(one as never) : (one as T)
  }
  const rowOf = (one: T): Row => {
    const row = (toRow?.(one) ?? one) as Row
    return { ...row, ...Object.fromEntries(json.map((member) => [member, JSON.stringify(row[member])])) }
  }
  return {
    ...{ columns, fromRow, rowOf },
    async insert(tx, group, one) {
      const row = rowOf(one)
      const values = [group, ...members.map((member) => row[member]!)]
      await tx.run(sql`INSERT INTO ${ident(table)} (${inserted}) VALUES (${join(values.map(value), ', ')})`)
    },
    async find(reader, uid) {
      const row = await reader.get<object>(sql`SELECT ${columns} FROM ${ident(table)} t WHERE t.uid = ${uid}`)
      return row && fromRow(row)
    },
    list: scopeList({ table, columns }, fromRow, where),
  }
}

function update(table: string, row: Row, members: readonly string[], where: Sql, named: Named = {}): Sql {
  const set = members.map((one) => sql`${ident(columnOf(one, named))} = ${row[one]!}`)
  return sql`UPDATE ${ident(table)} SET ${join(set, ', ')} WHERE ${where}`
}

const value = (one: Value): Sql => sql`${one}`

/** Deletes the rules in a scope. Returns their number. */
export async function deleteRulesAt(
  tx: Tx,
  table: 'pull_rules' | 'gates' | 'retention_rules' | 'tag_rules',
  scope: string,
): Promise<number> {
  return tx.run(sql`DELETE FROM ${ident(table)} AS t WHERE ${isInScope(scope)}`)
}

/** Ends all exemptions in a scope that have not ended. */
export async function endExceptionsAt(
  tx: Tx,
  table: 'pull_rule_exceptions' | 'gate_exceptions',
  scope: string,
  by: { time: string; actor: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE ${ident(table)} AS t SET revoke_time = ${by.time}, revoked_by = ${by.actor}
     WHERE ${isInScope(scope)} AND t.revoke_time = ''`)
}

/** The table of the exemptions from one kind of rules. */
export const exceptionTable = (table: string): EndingTable<DigestException> =>
  endingTable({ table, members: ['digest', 'expireTime'] }, { endTime: 'revoke_time', endActor: 'revoked_by' })
