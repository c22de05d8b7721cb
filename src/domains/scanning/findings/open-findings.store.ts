// Number of open findings in packages and lists, and changes that are not yet added to the counts of all lists. Findings from
// organizations' own advisories are not counted.

import { insertsOf } from '#db/bulk.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Step } from '#lib/lists/paging.ts'
import { listStates } from '../lists/lists.model.ts'
import type { Payer } from '../lists/lists.store.ts'
import { bytesOfFinding } from './findings.model.ts'

const found = sql`(SELECT count(*) FROM findings f
     WHERE f.component_id = components.id AND f.place = '' AND f.gone_time = '')`

export type OpenOf = { componentNo: number; open: number }

/** Packages among the given ones that are part of a counted list. Each has its stored count. */
export async function countedOf(tx: Tx, components: readonly number[]): Promise<OpenOf[]> {
  return tx.all<OpenOf>(sql`
    SELECT id AS "componentNo", open_findings AS open FROM components
     WHERE id IN (${list(components)}) AND open_findings >= 0 ORDER BY components.id`)
}

/** Counts the open findings of packages and stores the counts. */
export async function countComponents(tx: Tx, components: readonly number[]): Promise<OpenOf[]> {
  return tx.all<OpenOf>(sql`
    UPDATE components SET open_findings = ${found} WHERE id IN (${list(components)})
    RETURNING id AS "componentNo", open_findings AS open`)
}

/** Packages of a list after `after` whose findings were never counted, in order. */
export async function uncountedOf(reader: Reader, listNo: number, { after, most }: Step): Promise<number[]> {
  const rows = await reader.all<{ componentNo: number }>(sql`
    SELECT l.component_id AS "componentNo" FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND l.component_id > ${after} AND c.open_findings < 0
     ORDER BY l.component_id LIMIT ${most}`)
  return rows.map(({ componentNo }) => componentNo)
}

export type Delta = { componentNo: number; delta: number }

/** Adds changes of packages. If a recorded change was not added to any list's count yet, merges it with the new change. */
export async function addChanges(tx: Tx, changes: readonly Delta[]): Promise<void> {
  const rows = changes.map(({ componentNo, delta }) => sql`(${componentNo}, ${delta})`)
  const together = sql`
    ON CONFLICT (component_id) WHERE last_list = 0 DO UPDATE SET delta = open_changes.delta + excluded.delta`
  for (const insert of insertsOf(sql`INSERT INTO open_changes (component_id, delta)`, rows, together)) {
    await tx.run(insert)
  }
}

/** A change that is already in the counts of lists up to `lastList`. */
export type OpenChange = { changeNo: number; delta: number; lastList: number }

/** The oldest recorded change of a package. */
export async function nextChange(tx: Tx, componentNo: number): Promise<OpenChange | undefined> {
  return tx.get<OpenChange>(sql`
    SELECT id AS "changeNo", delta, last_list AS "lastList" FROM open_changes
     WHERE component_id = ${componentNo} ORDER BY component_id, id LIMIT 1`)
}

export async function advanceChange(tx: Tx, changeNo: number, lastList: number): Promise<void> {
  await tx.run(sql`UPDATE open_changes SET last_list = ${lastList} WHERE id = ${changeNo}`)
}

export async function endChange(tx: Tx, changeNo: number): Promise<void> {
  await tx.run(sql`DELETE FROM open_changes WHERE id = ${changeNo}`)
}

/** Lists after `after` that contain a package, in order. */
export async function listsWith(reader: Reader, componentNo: number, { after, most }: Step): Promise<number[]> {
  // Each value of `held` is one range of the index. One query for both values would sort all rows for each page.
  const page = (held: number): Sql => sql`
    SELECT * FROM (SELECT list_id AS "listNo" FROM list_components
                    WHERE component_id = ${componentNo} AND held = ${held} AND list_id > ${after}
                    ORDER BY component_id, held, list_id LIMIT ${most}) AS matches`
  const rows = await reader.all<{ listNo: number }>(sql`${page(0)} UNION ALL ${page(1)}`)
  return rows
    .map(({ listNo }) => listNo)
    .sort((one, other) => one - other)
    .slice(0, most)
}

/** Changes the counts of lists. Skips lists that were not counted yet, because their first count will include the change. */
export async function changeLists(tx: Tx, lists: readonly number[], delta: number): Promise<void> {
  await tx.run(sql`
    UPDATE component_lists SET open_findings = open_findings + ${delta}
     WHERE id IN (${list(lists)}) AND open_findings >= 0`)
}

