import { countRows, insertsOf } from '#db/bulk.ts'
import { join, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import { rootOf } from '#lib/uid.ts'
import { maxKept, type Refusal } from './refusals.model.ts'

/** Adds refusals to the rows of the same hour. Each row must occur at most once. */
export async function addRefusals(tx: Tx, refusals: readonly Refusal[]): Promise<void> {
  const rows = refusals.map((one) => {
    return sql`(${one.organization}, ${one.group}, ${Number(one.outsider)}, ${one.repository}, ${one.caller}, ${one.action},
                ${one.code}, ${one.lastTime.slice(0, 13)}, ${one.reference}, ${one.reason}, ${one.remoteAddress},
                ${one.count}, ${one.lastTime})`
  })
  const into = sql`
    INSERT INTO refusals (organisation, place, outsider, repository, caller, action, code, hour, reference, reason,
                          remote_address, count, last_time)`
  const after = sql`
    ON CONFLICT (organisation, place, repository, caller, action, code, hour) DO UPDATE
       SET count = refusals.count + excluded.count, outsider = excluded.outsider, reference = excluded.reference, reason = excluded.reason,
           remote_address = excluded.remote_address, last_time = excluded.last_time`
  for (const statement of insertsOf(into, rows, after)) await tx.run(statement)
}

/** Deletes the rows of outsiders or of all other callers in an organization, except the latest `most`. */
export async function keepLatest(tx: Tx, organization: string, outsider: boolean, most = maxKept): Promise<number> {
  return tx.run(sql`
    DELETE FROM refusals WHERE id IN (
      SELECT id FROM refusals WHERE organisation = ${organization} AND outsider = ${Number(outsider)}
       ORDER BY last_time DESC, id DESC LIMIT 100000 OFFSET ${most})`)
}

export async function countAll(reader: Reader): Promise<number> {
  return countRows(reader, sql`FROM refusals`)
}

/** Organization with the most rows. */
export async function largest(reader: Reader): Promise<{ organization: string; total: number } | undefined> {
  return reader.get(sql`
    SELECT organisation AS organization, count(*) AS total FROM refusals
     GROUP BY organisation ORDER BY total DESC, organisation LIMIT 1`)
}

export async function deleteBefore(tx: Tx, time: string, limit: number): Promise<number> {
  return tx.run(sql`
    DELETE FROM refusals WHERE id IN (
      SELECT id FROM refusals WHERE last_time < ${time} ORDER BY last_time, id LIMIT ${limit})`)
}

type Row = Omit<Refusal, 'uid' | 'outsider'> & { id: number; outsider: number }

/** One page of refusals, and one more row. An organization has a limited number of rows. */
export async function listRefusals(reader: Reader, group: string, page: Page): Promise<Refusal[]> {
  const { order, after, skip, size } = page
  const dir = order.desc ? sql`DESC` : sql`ASC`
  const past = order.desc ? sql`<` : sql`>`
  const from = after ? [sql`(last_time, id) ${past} (${after.value}, ${Number(after.uid)})`] : []
  const rows = await reader.all<Row>(sql`
    SELECT id, organisation AS organization, place AS "group", outsider, repository, caller, action, code, reference, reason,
           remote_address AS "remoteAddress", count, last_time AS "lastTime"
      FROM refusals WHERE ${join([...within(group), ...from], ' AND ')}
     ORDER BY last_time ${dir}, id ${dir} LIMIT ${size + 1} OFFSET ${skip}`)
  return rows.map(({ id, outsider, ...row }) => ({ ...row, uid: String(id), outsider: outsider === 1 }))
}

export async function countRefusals(reader: Reader, group: string): Promise<number> {
  return countRows(reader, sql`FROM refusals WHERE ${join(within(group), ' AND ')}`)
}

function within(group: string): Sql[] {
  const [from, to] = [`${group}/`, `${group}0`]
  return [sql`organisation = ${rootOf(group)}`, sql`(place = ${group} OR (place > ${from} AND place < ${to}))`]
}
