import { insertsOf } from '#db/bulk.ts'
import { direction } from '#db/listing.ts'
import { pastCursor } from '#db/listing-beyond.ts'
import { ident, join, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { lineage, parentOf } from '#lib/uid.ts'
import { eventNumbers, type HistoryRecord, kindNumbers, sourceNumbers } from './tag-history.model.ts'
import type { Source, TagRepo } from './tags.model.ts'

// The column `repo_id` has the number of the tag history, which is the number of the first repository that wrote to it.
const into = sql`
  INSERT INTO tag_history (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)`

/**
 * Adds rows to the tag history, with type and size from the manifests if these are stored. Rows are never changed. Also queues an
 * entry in the transparency log for each row.
 */
export async function insertRecords(tx: Tx, repo: TagRepo, records: readonly HistoryRecord[]): Promise<void> {
  const rows = records.map((record) => {
    const { digest } = record
    const told = (column: Sql) => {
      return sql`(SELECT ${column} FROM manifests WHERE repo_id = ${repo.id} AND digest = ${digest})`
    }
    return sql`(${repo.ledger}, ${record.tag}, ${record.time}, ${eventNumbers[record.event]}, ${digest},
      ${record.previousDigest}, coalesce(${told(sql`media_type`)}, ''), coalesce(${told(sql`size`)}, 0),
      ${record.actor}, ${sourceNumbers[record.source]})`
  })
  for (const insert of insertsOf(into, rows)) await tx.run(insert)
  await notePending(tx, repo, records)
}

/**
 * Adds the deletion of every tag `t` that `where` selects. All deletions have the same time, which must be later than the last
 * row of each tag.
 */
export async function insertDeletions(
  tx: Tx,
  repo: TagRepo,
  where: Sql,
  { time, actor, source }: Pick<HistoryRecord, 'time' | 'actor' | 'source'>,
): Promise<void> {
  await tx.run(sql`
    ${into}
    SELECT h.repo_id, t.name, CAST(${time} AS TEXT), CAST(${eventNumbers.deleted} AS BIGINT), t.digest, t.digest,
           h.media_type, h.size, CAST(${actor} AS TEXT), CAST(${sourceNumbers[source]} AS BIGINT)
      FROM tags t
      JOIN tag_history h ON h.repo_id = ${repo.ledger} AND h.tag = t.name AND h.time = t.assign_time
     WHERE ${where}`)
  await notePendingDeletions(tx, repo, where, { time, source })
}

/** Time window. Both bounds are optional: `from` is inclusive, `after` and `before` are exclusive. */
export type Window = {
  from?: string | undefined
  after?: string | undefined
  before?: string | undefined
  digest?: string | undefined
}

export function within({ from, after, before, digest }: Window): Sql {
  const bounds = [
    ...(digest === undefined ? [] : [sql`digest = ${digest}`]),
    ...(from === undefined ? [] : [sql`time >= ${from}`]),
    ...(after === undefined ? [] : [sql`time > ${after}`]),
    ...(before === undefined ? [] : [sql`time < ${before}`]),
  ]
  return bounds.length === 0 ? sql`1 = 1` : join(bounds, ' AND ')
}

/**
 * Assignments in a time window as the members of a JSON list, oldest first. The database builds the text, since there may be a
 * thousand assignments.
 */
export async function historyText(reader: Reader, ledger: number, tag: string, window: Window, limit: number) {
  const row = await reader.get<{ text: string | null }>(sql`
    SELECT string_agg('{"updateTimestamp":"' || records.time || '","digest":"' || records.digest || '"' ||
                      coalesce(',"checkedBefore":"' || o.checked_before || '"', '') || '}', ',' ORDER BY records.time)
           AS text
      FROM (SELECT time, digest FROM tag_history
             WHERE repo_id = ${ledger} AND tag = ${tag} AND event <> ${eventNumbers.deleted} AND ${within(window)}
             ORDER BY time LIMIT ${limit}) AS records
      LEFT JOIN tag_observations o ON o.repo_id = ${ledger} AND o.tag = ${tag} AND o.time = records.time`)
  return row?.text ?? ''
}

type Row = Omit<HistoryRecord, 'event' | 'source'> & { event: number; source: number; mediaType: string; size: number }
export type DescribedRecord = HistoryRecord & { mediaType: string; size: number }

const columns = sql`
  h.tag, h.time, h.event, h.digest, h.previous_digest AS "previousDigest", h.media_type AS "mediaType", h.size, h.actor,
  h.source`

function fromRow(row: Row): DescribedRecord {
  return { ...row, event: nameOf(eventNumbers, row.event), source: nameOf(sourceNumbers, row.source) }
}

/**
 * Selects rows, ordered by tag and time. Rows of a digest are searched in the index of digests first. Otherwise SQLite would read
 * all rows of the tag.
 */
function selectRows(
  ledger: number,
  { of = sql`repo_id = ${ledger}`, where, order, limit, skip = 0, more = sql`` }: Selected,
): Sql {
  return sql`
    SELECT ${columns} ${more}
      FROM (SELECT tag, time FROM tag_history WHERE ${of} AND ${where}
             ORDER BY ${order(sql`tag_history`)} LIMIT ${limit} OFFSET ${skip}) AS found
      JOIN tag_history h ON h.repo_id = ${ledger} AND h.tag = found.tag AND h.time = found.time
     ORDER BY ${order(sql`found`)}`
}

type Order = (row: Sql) => Sql
type Selected = { of?: Sql; where: Sql; order: Order; limit: number; skip?: number; more?: Sql }

const newestFirst: Order = (row) => sql`${row}.time DESC`

/** Rows of a tag, newest first. */
export async function listHistory(reader: Reader, ledger: number, tag: string, window: Window, limit: number) {
  const where = sql`tag = ${tag} AND ${within(window)}`
  return (await reader.all<Row>(selectRows(ledger, { where, order: newestFirst, limit }))).map(fromRow)
}

/**
 * Record with the time of the next row of its tag. `checkedBefore` is empty unless the assignment was observed at an upstream
 * after an earlier check. `restoreReason` is empty unless the record is a restore.
 */
export type EndedRecord = HistoryRecord & { endTime: string; checkedBefore: string; restoreReason: string }

/**
 * Position, order and size of a page of records. Lists read one record more than the page has. The order is by `time` or by
 * `tag`.
 */
export type RecordPage = Pick<Page, 'order' | 'after' | 'size' | 'skip'>

/**
 * Rows of a tag, of a digest, or of all tags. `endTime` is the time of the next row of the same tag, and empty for the last row.
 */
export async function listRecords(
  reader: Reader,
  ledger: number,
  tag: string | undefined,
  window: Window,
  page: RecordPage,
): Promise<EndedRecord[]> {
  const next = sql`
    (SELECT n.time FROM tag_history n
      WHERE n.repo_id = h.repo_id AND n.tag = h.tag AND n.time > h.time ORDER BY n.time LIMIT 1)`
  const seen = sql`
    (SELECT o.checked_before FROM tag_observations o WHERE o.repo_id = h.repo_id AND o.tag = h.tag AND o.time = h.time)`
  const restored = sql`
    (SELECT r.reason FROM tag_restores r WHERE r.repo_id = h.repo_id AND r.tag = h.tag AND r.time = h.time)`
  const more = sql`
    , coalesce(${next}, '') AS "endTime", coalesce(${seen}, '') AS "checkedBefore",
    coalesce(${restored}, '') AS "restoreReason"`
  const { names, past } = keysOf(page, tag)
  const dir = direction(page)
  const order: Order = (row) =>
    join(
      names.map((name) => sql`${row}.${name} ${dir}`),
      ', ',
    )
  const of = rowsOf(ledger, tag === undefined && window.digest === undefined && page.order.field === 'time')
  const where = sql`${matching(tag, window)} AND ${past}`
  const asked = { of, where, order, limit: page.size + 1, skip: page.skip, more }
  const rows = await reader.all<Row & Pick<EndedRecord, 'endTime' | 'checkedBefore' | 'restoreReason'>>(
    selectRows(ledger, asked),
  )
  return rows.map((row) => {
    const { endTime, checkedBefore, restoreReason } = row
    return { ...fromRow(row), endTime, checkedBefore, restoreReason }
  })
}

const matching = (tag: string | undefined, window: Window): Sql => {
  return tag === undefined ? within(window) : sql`tag = ${tag} AND ${within(window)}`
}

/** True if the tag has had the digest. */
export async function hadDigest(reader: Reader, ledger: number, tag: string, digest: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS one FROM tag_history WHERE repo_id = ${ledger} AND digest = ${digest} AND tag = ${tag} AND time > ${beganAfter(ledger)} LIMIT 1`)
  return row !== undefined
}

/** Stores the reason of a restore, whose row in the tag history has the same time. */
export async function insertRestore(
  tx: Tx,
  ledger: number,
  { tag, time, reason }: { tag: string; time: string; reason: string },
): Promise<void> {
  await tx.run(
    sql`INSERT INTO tag_restores (repo_id, tag, time, reason) VALUES (${ledger}, ${tag}, ${time}, ${reason})`,
  )
}

/** Number of records. Returns undefined if there are more than `most`. */
export async function countRecords(
  reader: Reader,
  ledger: number,
  tag: string | undefined,
  window: Window,
  most: number,
): Promise<number | undefined> {
  const of = rowsOf(ledger, tag === undefined && window.digest === undefined)
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total
      FROM (SELECT 1 AS one FROM tag_history WHERE ${of} AND ${matching(tag, window)} LIMIT ${most + 1}) AS matches`)
  return (row?.total ?? 0) > most ? undefined : (row?.total ?? 0)
}