/**
 * Number of open findings of at most `most` packages of a list after `after`. Excludes changes that are not yet in the count of
 * the list. `last` is the last of these packages. `isCounted` is true if all of them were counted.
 */
export async function openOfPage(
  tx: Tx,
  listNo: number,
  { after, most }: Step,
): Promise<{ open: number; isCounted: boolean; isLast: boolean; last: number }> {
  type Row = { total: number; last: number | null; least: number | null; open: number }
  const row = (await tx.get<Row>(sql`
    SELECT count(*) AS total, max(p.component_id) AS last, min(c.open_findings) AS least,
           coalesce(sum(c.open_findings - coalesce((
             SELECT sum(d.delta) FROM open_changes d WHERE d.component_id = c.id AND d.last_list < ${listNo}), 0)), 0) AS open
      FROM (SELECT component_id FROM list_components
             WHERE list_id = ${listNo} AND component_id > ${after} ORDER BY component_id LIMIT ${most}) p
      JOIN components c ON c.id = p.component_id`))!
  return {
    open: row.open,
    isCounted: (row.least ?? 0) >= 0,
    isLast: row.total < most,
    last: row.last ?? 0,
  }
}

export async function setOpen(tx: Tx, listNo: number, open: number): Promise<void> {
  await tx.run(sql`UPDATE component_lists SET open_findings = ${open} WHERE id = ${listNo}`)
}

/** A list whose limit or charge must be updated. `added` is the number of bytes to charge, negative for a reduction. */
export type ListToFollow = Payer & { listNo: number; open: number; added: number }

/**
 * Lists that have exceeded the limit `most`, or fallen below half of it, or whose charge differs by at least `leastCharged`
 * bytes.
 */
export async function listsToFollow(
  tx: Tx,
  lists: readonly number[],
  { most, leastCharged }: { most: number; leastCharged: number },
): Promise<ListToFollow[]> {
  // A list over the limit is charged for as many findings as the limit.
  const kept = sql`CASE WHEN open_findings > ${most} THEN ${most} ELSE open_findings END`
  const added = sql`bytes + (${kept}) * ${bytesOfFinding} - charged`
  return tx.all<ListToFollow>(sql`
    SELECT id AS "listNo", open_findings AS open, payer, bytes, charged, ${added} AS added
      FROM component_lists
     WHERE id IN (${list(lists)}) AND state = ${listStates.complete} AND open_findings >= 0
       AND ((over_limit = 0 AND open_findings > ${most}) OR (over_limit = 1 AND open_findings * 2 < ${most})
            OR (payer <> '' AND abs(${added}) >= ${leastCharged}))
     ORDER BY component_lists.id`)
}

/** Deletes the counts of a package that no list contains. */
export async function forgetOpen(tx: Tx, componentNo: number): Promise<void> {
  await tx.run(sql`DELETE FROM open_changes WHERE component_id = ${componentNo}`)
  await tx.run(sql`UPDATE components SET open_findings = -1 WHERE id = ${componentNo} AND open_findings >= 0`)
}

/** Stored and actual count of a counted package. Returns undefined if it was not counted. */
export async function openOfComponent(
  reader: Reader,
  componentNo: number,
): Promise<{ stored: number; wanted: number } | undefined> {
  return reader.get<{ stored: number; wanted: number }>(sql`
    SELECT open_findings AS stored, ${found} AS wanted FROM components
     WHERE id = ${componentNo} AND open_findings >= 0`)
}

/**
 * Stored count of a list, and the sum of the counts of its packages. The stored count is -1 if the list was not counted. `wanted`
 * is undefined if a package was not counted.
 */
export async function openOfList(
  reader: Reader,
  listNo: number,
): Promise<{ stored: number; wanted: number | undefined }> {
  type Row = { stored: number; least: number | null; open: number | null; coming: number | null }
  const packages = sql`list_components p JOIN components c ON c.id = p.component_id WHERE p.list_id = l.id`
  const row = await reader.get<Row>(sql`
    SELECT l.open_findings AS stored,
           (SELECT min(c.open_findings) FROM ${packages}) AS least,
           (SELECT sum(c.open_findings) FROM ${packages}) AS open,
           (SELECT sum(d.delta) FROM list_components p JOIN open_changes d ON d.component_id = p.component_id
             WHERE p.list_id = l.id AND d.last_list < l.id) AS coming
      FROM component_lists l WHERE l.id = ${listNo}`)
  const isCounted = (row?.least ?? 0) >= 0
  return { stored: row?.stored ?? -1, wanted: isCounted ? (row?.open ?? 0) - (row?.coming ?? 0) : undefined }
}
