// How much is found now in packages and in lists of them, and the changes of it that not all lists have yet. What organisations
// find by their own advisories is in neither.

import { insertsOf } from '#db/bulk.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Step } from '#lib/lists/paging.ts'
import { listStates } from '../lists/lists.model.ts'
import type { Payer } from '../lists/lists.store.ts'
import { bytesOfFinding } from './findings.model.ts'

const found = sql`(SELECT count(*) FROM findings f
     WHERE f.component_id = components.id AND f.place = '' AND f.gone_time = '')`

export type OpenOf = { componentNo: number; open: number }

/** Of some packages those that a counted list has, as they were counted. */
export async function countedOf(tx: Tx, components: readonly number[]): Promise<OpenOf[]> {
  return tx.all<OpenOf>(sql`
    SELECT id AS "componentNo", open_findings AS open FROM components
     WHERE id IN (${list(components)}) AND open_findings >= 0 ORDER BY components.id`)
}

/** Counts what is found in packages now. */
export async function countComponents(tx: Tx, components: readonly number[]): Promise<OpenOf[]> {
  return tx.all<OpenOf>(sql`
    UPDATE components SET open_findings = ${found} WHERE id IN (${list(components)})
    RETURNING id AS "componentNo", open_findings AS open`)
}

/** Packages of a list behind `after` that were never counted, in order. */
export async function uncountedOf(reader: Reader, listNo: number, { after, most }: Step): Promise<number[]> {
  const rows = await reader.all<{ componentNo: number }>(sql`
    SELECT l.component_id AS "componentNo" FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND l.component_id > ${after} AND c.open_findings < 0
     ORDER BY l.component_id LIMIT ${most}`)
  return rows.map(({ componentNo }) => componentNo)
}

export type Delta = { componentNo: number; delta: number }

/** One of a package that no list has yet takes up the next. */
export async function addChanges(tx: Tx, changes: readonly Delta[]): Promise<void> {
  const rows = changes.map(({ componentNo, delta }) => sql`(${componentNo}, ${delta})`)
  const together = sql`
    ON CONFLICT (component_id) WHERE last_list = 0 DO UPDATE SET delta = open_changes.delta + excluded.delta`
  for (const insert of insertsOf(sql`INSERT INTO open_changes (component_id, delta)`, rows, together)) {
    await tx.run(insert)
  }
}

/** A change that the lists up to `lastList` have. */
export type OpenChange = { changeNo: number; delta: number; lastList: number }

/** The oldest of a package. */
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

/** The lists behind `after` that have a package, in order. */
export async function listsWith(reader: Reader, componentNo: number, { after, most }: Step): Promise<number[]> {
  // Each half is a piece of the index in its order; both at once would be sorted for each page.
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

/** Lists that are not counted yet take no part: they will be with all that is found by then. */
export async function changeLists(tx: Tx, lists: readonly number[], delta: number): Promise<void> {
  await tx.run(sql`
    UPDATE component_lists SET open_findings = open_findings + ${delta}
     WHERE id IN (${list(lists)}) AND open_findings >= 0`)
}

/**
 * How much is found in so many packages of a list behind `after`, without what is on its way to it. `last` is the last of them;
 * `isCounted`: all of them were.
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

/** A list from whose number something follows. `added`: how many bytes more should be charged for it; fewer below zero. */
export type ListToFollow = Payer & { listNo: number; open: number; added: number }

/**
 * Those of some lists in which more is found than `most` and was not, or was and has fallen below half of it, or for which
 * somebody should be charged otherwise by as much as is worth it.
 */
export async function listsToFollow(
  tx: Tx,
  lists: readonly number[],
  { most, leastCharged }: { most: number; leastCharged: number },
): Promise<ListToFollow[]> {
  // Of a list over the limit so much is charged as is kept of one.
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

/** Of a package that no list has. */
export async function forgetOpen(tx: Tx, componentNo: number): Promise<void> {
  await tx.run(sql`DELETE FROM open_changes WHERE component_id = ${componentNo}`)
  await tx.run(sql`UPDATE components SET open_findings = -1 WHERE id = ${componentNo} AND open_findings >= 0`)
}

/** What a counted package has, and what it should. */
export async function openOfComponent(
  reader: Reader,
  componentNo: number,
): Promise<{ stored: number; wanted: number } | undefined> {
  return reader.get<{ stored: number; wanted: number }>(sql`
    SELECT open_findings AS stored, ${found} AS wanted FROM components
     WHERE id = ${componentNo} AND open_findings >= 0`)
}

/** What a list has, -1 if it is not counted, and what it should by what its packages have; undefined: one of them is not counted. */
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
