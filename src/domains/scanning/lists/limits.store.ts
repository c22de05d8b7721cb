// Lists in whose packages more is found than is kept of one list, and the packages that only such lists have.
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { OverLimit } from './lists.model.ts'

/** True when it was not so before. */
export async function setOver(tx: Tx, listNo: number, now: string): Promise<boolean> {
  const changed = await tx.run(sql`UPDATE component_lists SET over_limit = 1 WHERE id = ${listNo} AND over_limit = 0`)
  if (changed === 0) return false
  await tx.run(sql`
    INSERT INTO list_limits (list_id, from_time) VALUES (${listNo}, ${now})
        ON CONFLICT (list_id, from_time) DO UPDATE SET until_time = ''`)
  return true
}

/** How many packages a list has. */
export async function countEntries(reader: Reader, listNo: number): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM list_components WHERE list_id = ${listNo}`)
  return row?.total ?? 0
}

/** True when it was over before. */
export async function setWithin(tx: Tx, listNo: number, now: string): Promise<boolean> {
  const changed = await tx.run(sql`UPDATE component_lists SET over_limit = 0 WHERE id = ${listNo} AND over_limit = 1`)
  if (changed === 0) return false
  await tx.run(sql`UPDATE list_limits SET until_time = ${now} WHERE list_id = ${listNo} AND until_time = ''`)
  return true
}

/** When some lists were over the limit, of each the oldest first. */
export async function limitsOf(reader: Reader, lists: readonly number[]): Promise<(OverLimit & { listNo: number })[]> {
  return reader.all<OverLimit & { listNo: number }>(sql`
    SELECT list_id AS "listNo", from_time AS "fromTime", until_time AS "untilTime" FROM list_limits
     WHERE list_id IN (${list(lists)}) ORDER BY list_id, from_time`)
}

/** Packages of a list, behind `after`, that do not follow whether the list is over; in order. */
export async function misheldOf(
  reader: Reader,
  listNo: number,
  isOver: boolean,
  { after, most }: { after: number; most: number },
): Promise<number[]> {
  const wrong = isOver ? sql`l.held = 0` : sql`(l.held = 1 OR c.held = 1)`
  const rows = await reader.all<{ componentNo: number }>(sql`
    SELECT l.component_id AS "componentNo" FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND l.component_id > ${after} AND ${wrong} ORDER BY l.component_id LIMIT ${most}`)
  return rows.map(({ componentNo }) => componentNo)
}

/** Of a list that is over: those which no other list has are held from now on. */
export async function hold(tx: Tx, listNo: number, components: readonly number[]): Promise<void> {
  await tx.run(sql`
    UPDATE list_components SET held = 1 WHERE list_id = ${listNo} AND component_id IN (${list(components)})`)
  await tx.run(sql`
    UPDATE components SET held = 1
     WHERE id IN (${list(components)})
       AND NOT EXISTS (SELECT 1 FROM list_components l WHERE l.component_id = components.id AND l.held = 0)`)
}

/** Of a list that is not: those that were held have to be compared, since they were not with all that is known. */
export async function release(tx: Tx, listNo: number, components: readonly number[]): Promise<void> {
  await tx.run(sql`
    UPDATE list_components SET held = 0 WHERE list_id = ${listNo} AND component_id IN (${list(components)})`)
  await tx.run(sql`
    UPDATE components SET held = 0, match_time = '' WHERE id IN (${list(components)}) AND held = 1`)
}

/**
 * How much holds, and counts for everybody, in some of the packages of a list behind `after`; `last` is the last of them,
 * undefined when there are no more.
 */
export async function countOpen(
  reader: Reader,
  listNo: number,
  { after, most }: { after: number; most: number },
): Promise<{ open: number; last: number | undefined }> {
  const row = await reader.get<{ open: number; last: number | null }>(sql`
    SELECT count(f.id) AS open, max(p.component_id) AS last
      FROM (SELECT l.component_id FROM list_components l
             WHERE l.list_id = ${listNo} AND l.component_id > ${after} ORDER BY l.component_id LIMIT ${most}) p
      LEFT JOIN findings f ON f.component_id = p.component_id AND f.gone_time = '' AND f.place = ''`)
  return { open: row?.open ?? 0, last: row?.last ?? undefined }
}
