import { insertsOf } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { type DueMatch, type MatchItem, type MatchKind, matchKinds } from './queue.model.ts'

/** Adds items to the queue. An item that is queued already starts again, and a server that works on the item loses its claim. */
export async function queueMatches(tx: Tx, items: readonly MatchItem[], now: string): Promise<void> {
  const rows = items.map(({ kind, organization, item }) => sql`(${matchKinds[kind]}, ${organization}, ${item}, ${now})`)
  const again = sql`
    ON CONFLICT (kind, place, item) DO UPDATE SET due_time = excluded.due_time, attempts = 0, owner = '',
       progress = '', fence = match_queue.fence + 1`
  for (const insert of insertsOf(sql`INSERT INTO match_queue (kind, place, item, due_time)`, rows, again)) {
    await tx.run(insert)
  }
}

type Row = Omit<DueMatch, 'kind'> & { kind: number }

const columns = sql`kind, place AS organization, item, due_time AS "dueTime", attempts, owner, fence, progress`

const fromRow = (row: Row): DueMatch => ({ ...row, kind: nameOf<MatchKind>(matchKinds, row.kind) })

/** The first unclaimed item of the next scope after `after`. Its due time can be in the future. */
export async function nextMatch(reader: Reader, after: string | undefined): Promise<DueMatch | undefined> {
  const behind = after === undefined ? sql`` : sql`AND place > ${after}`
  const row = await reader.get<Row>(sql`
    SELECT ${columns} FROM match_queue WHERE owner = '' ${behind}
     ORDER BY owner, place, due_time, kind, item LIMIT 1`)
  return row && fromRow(row)
}

/** Items that a server has claimed. */
export async function ownedMatches(reader: Reader): Promise<DueMatch[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM match_queue WHERE owner > '' ORDER BY owner, place, due_time LIMIT 1000`)
  return rows.map(fromRow)
}

/** Claims an item. Returns undefined if the item has changed since it was read. */
export async function claimMatch(tx: Tx, seen: DueMatch, node: string): Promise<DueMatch | undefined> {
  const row = await tx.get<Row>(sql`
    UPDATE match_queue SET owner = ${node}, fence = fence + 1, attempts = attempts + 1
     WHERE kind = ${matchKinds[seen.kind]} AND place = ${seen.organization} AND item = ${seen.item} AND fence = ${seen.fence}
    RETURNING ${columns}`)
  return row && fromRow(row)
}

/** Removes a finished item. Returns false if another server has claimed the item, or if the item was queued again. */
export async function endMatch(tx: Tx, { kind, organization, item, fence }: DueMatch): Promise<boolean> {
  const ended = await tx.run(sql`
    DELETE FROM match_queue
     WHERE kind = ${matchKinds[kind]} AND place = ${organization} AND item = ${item} AND fence = ${fence}`)
  return ended === 1
}

/** Releases an item until `dueTime`. Does nothing if another server has claimed the item, or if the item was queued again. */
export async function requeueMatch(
  tx: Tx,
  { kind, organization, item, fence }: DueMatch,
  dueTime: string,
): Promise<void> {
  await tx.run(sql`
    UPDATE match_queue SET owner = '', fence = fence + 1, due_time = ${dueTime}
     WHERE kind = ${matchKinds[kind]} AND place = ${organization} AND item = ${item} AND fence = ${fence}`)
}

/**
 * Puts an unfinished item back into the queue, behind items that have waited longer. The next turn continues from its progress.
 */
export async function pauseMatch(
  tx: Tx,
  { kind, organization, item, fence, progress }: DueMatch,
  dueTime: string,
): Promise<void> {
  await tx.run(sql`
    UPDATE match_queue SET owner = '', fence = fence + 1, due_time = ${dueTime}, attempts = 0, progress = ${progress}
     WHERE kind = ${matchKinds[kind]} AND place = ${organization} AND item = ${item} AND fence = ${fence}`)
}

export async function countMatches(reader: Reader): Promise<number> {
  return (await reader.get<{ total: number }>(sql`SELECT count(*) AS total FROM match_queue`))!.total
}