/** Condition for the rows of a tag history. A negative number selects the index for lists of the whole history by time. */
function rowsOf(ledger: number, isWhole: boolean): Sql {
  return isWhole ? sql`-repo_id = ${-ledger}` : sql`repo_id = ${ledger}`
}

/** Sort keys of a page. One sort key is the value of the cursor, and the other one is its uid. */
function keysOf({ order, after }: RecordPage, tag: string | undefined): { names: Sql[]; past: Sql } {
  const keys = tag !== undefined ? ['time'] : order.field === 'tag' ? ['tag', 'time'] : ['time', 'tag']
  const values = keys.map((key) => (key === order.field ? after?.value : after?.uid) ?? '')
  const names = keys.map(ident)
  return { names, past: pastCursor({ order, after }, names, values) }
}

/** Digest of the tag at a time. Empty if the tag did not exist then. */
export async function digestAt(reader: Reader, ledger: number, tag: string, time: string): Promise<string> {
  const row = await reader.get<{ event: number; digest: string }>(sql`
    SELECT event, digest FROM tag_history
     WHERE repo_id = ${ledger} AND tag = ${tag} AND time <= ${time} ORDER BY time DESC LIMIT 1`)
  return row === undefined || row.event === eventNumbers.deleted ? '' : row.digest
}

