// Rows of the tag history that are older than the transparency log. They are queued for the log like new rows.
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { kindNumbers, sourceNumbers } from '#domains/registry/tags/tag-history.model.ts'
import { stateNumbers } from './logs.model.ts'

/** Progress for one tag history: the last row that is queued already. */
export type LedgerBackfill = { ledger: number; tag: string; time: string }

export function nextBackfill(reader: Reader): Promise<LedgerBackfill | undefined> {
  return reader.get(sql`
    SELECT ledger_id AS ledger, after_tag AS tag, after_time AS time FROM ledger_backfills ORDER BY ledger_id LIMIT 1`)
}

/** Last row of the next `most` rows. Returns undefined if fewer rows are left. */
export function endOfSlice(
  reader: Reader,
  { ledger, tag, time }: LedgerBackfill,
  most: number,
): Promise<{ tag: string; time: string } | undefined> {
  return reader.get(sql`
    SELECT tag, time FROM tag_history WHERE repo_id = ${ledger} AND (tag, time) > (${tag}, ${time})
     ORDER BY tag, time LIMIT 1 OFFSET ${most - 1}`)
}

/**
 * Queues the rows after the given row, up to `end` if it is given. Leaves out rows that are queued already, and rows in a log
 * that has not ended. If a row was in a log before, it keeps its path of that time.
 */
export function addRowsOfBefore(
  tx: Tx,
  { ledger, tag, time }: LedgerBackfill,
  end: { tag: string; time: string } | undefined,
  path: string,
): Promise<number> {
  const until = end ? sql`(h.tag, h.time) <= (${end.tag}, ${end.time})` : sql`1 = 1`
  return tx.run(sql`
    INSERT INTO ledger_pending (ledger_id, tag, time, path, kind)
    SELECT h.repo_id, h.tag, h.time, coalesce(o.path, CAST(${path} AS TEXT)),
           CASE WHEN h.source = ${sourceNumbers.import} THEN CAST(${kindNumbers.import} AS BIGINT)
                ELSE CAST(${kindNumbers.backfill} AS BIGINT) END
      FROM tag_history h
      LEFT JOIN ledger_openings o ON o.ledger_id = h.repo_id AND o.tag = h.tag AND o.time = h.time
      LEFT JOIN ledger_logs g ON g.id = o.log_id
     WHERE h.repo_id = ${ledger} AND (h.tag, h.time) > (${tag}, ${time}) AND ${until}
       AND (g.id IS NULL OR g.state = ${stateNumbers.ended})
        ON CONFLICT (ledger_id, tag, time) DO NOTHING`)
}

export async function moveBackfill(tx: Tx, { ledger, tag, time }: LedgerBackfill): Promise<void> {
  await tx.run(sql`
    UPDATE ledger_backfills SET after_tag = ${tag}, after_time = ${time} WHERE ledger_id = ${ledger}`)
}

export async function endBackfill(tx: Tx, ledger: number): Promise<void> {
  await tx.run(sql`DELETE FROM ledger_backfills WHERE ledger_id = ${ledger}`)
}

/** Current group and name of the repository that writes to this tag history. If it was deleted, its last path. */
export async function ledgerScopeOf(
  reader: Reader,
  ledger: number,
): Promise<{ is: 'there'; group: string; name: string } | { is: 'gone'; path: string }> {
  const repo = await reader.get<{ group: string; name: string }>(sql`
    SELECT parent_uid AS "group", name FROM repos WHERE ledger_id = ${ledger}`)
  if (repo) return { is: 'there', ...repo }
  const gone = await reader.get<{ path: string }>(sql`
    SELECT path FROM deleted_repos WHERE ledger_id = ${ledger} ORDER BY delete_time DESC LIMIT 1`)
  return { is: 'gone', path: gone?.path ?? '' }
}
