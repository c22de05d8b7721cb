// Tags against the ledger, and the ledger against tags. Each answer is of one moment.
import { type Reader, type Sql, sql } from '#db/sql.ts'
import { eventNumbers, sourceNumbers } from '../tags/tag-history.model.ts'

export type TagRecord = {
  id: number
  uid: string
  name: string
  digest: string
  assignTime: string
  repo: number
  repoUid: string
  ledger: number
  /** The last record of the ledger; the time is empty where there is none. */
  lastTime: string
  lastEvent: number
  lastDigest: string
}

function tagRecords(where: Sql, most: number): Sql {
  return sql`
    SELECT t.id, t.uid, t.name, t.digest, t.assign_time AS "assignTime", r.id AS repo, r.uid AS "repoUid",
           r.ledger_id AS ledger, coalesce(h.time, '') AS "lastTime", coalesce(h.event, 0) AS "lastEvent",
           coalesce(h.digest, '') AS "lastDigest"
      FROM tags t JOIN repos r ON r.id = t.repo_id AND r.ledger_id IS NOT NULL
      LEFT JOIN tag_history h ON h.repo_id = r.ledger_id AND h.tag = t.name AND h.time = (
        SELECT max(l.time) FROM tag_history l WHERE l.repo_id = r.ledger_id AND l.tag = t.name)
     WHERE ${where}
     ORDER BY t.id LIMIT ${most}`
}

export function tagRecordsAfter(reader: Reader, after: number, most: number): Promise<TagRecord[]> {
  return reader.all(tagRecords(sql`t.id > ${after}`, most))
}

export function tagRecordOf(reader: Reader, id: number): Promise<TagRecord | undefined> {
  return reader.get(tagRecords(sql`t.id = ${id}`, 1))
}

export type LedgerRow = {
  ledger: number
  tag: string
  time: string
  event: number
  digest: string
  previousDigest: string
}
export type LedgerKey = Pick<LedgerRow, 'ledger' | 'tag' | 'time'>

export function ledgerRowsAfter(reader: Reader, { ledger, tag, time }: LedgerKey, most: number): Promise<LedgerRow[]> {
  return reader.all(sql`
    SELECT repo_id AS ledger, tag, time, event, digest, previous_digest AS "previousDigest" FROM tag_history
     WHERE (repo_id, tag, time) > (${ledger}, ${tag}, ${time})
     ORDER BY repo_id, tag, time LIMIT ${most}`)
}

export type MissingTag = LedgerKey & {
  digest: string
  repo: number
  repoUid: string
  /** Its manifest is there, or need not be: of what was imported, copied or is followed, the content may be elsewhere. */
  canStand: number
}

/**
 * Tags that the ledger has between two of its rows, of repos that are there, and that are not there themselves: of the
 * last `most` rows between. The bound has PostgreSQL read these rows first, where it would begin with the repos and read all
 * that their ledgers have.
 */
export function missingTags(reader: Reader, from: LedgerKey, to: LedgerKey, most: number): Promise<MissingTag[]> {
  return reader.all(sql`
    SELECT h.repo_id AS ledger, h.tag, h.time, h.digest, r.id AS repo, r.uid AS "repoUid",
           CASE WHEN EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = r.id AND m.digest = h.digest)
                  OR h.source NOT IN (${sourceNumbers.oci}, ${sourceNumbers.api})
                  OR EXISTS (SELECT 1 FROM follows f WHERE f.repo_uid = r.uid)
                THEN 1 ELSE 0 END AS "canStand"
      FROM (SELECT repo_id, tag, time, event, digest, source FROM tag_history
             WHERE (repo_id, tag, time) > (${from.ledger}, ${from.tag}, ${from.time})
               AND (repo_id, tag, time) <= (${to.ledger}, ${to.tag}, ${to.time})
             ORDER BY repo_id DESC, tag DESC, time DESC LIMIT ${most}) AS h
      JOIN repos r ON r.ledger_id = h.repo_id
     WHERE h.event <> ${eventNumbers.deleted}
       AND NOT EXISTS (SELECT 1 FROM tag_history l WHERE l.repo_id = h.repo_id AND l.tag = h.tag AND l.time > h.time)
       AND NOT EXISTS (SELECT 1 FROM tags t WHERE t.repo_id = r.id AND t.name = h.tag)
     ORDER BY h.repo_id, h.tag`)
}