/** Time of the last row of a tag. Empty if the tag has no rows. */
export async function lastTime(reader: Reader, ledger: number, tag: string): Promise<string> {
  const row = await reader.get<{ time: string }>(sql`
    SELECT time FROM tag_history WHERE repo_id = ${ledger} AND tag = ${tag} ORDER BY time DESC LIMIT 1`)
  return row?.time ?? ''
}

/** Source of the last row of a tag. Returns undefined if the tag has no rows. */
export async function lastSource(reader: Reader, ledger: number, tag: string): Promise<Source | undefined> {
  const row = await reader.get<{ source: number }>(sql`
    SELECT source FROM tag_history WHERE repo_id = ${ledger} AND tag = ${tag} ORDER BY time DESC LIMIT 1`)
  return row && nameOf(sourceNumbers, row.source)
}

/**
 * Deletion time of a repository that wrote to this history and is still being removed. The last rows of its tags may be missing.
 * Empty if there is no such repository.
 */
export async function removalTime(reader: Reader, ledger: number): Promise<string> {
  const row = await reader.get<{ time: string | null }>(sql`
    SELECT max(delete_time) AS time FROM repo_removals WHERE ledger_id = ${ledger}`)
  return row?.time ?? ''
}

export type TagMove = { time: string; digest: string }

export function movesIn(reader: Reader, ledger: number, tag: string, window: Window, most: number): Promise<TagMove[]> {
  return reader.all(sql`
    SELECT time, digest FROM tag_history
     WHERE repo_id = ${ledger} AND tag = ${tag} AND event <> ${eventNumbers.deleted} AND ${within(window)}
     ORDER BY time LIMIT ${most}`)
}

export function movesBetween(
  reader: Reader,
  ledger: number,
  tag: string,
  { from, to, most }: { from: string; to: string; most: number },
): Promise<TagMove[]> {
  return reader.all(sql`
    SELECT time, digest FROM tag_history
     WHERE repo_id = ${ledger} AND tag = ${tag} AND time >= ${from} AND time <= ${to} AND event <> ${eventNumbers.deleted}
     ORDER BY time LIMIT ${most}`)
}

export function movesBefore(
  reader: Reader,
  ledger: number,
  tag: string,
  { before, most }: { before: string; most: number },
): Promise<TagMove[]> {
  return reader.all(sql`
    SELECT time, digest FROM tag_history
     WHERE repo_id = ${ledger} AND tag = ${tag} AND time < ${before} AND event <> ${eventNumbers.deleted}
     ORDER BY time DESC LIMIT ${most}`)
}

