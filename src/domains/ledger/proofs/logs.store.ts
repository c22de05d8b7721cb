import { insertsOf } from '#db/bulk.ts'
import { readFact } from '#db/facts.ts'
import { join, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { eventNumbers, kindNumbers, sourceNumbers } from '#domains/registry/tags/tag-history.model.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { type TileAt, type Tiles, tileKey } from '#lib/tlog/tiles.ts'
import type { EntryRow, LedgerLog, OpeningRow, PendingRow, WaitingLedger } from './logs.model.ts'
import { stateNumbers } from './logs.model.ts'

export const logColumns: Sql = sql`
  id, org_uid AS organization, generation, origin, secret, state, size, checkpoint,
  checkpoint_size AS "checkpointSize", checkpoint_time AS "checkpointTime", stored_size AS "storedSize"`

/** Newest log of the organization. Its row is locked until the transaction ends, so that no other server adds entries. */
export function lockLog(tx: Tx, organization: string): Promise<LedgerLog | undefined> {
  return tx.get(sql`
    UPDATE ledger_logs SET size = size
     WHERE id = (SELECT id FROM ledger_logs WHERE org_uid = ${organization} ORDER BY generation DESC LIMIT 1)
    RETURNING ${logColumns}`)
}

/** Logs of the organization, newest first. There are few, since a log is only replaced after a restore. */
export async function listLogs(reader: Reader, organization: string): Promise<LedgerLog[]> {
  return reader.all(sql`SELECT ${logColumns} FROM ledger_logs WHERE org_uid = ${organization} ORDER BY generation DESC`)
}

/**
 * Logs with entries after the last checkpoint, ordered by number. Leaves out logs whose witnesses have not reported their sizes
 * to the process `answeredTo`.
 */
export function unsignedLogs(
  reader: Reader,
  { after, most, answeredTo }: { after: number; most: number; answeredTo?: string | undefined },
): Promise<LedgerLog[]> {
  const isSure = answeredTo
    ? sql`(checkpoint_size = 0 OR EXISTS (
            SELECT 1 FROM ledger_cosigned c WHERE c.log_id = ledger_logs.id AND c.answered_to = ${answeredTo}))`
    : sql`1 = 1`
  return reader.all(sql`
    SELECT ${logColumns} FROM ledger_logs
     WHERE checkpoint_size < size AND id > ${after} AND state = ${stateNumbers.written} AND ${isSure}
     ORDER BY id LIMIT ${most}`)
}

export async function insertLog(
  tx: Tx,
  log: Pick<LedgerLog, 'organization' | 'generation' | 'origin' | 'secret'>,
): Promise<LedgerLog> {
  const row = await tx.get<LedgerLog>(sql`
    INSERT INTO ledger_logs
           (org_uid, generation, origin, secret, state, size, checkpoint, checkpoint_size, checkpoint_time)
    VALUES (${log.organization}, ${log.generation}, ${log.origin}, ${log.secret}, ${stateNumbers.written}, 0, '', 0, '')
    RETURNING ${logColumns}`)
  return row!
}

/**
 * Ends every log, or only suspended logs, because the database may not know everything that was signed. Contradicting checkpoints
 * could never be revoked. The tag history is then logged in new logs.
 */
export async function endLogs(tx: Tx, which: 'every' | 'suspended'): Promise<number> {
  const of = which === 'every' ? sql`state <> ${stateNumbers.ended}` : sql`state = ${stateNumbers.suspended}`
  await tx.run(sql`
    INSERT INTO ledger_backfills (ledger_id, after_tag, after_time)
    SELECT id, '', '' FROM ledgers WHERE substr(group_uid, 1, 40) IN (SELECT org_uid FROM ledger_logs WHERE ${of})
        ON CONFLICT (ledger_id) DO UPDATE SET after_tag = '', after_time = ''`)
  return tx.run(sql`UPDATE ledger_logs SET state = ${stateNumbers.ended} WHERE ${of}`)
}

/** Organizations with suspended logs, and the number of these logs. */
export async function suspendedOrganizations(reader: Reader): Promise<{ organization: string; logs: number }[]> {
  return reader.all(sql`
    SELECT org_uid AS organization, count(*) AS logs FROM ledger_logs WHERE state = ${stateNumbers.suspended}
     GROUP BY org_uid ORDER BY org_uid`)
}

export async function resizeLog(tx: Tx, log: number, size: number): Promise<void> {
  await tx.run(sql`UPDATE ledger_logs SET size = ${size} WHERE id = ${log}`)
}

/**
 * Stores a signed checkpoint. Returns false if the log is suspended or ended, if it is smaller than the checkpoint, or if it has
 * a checkpoint of at least this size.
 */
export async function signLog(
  tx: Tx,
  log: number,
  { checkpoint, size, time }: { checkpoint: string; size: number; time: string },
): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE ledger_logs SET checkpoint = ${checkpoint}, checkpoint_size = ${size}, checkpoint_time = ${time}
     WHERE id = ${log} AND state = ${stateNumbers.written} AND checkpoint_size < ${size} AND size >= ${size}`)
  return changed > 0
}

/** Number of entries that are about the log itself, and not about tags. */
export async function countOwnEntries(reader: Reader, log: number): Promise<number> {
  const row = await reader.get<{ seq: number }>(sql`
    SELECT seq FROM ledger_entries WHERE log_id = ${log} AND chain = 'log' ORDER BY seq DESC LIMIT 1`)
  return row ? row.seq + 1 : 0
}

export type LogKey = { vkey: string; log: number; privateKey: Uint8Array; createTime: string }

/** Keys of these logs, oldest first. Private keys are encrypted. */
export function logKeys(reader: Reader, logs: readonly number[]): Promise<LogKey[]> {
  return reader.all(sql`
    SELECT vkey, log_id AS log, private_key AS "privateKey", create_time AS "createTime" FROM ledger_log_keys
     WHERE log_id IN (${list(logs)}) ORDER BY create_time, vkey`)
}

export async function insertLogKey(tx: Tx, { vkey, log, privateKey, createTime }: LogKey): Promise<void> {
  await tx.run(sql`
    INSERT INTO ledger_log_keys (vkey, log_id, private_key, create_time)
    VALUES (${vkey}, ${log}, ${privateKey}, ${createTime})`)
}

/**
 * Tag histories with queued rows, at most `most` after `after`, ordered by number. Rows of a tag cannot be logged before the
 * older rows of the tag are queued. If a repository is being removed, its rows wait for its deletions, which have an earlier
 * time. If the log of an organization is suspended, its rows wait too. The queued rows themselves are not read.
 */
export async function waitingLedgers(reader: Reader, after: number, most: number): Promise<WaitingLedger[]> {
  const next = (former: Sql) => sql`(SELECT min(p.ledger_id) FROM ledger_pending p WHERE p.ledger_id > ${former})`
  const rows = await reader.all<Omit<WaitingLedger, 'isReady'> & { ready: number }>(sql`
    WITH RECURSIVE matches (ledger_id, n) AS (
      SELECT ${next(sql`CAST(${after} AS BIGINT)`)}, 1
       UNION ALL
      SELECT ${next(sql`matches.ledger_id`)}, n + 1 FROM matches WHERE matches.ledger_id IS NOT NULL AND n < ${most})
    SELECT found.*,
           CASE WHEN EXISTS (SELECT 1 FROM repo_removals r WHERE r.ledger_id = found.ledger) THEN 0
                WHEN EXISTS (SELECT 1 FROM ledger_logs s
                              WHERE s.org_uid = found.organization AND s.state = ${stateNumbers.suspended}) THEN 0
                WHEN found."afterTag" IS NULL THEN 1
                WHEN EXISTS (SELECT 1 FROM ledger_pending q
                              WHERE q.ledger_id = found.ledger AND q.tag < found."afterTag") THEN 1
                ELSE 0 END AS ready
      FROM (SELECT matches.ledger_id AS ledger,
                   (SELECT substr(l.group_uid, 1, 40) FROM ledgers l WHERE l.id = matches.ledger_id) AS organization,
                   (SELECT b.after_tag FROM ledger_backfills b WHERE b.ledger_id = matches.ledger_id) AS "afterTag"
              FROM matches WHERE matches.ledger_id IS NOT NULL) AS found`)
  const inOrder = rows.sort((one, other) => one.ledger - other.ledger)
  return inOrder.map(({ ready, ...waiting }) => ({ ...waiting, isReady: ready === 1 }))
}

type StoredPending = Omit<PendingRow, 'event' | 'source'> & { event: number; source: number }

const readyTags = ({ afterTag }: WaitingLedger): Sql => (afterTag === null ? sql`1 = 1` : sql`q.tag < ${afterTag}`)

/** Some rows that can be logged now, ordered by tag and time. */
export function readyRows(tx: Tx, waiting: WaitingLedger, most: number): Promise<PendingRow[]> {
  return pendingRows(
    tx,
    sql`SELECT q.* FROM ledger_pending q
         WHERE q.ledger_id = ${waiting.ledger} AND ${readyTags(waiting)} ORDER BY q.tag, q.time LIMIT ${most}`,
  )
}

/** Tags with queued assignments that were made on this server after `since`. The longest wait comes first. */
export async function movedTags(tx: Tx, waiting: WaitingLedger, since: string, most: number): Promise<string[]> {
  // The negative number selects the index for the rows of a whole history by time.
  const rows = await tx.all<{ tag: string }>(sql`
    SELECT q.tag
      FROM tag_history h
      JOIN ledger_pending q ON q.ledger_id = ${waiting.ledger} AND q.tag = h.tag AND q.time = h.time
     WHERE -h.repo_id = ${-waiting.ledger} AND h.time >= ${since}
       AND q.kind = ${kindNumbers.live} AND ${readyTags(waiting)}
     ORDER BY h.time, h.tag LIMIT ${most}`)
  return [...new Set(rows.map(({ tag }) => tag))]
}

/** The first queued rows of each of these tags. */
export function readyRowsOf(
  tx: Tx,
  { ledger }: WaitingLedger,
  tags: readonly string[],
  ofEach: number,
): Promise<PendingRow[]> {
  const each = tags.map(
    (tag) => sql`
    SELECT * FROM (SELECT q.* FROM ledger_pending q
                    WHERE q.ledger_id = ${ledger} AND q.tag = ${tag} ORDER BY q.time LIMIT ${ofEach}) AS of_tag`,
  )
  return pendingRows(tx, join(each, ' UNION ALL '))
}

async function pendingRows(tx: Tx, picked: Sql): Promise<PendingRow[]> {
  const rows = await tx.all<StoredPending>(sql`
    SELECT p.ledger_id AS ledger, p.tag, p.time, p.path, p.kind,
           h.event, h.digest, h.previous_digest AS "previousDigest", h.actor, h.source, p.before,
           o.path AS "beforePath", o.log_id AS "beforeLog",
           e.chain AS "beforeChain", e.seq AS "beforeSeq", e.entry AS "beforeEntry"
      FROM (SELECT q.ledger_id, q.tag, q.time, q.path, q.kind,
                   coalesce((SELECT max(x.time) FROM tag_history x
                              WHERE x.repo_id = q.ledger_id AND x.tag = q.tag AND x.time < q.time), '') AS before
              FROM (${picked}) AS q) AS p
      JOIN tag_history h ON h.repo_id = p.ledger_id AND h.tag = p.tag AND h.time = p.time
      LEFT JOIN ledger_openings o ON o.ledger_id = p.ledger_id AND o.tag = p.tag AND o.time = p.before
      LEFT JOIN ledger_entries e ON e.log_id = o.log_id AND e.idx = o.idx
     ORDER BY p.tag, p.time`)
  return rows.map((row) => ({
    ...row,
    event: nameOf(eventNumbers, row.event),
    source: nameOf(sourceNumbers, row.source),
  }))
}

export async function insertEntries(tx: Tx, log: number, entries: readonly EntryRow[]): Promise<void> {
  const rows = entries.map(({ index, chain, seq, entry }) => sql`(${log}, ${index}, ${chain}, ${seq}, ${entry})`)
  const into = sql`INSERT INTO ledger_entries (log_id, idx, chain, seq, entry)`
  for (const insert of insertsOf(into, rows)) await tx.run(insert)
}

/**
 * Records which rows the entries are for, and removes these rows from the queue. Rows that an earlier log has are recorded too.
 */
export async function openEntries(tx: Tx, log: number, openings: readonly OpeningRow[]): Promise<void> {
  const rows = openings.map(({ ledger, tag, time, path, nonce, index }) => {
    return sql`(${ledger}, ${tag}, ${time}, ${path}, ${nonce}, ${log}, ${index})`
  })
  const after = sql`
    ON CONFLICT (ledger_id, tag, time) DO UPDATE
       SET path = excluded.path, nonce = excluded.nonce, log_id = excluded.log_id, idx = excluded.idx`
  const into = sql`INSERT INTO ledger_openings (ledger_id, tag, time, path, nonce, log_id, idx)`
  for (const insert of insertsOf(into, rows, after)) await tx.run(insert)
  await tx.run(sql`
    DELETE FROM ledger_pending WHERE (ledger_id, tag, time) IN (
      SELECT ledger_id, tag, time FROM ledger_openings WHERE log_id = ${log} AND idx >= ${openings[0]!.index})`)
}

/** The given tiles that exist. */
export async function readTiles(reader: Reader, log: number, wanted: readonly TileAt[]): Promise<Tiles> {
  if (wanted.length === 0) return new Map()
  // Each tile is selected on its own. With OR, both databases would read all tiles of the log.
  const each = wanted.map(
    ({ level, index }) => sql`
    SELECT level, idx AS "index", hashes FROM ledger_tiles WHERE log_id = ${log} AND level = ${level} AND idx = ${index}`,
  )
  const rows = await reader.all<TileAt & { hashes: Uint8Array }>(join(each, ' UNION ALL '))
  return new Map(
    rows.map(({ hashes, ...at }) => [tileKey(at), Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length)]),
  )
}

export async function writeTiles(tx: Tx, log: number, tiles: readonly (TileAt & { hashes: Buffer })[]): Promise<void> {
  for (const { level, index, hashes } of tiles) {
    await tx.run(sql`
      INSERT INTO ledger_tiles (log_id, level, idx, hashes) VALUES (${log}, ${level}, ${index}, ${hashes})
          ON CONFLICT (log_id, level, idx) DO UPDATE SET hashes = excluded.hashes`)
  }
}

/** Unchanged text of the entries with numbers from `from` up to, but not including, `to`. */
export async function readEntries(reader: Reader, log: number, from: number, to: number): Promise<string[]> {
  const rows = await reader.all<{ entry: string }>(sql`
    SELECT entry FROM ledger_entries WHERE log_id = ${log} AND idx >= ${from} AND idx < ${to} ORDER BY idx`)
  return rows.map(({ entry }) => entry)
}

export async function findInChain(
  reader: Reader,
  log: number,
  chain: string,
  seq: number,
): Promise<EntryRow | undefined> {
  return reader.get(sql`
    SELECT idx AS "index", chain, seq, entry FROM ledger_entries
     WHERE log_id = ${log} AND chain = ${chain} AND seq = ${seq}`)
}

/** Time of the first row of a chain. Returns undefined if the tag history of the chain was erased. */
export async function beganAt(reader: Reader, log: number, chain: string): Promise<string | undefined> {
  const row = await reader.get<{ time: string }>(sql`
    SELECT o.time FROM ledger_entries e JOIN ledger_openings o ON o.log_id = e.log_id AND o.idx = e.idx
     WHERE e.log_id = ${log} AND e.chain = ${chain} AND e.seq = 0`)
  return row?.time
}

/** True if the database was ever restored from a backup. Then other logs may have been signed that the database does not know. */
export async function wasRestored(reader: Reader): Promise<boolean> {
  return (await readFact(reader, 'restore_time')) !== undefined
}

type StoredRow = Omit<PendingRow, 'kind' | 'organization' | 'event' | 'source'> & {
  event: number
  source: number
} & (
    | ({ nonce: string; log: number } & EntryRow)
    | { nonce: string | null; log: null; index: null; chain: null; seq: null; entry: null }
  )

/** Last row of a tag up to a time. If the row is in a log, includes its entry; otherwise these columns are null. */
export async function rowAt(reader: Reader, ledger: number, tag: string, at: string) {
  const row = await reader.get<StoredRow>(sql`
    SELECT h.repo_id AS ledger, h.tag, h.time, h.event, h.digest, h.previous_digest AS "previousDigest", h.actor, h.source,
           o.path, o.nonce, e.log_id AS log, e.idx AS "index", e.chain, e.seq, e.entry
      FROM tag_history h
      LEFT JOIN ledger_openings o ON o.ledger_id = h.repo_id AND o.tag = h.tag AND o.time = h.time
      LEFT JOIN ledger_entries e ON e.log_id = o.log_id AND e.idx = o.idx
     WHERE h.repo_id = ${ledger} AND h.tag = ${tag}
       AND h.time = (SELECT max(x.time) FROM tag_history x
                      WHERE x.repo_id = ${ledger} AND x.tag = ${tag} AND x.time <= ${at})`)
  return row && { ...row, event: nameOf(eventNumbers, row.event), source: nameOf(sourceNumbers, row.source) }
}
