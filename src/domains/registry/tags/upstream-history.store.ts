// Tag history that upstream registries have served. This server has not observed it, so it is stored apart from the tag history.
// No decision depends on it.
import { countRows, insertsOf } from '#db/bulk.ts'
import { pageTail, pastCursor } from '#db/listing-beyond.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import type { ReportedMove } from '#lib/registries/registry-histories.ts'
import { eventNumbers, type TagEvent } from './tag-history.model.ts'
import { type Window, within } from './tag-history.store.ts'

/**
 * Source of an upstream history: a repository at the address that served the history. `path` includes the prefix of the upstream.
 */
export type HistorySource = { ledger: number; upstream: string; origin: string; path: string }
type SourceRow = { id: number; moves: number }

async function findSource(reader: Reader, { ledger, origin, path }: HistorySource): Promise<SourceRow | undefined> {
  return reader.get<SourceRow>(sql`
    SELECT id, moves FROM history_tellers WHERE ledger_id = ${ledger} AND origin = ${origin} AND path = ${path}`)
}

/** Number of upstream assignments that are stored for a repository, from all sources. */
export async function countReported(reader: Reader, ledger: number): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT CAST(coalesce(sum(moves), 0) AS BIGINT) AS total FROM history_tellers WHERE ledger_id = ${ledger}`)
  return row!.total
}

type Last = { time: string; event: number; digest: string }

/** Last stored assignment of a tag from this source. */
export async function findLastReported(reader: Reader, teller: HistorySource, tag: string): Promise<Last | undefined> {
  return reader.get<Last>(sql`
    SELECT m.time, m.event, m.digest FROM told_moves m
      JOIN history_tellers w ON w.id = m.teller_id AND w.origin = ${teller.origin} AND w.path = ${teller.path}
     WHERE m.ledger_id = ${teller.ledger} AND w.ledger_id = ${teller.ledger} AND m.tag = ${tag}
     ORDER BY m.time DESC LIMIT 1`)
}

/** Number of upstream assignments that are stored for one tag, from all sources. */
export async function countOfTag(reader: Reader, ledger: number, tag: string): Promise<number> {
  return countRows(reader, sql`FROM told_moves WHERE ledger_id = ${ledger} AND tag = ${tag}`)
}

const into = sql`
  INSERT INTO told_moves (ledger_id, tag, time, teller_id, event, digest, checked_before, told_time)`

/** Adds assignments of a tag that are later than all stored ones from this source. Returns the number of added assignments. */
export async function addReported(
  tx: Tx,
  teller: HistorySource,
  tag: string,
  moves: readonly ReportedMove[],
  now: string,
): Promise<number> {
  const { ledger, upstream, origin, path } = teller
  await tx.run(sql`
    INSERT INTO history_tellers (ledger_id, upstream_uid, origin, path, moves)
    VALUES (${ledger}, ${upstream}, ${origin}, ${path}, 0) ON CONFLICT (ledger_id, origin, path) DO NOTHING`)
  const { id } = (await findSource(tx, teller))!
  const last = await findLastReported(tx, teller, tag)
  let isThere = last !== undefined && last.event !== eventNumbers.deleted
  const fresh = moves.filter(({ time }) => time > (last?.time ?? ''))
  const rows = fresh.map(({ time, digest, isDeletion, checkedBefore }) => {
    const event = isDeletion ? eventNumbers.deleted : isThere ? eventNumbers.moved : eventNumbers.created
    isThere = !isDeletion
    return sql`(${ledger}, ${tag}, ${time}, ${id}, ${event}, ${digest}, ${checkedBefore}, ${now})`
  })
  for (const insert of insertsOf(into, rows)) await tx.run(insert)
  await tx.run(sql`UPDATE history_tellers SET moves = moves + ${rows.length} WHERE id = ${id}`)
  return rows.length
}

/**
 * Assignment that an upstream served. `endTime` is the time of the next assignment from the same source. `endTime` and
 * `checkedBefore` may be empty.
 */
export type ReportedRecord = {
  tag: string
  time: string
  event: TagEvent
  digest: string
  checkedBefore: string
  endTime: string
  toldTime: string
  upstream: string
  origin: string
  path: string
  teller: number
}
/** Position, order and size of a page. The uid of the cursor has the source, a space, and the second sort key: time or tag. */
export type ReportedPage = Pick<Page, 'order' | 'after' | 'size' | 'skip'>

/** A page of the upstream assignments of a tag, of a digest, or of all tags, ordered by `time` or by `tag`. */
export async function listReported(
  reader: Reader,
  ledger: number,
  tag: string | undefined,
  window: Window,
  page: ReportedPage,
): Promise<ReportedRecord[]> {
  const keys = keysOf(page, tag)
  const rows = await reader.all<Omit<ReportedRecord, 'event'> & { event: number }>(sql`
    SELECT m.tag, m.time, m.event, m.digest, m.checked_before AS "checkedBefore", m.told_time AS "toldTime",
           w.upstream_uid AS upstream, w.origin, w.path, w.id AS teller,
           coalesce((SELECT n.time FROM told_moves n
                      WHERE n.ledger_id = m.ledger_id AND n.tag = m.tag AND n.time > m.time AND n.teller_id = m.teller_id
                      ORDER BY n.time LIMIT 1), '') AS "endTime"
      FROM told_moves m JOIN history_tellers w ON w.id = m.teller_id
     WHERE ${matching(ledger, tag, window)} AND ${pastCursor(page, keys.columns, keys.values)}
     ${pageTail(page, keys.columns)}`)
  return rows.map((row) => ({ ...row, event: nameOf(eventNumbers, row.event) }))
}

/** Number of records. Returns undefined if there are more than `most`. */
export async function countMatching(
  reader: Reader,
  ledger: number,
  tag: string | undefined,
  window: Window,
  most: number,
): Promise<number | undefined> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total
      FROM (SELECT 1 AS one FROM told_moves m WHERE ${matching(ledger, tag, window)} LIMIT ${most + 1}) AS matches`)
  return (row?.total ?? 0) > most ? undefined : (row?.total ?? 0)
}

function matching(ledger: number, tag: string | undefined, window: Window): Sql {
  const ofTag = tag === undefined ? sql`` : sql`AND m.tag = ${tag}`
  return sql`m.ledger_id = ${ledger} ${ofTag} AND ${within(window)}`
}

type Keys = { columns: readonly Sql[]; values: readonly (string | number)[] }

/** Sort keys of a page, and their values at the cursor. */
function keysOf({ order, after }: ReportedPage, tag: string | undefined): Keys {
  const [teller = '', tie = ''] = after?.uid.split(' ') ?? []
  const [time, name] = order.field === 'time' ? [after?.value ?? '', tie] : [tie, after?.value ?? '']
  if (tag !== undefined) return { columns: [sql`m.time`, sql`m.teller_id`], values: [time, Number(teller)] }
  return order.field === 'time'
    ? { columns: [sql`m.time`, sql`m.tag`, sql`m.teller_id`], values: [time, name, Number(teller)] }
    : { columns: [sql`m.tag`, sql`m.time`, sql`m.teller_id`], values: [name, time, Number(teller)] }
}