/** Deletion time of the last repository of this history. Rows up to it belong to an earlier repository of the same name. */
function beganAfter(ledger: number): Sql {
  return sql`(SELECT coalesce(max(d.delete_time), '') FROM deleted_repos d WHERE d.ledger_id = ${ledger})`
}

export async function wasEverTagged(reader: Reader, ledger: number, digest: string, tags: readonly string[]) {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM tag_history
     WHERE repo_id = ${ledger} AND digest = ${digest} AND tag IN (${list(tags)}) AND time > ${beganAfter(ledger)} LIMIT 1`)
  return row !== undefined
}

/** True if a tag of this repository ever pointed to an image or an index that needs the digest, at any depth. */
export async function wasNeeded(
  reader: Reader,
  { id, ledger }: Pick<TagRepo, 'id' | 'ledger'>,
  digest: string,
  tags: readonly string[],
): Promise<boolean> {
  const row = await reader.get(sql`
    WITH RECURSIVE up (digest) AS (
      SELECT manifest FROM manifest_links WHERE repo_id = ${id} AND digest = ${digest}
       UNION
      SELECT l.manifest FROM up JOIN manifest_links l ON l.repo_id = ${id} AND l.digest = up.digest
    )
    SELECT 1 AS found FROM up JOIN tag_history h ON h.repo_id = ${ledger} AND h.digest = up.digest
     WHERE h.tag IN (${list(tags)}) AND h.time > ${beganAfter(ledger)} LIMIT 1`)
  return row !== undefined
}

/** Erases the history permanently and returns the number of its rows. Only an explicit command may call this. */
export async function deleteHistory(tx: Tx, ledger: number): Promise<number> {
  return tx.run(sql`DELETE FROM tag_history WHERE repo_id = ${ledger}`)
}

// Queue of rows that need an entry in the transparency log. Each new row of the tag history is queued.
const intoPending = sql`INSERT INTO ledger_pending (ledger_id, tag, time, path, kind)`

function kindOf(source: Source): number {
  return source === 'import' ? kindNumbers.import : kindNumbers.live
}

/** Current path of the repository, made of names. */
function pathNow({ id, uid }: Pick<TagRepo, 'id' | 'uid'>): Sql {
  const groups = lineage(parentOf(uid)).reverse()
  const names = groups.map((group) => sql`(SELECT name FROM groups WHERE uid = ${group})`)
  return sql`coalesce(${join([...names, sql`(SELECT name FROM repos WHERE id = ${id})`], ` || '/' || `)}, '')`
}

/** Path of a repository that is being removed, as it was at the deletion. */
function lastPath(repo: Pick<TagRepo, 'id' | 'uid'>): Sql {
  return sql`coalesce((SELECT path FROM deleted_repos WHERE id = ${repo.id}), ${pathNow(repo)})`
}

/** Queues an entry in the transparency log for each record that the transaction has just added. */
async function notePending(tx: Tx, repo: TagRepo, records: readonly HistoryRecord[]): Promise<void> {
  const path = records.length === 1 ? pathNow(repo) : sql`${await readPath(tx, repo)}`
  const rows = records.map(
    ({ tag, time, source }) => sql`(${repo.ledger}, ${tag}, ${time}, ${path}, ${kindOf(source)})`,
  )
  for (const insert of insertsOf(intoPending, rows)) await tx.run(insert)
}

async function readPath(reader: Reader, repo: TagRepo): Promise<string> {
  const row = await reader.get<{ path: string }>(sql`SELECT ${pathNow(repo)} AS path`)
  return row!.path
}

/**
 * Queues an entry in the transparency log for the deletion of each tag `t` that `where` selects. All deletions have the same
 * time.
 */
async function notePendingDeletions(
  tx: Tx,
  repo: TagRepo,
  where: Sql,
  { time, source }: Pick<HistoryRecord, 'time' | 'source'>,
): Promise<void> {
  await tx.run(sql`
    ${intoPending}
    SELECT h.repo_id, h.tag, h.time, ${lastPath(repo)}, CAST(${kindOf(source)} AS BIGINT)
      FROM tags t
      JOIN tag_history h ON h.repo_id = ${repo.ledger} AND h.tag = t.name AND h.time = ${time}
     WHERE h.event = ${eventNumbers.deleted} AND ${where}`)
}
