import { countRows } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { type SyncState, type SyncStatus, syncStates } from '../follows/sync-states.model.ts'
import type { Sync, SyncCursor } from './syncs.model.ts'

type Row = Omit<Sync, 'operator' | 'cursor'> & { operator: number; cursor: string }

const columns = sql`
  repo_uid AS repo, source, setter, operator, expiration_time AS "expirationTime", status AS state, cursor`

const start: SyncCursor = { tags: undefined, referrers: { time: '', digest: '' }, fullTime: '' }

function fromRow(row: Row): Sync {
  return { ...row, operator: row.operator === 1, cursor: JSON.parse(row.cursor) as SyncCursor }
}

/** Configuration of a copy to be stored. Without a `setter`, the stored setter stays unchanged. */
export type Renewal = { source: string; expirationTime: string; setter?: { uid: string; operator: boolean } }

/** Stores the configuration of a copy. If the source or the setter has changed, the copy starts from the beginning. */
export async function saveSync(tx: Tx, repo: string, renewal: Renewal, now: string): Promise<void> {
  const { source, expirationTime, setter } = renewal
  if (!setter) {
    await tx.run(sql`
      UPDATE repo_syncs SET source = ${source}, expiration_time = ${expirationTime} WHERE repo_uid = ${repo}`)
    return
  }
  await tx.run(sql`
    INSERT INTO repo_syncs
           (repo_uid, source, setter, operator, expiration_time, status, status_time, due_time, cursor)
    VALUES (${repo}, ${source}, ${setter.uid}, ${Number(setter.operator)}, ${expirationTime}, ${syncStates.queued}, ${now},
            ${now}, ${JSON.stringify(start)})
        ON CONFLICT (repo_uid) DO UPDATE SET source = excluded.source, setter = excluded.setter,
           operator = excluded.operator, expiration_time = excluded.expiration_time, status = excluded.status,
           status_time = excluded.status_time, due_time = excluded.due_time, cursor = excluded.cursor`)
}

export async function deleteSync(tx: Tx, repo: string): Promise<void> {
  await tx.run(sql`DELETE FROM repo_syncs WHERE repo_uid = ${repo}`)
}

/** Uid of the source from which the repository is copied. Returns undefined if it is not a copy. */
export async function sourceOf(reader: Reader, repo: string): Promise<string | undefined> {
  const row = await reader.get<{ source: string }>(sql`SELECT source FROM repo_syncs WHERE repo_uid = ${repo}`)
  return row?.source
}

export async function countBySource(reader: Reader, source: string, now: string): Promise<number> {
  return countRows(reader, sql`FROM repo_syncs WHERE source = ${source} AND expiration_time > ${now}`)
}

const statusColumns = sql`repo_uid AS repo, status AS state, status_time AS since`

export async function findStatus(reader: Reader, repo: string): Promise<SyncStatus | undefined> {
  return reader.get<SyncStatus>(sql`SELECT ${statusColumns} FROM repo_syncs WHERE repo_uid = ${repo}`)
}

/** Statuses of the copied repositories of a group, ordered by the uids of the repositories. */
export async function statusesBelow(reader: Reader, scope: string, most: number): Promise<SyncStatus[]> {
  return reader.all<SyncStatus>(sql`
    SELECT ${statusColumns} FROM repo_syncs
     WHERE repo_uid > ${`${scope}/`} AND repo_uid < ${`${scope}0`} ORDER BY repo_uid LIMIT ${most}`)
}

/** Organizations with copies that are due. The organization with the longest wait comes first. */
export async function dueOrganizations(reader: Reader, now: string): Promise<string[]> {
  const rows = await reader.all<{ organization: string }>(sql`
    SELECT substr(repo_uid, 1, 40) AS organization FROM repo_syncs
     WHERE due_time <> '' AND due_time <= ${now} GROUP BY 1 ORDER BY min(due_time), 1`)
  return rows.map(({ organization }) => organization)
}

/** Copy of the organization that has been due for the longest time. */
export async function nextDue(reader: Reader, organization: string, now: string): Promise<Sync | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${columns} FROM repo_syncs
     WHERE due_time <> '' AND due_time <= ${now} AND repo_uid > ${`${organization}/`} AND repo_uid < ${`${organization}0`}
     ORDER BY due_time, repo_uid LIMIT 1`)
  return row && fromRow(row)
}

/** True if source, setter and expiration of the copy are unchanged. */
export async function isCurrent(reader: Reader, { repo, source, setter, expirationTime }: Sync): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM repo_syncs
     WHERE repo_uid = ${repo} AND source = ${source} AND setter = ${setter} AND expiration_time = ${expirationTime}`)
  return row !== undefined
}

export type Progress = { state: SyncState; now: string; due: string; cursor: SyncCursor }

/** Stores the progress of a copy. Does nothing if source, setter or expiration have changed. */
export async function noteProgress(
  tx: Tx,
  { repo, source, setter, expirationTime }: Sync,
  progress: Progress,
): Promise<void> {
  const { state, now, due, cursor } = progress
  await tx.run(sql`
    UPDATE repo_syncs
       SET status_time = CASE WHEN status = ${state} THEN status_time ELSE ${now} END,
           status = ${state}, due_time = ${due}, cursor = ${JSON.stringify(cursor)}
     WHERE repo_uid = ${repo} AND source = ${source} AND setter = ${setter} AND expiration_time = ${expirationTime}`)
}
