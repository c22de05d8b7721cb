// Repositories that are being removed in batches. Each keeps its row in `repos`, since many tables refer to the number of the
// repository. No look-up finds this row.
import { atMost } from '#db/bulk.ts'
import { addToLists, removeFromLists } from '#db/listing.ts'
import { ident, type Reader, sql, type Tx } from '#db/sql.ts'
import type { Removal } from './removals.model.ts'

const kind = 'repo_removals'
const columns = sql`id, uid, ledger_id AS ledger, actor, delete_time AS "deleteTime"`
const tables = ['tags', 'manifests', 'repo_blobs', 'image_contents', 'scan_reports', 'scan_jobs'] as const

/** True if the repository has more than `most` rows of any kind. */
export async function isLarge(reader: Reader, repo: number, most: number): Promise<boolean> {
  for (const table of tables) {
    const row = await reader.get<{ total: number }>(sql`
      SELECT count(*) AS total FROM (
        SELECT 1 AS one FROM ${ident(table)} WHERE repo_id = ${repo} LIMIT ${most + 1}) AS counted`)
    if (row!.total > most) return true
  }
  const uploads = await reader.get<{ total: number; pieces: number }>(sql`
    SELECT count(*) AS total, CAST(coalesce(sum(parts), 0) AS BIGINT) AS pieces FROM (
      SELECT parts FROM uploads WHERE repo_id = ${repo} LIMIT ${most + 1}) AS counted`)
  return uploads!.total > most || uploads!.pieces > most
}

/**
 * Hides the repository: changes the uid and the name of its row to values that no request can contain. At this point no other row
 * refers to the uid.
 */
export async function beginRemoval(tx: Tx, removal: Removal): Promise<void> {
  const { id, uid, ledger, actor, deleteTime } = removal
  const hidden = `!${uid}`
  await tx.run(sql`
    UPDATE repos SET uid = ${hidden}, name = ${hidden}, ledger_id = NULL, sync_config = '' WHERE id = ${id}`)
  await tx.run(sql`
    INSERT INTO repo_removals (id, uid, ledger_id, actor, delete_time)
    VALUES (${id}, ${uid}, ${ledger}, ${actor}, ${deleteTime})`)
  await addToLists(tx, kind, uid, id, { delete_time: deleteTime })
}

/** Deletes the row, once no other row refers to the repository. */
export async function endRemoval(tx: Tx, { id, uid, deleteTime }: Removal): Promise<void> {
  await tx.run(sql`DELETE FROM repo_removals WHERE id = ${id}`)
  await tx.run(sql`DELETE FROM repos WHERE id = ${id}`)
  await removeFromLists(tx, kind, uid, { delete_time: deleteTime })
}

export async function openRemovals(reader: Reader): Promise<Removal[]> {
  return reader.all(sql`SELECT ${columns} FROM repo_removals ORDER BY id`)
}

export async function manifestDigests(reader: Reader, repo: number, most: number): Promise<string[]> {
  return digests(reader, sql`SELECT digest FROM manifests WHERE repo_id = ${repo} LIMIT ${most}`)
}

export async function blobDigests(reader: Reader, repo: number, most: number): Promise<string[]> {
  return digests(reader, sql`SELECT digest FROM repo_blobs WHERE repo_id = ${repo} LIMIT ${most}`)
}

export async function contentDigests(reader: Reader, repo: number, most: number): Promise<string[]> {
  return digests(reader, sql`SELECT digest FROM image_contents WHERE repo_id = ${repo} LIMIT ${most}`)
}

async function digests(reader: Reader, query: ReturnType<typeof sql>): Promise<string[]> {
  return (await reader.all<{ digest: string }>(query)).map(({ digest }) => digest)
}

/** Deletes at most `limit` rows of the tables that only the repository refers to. Returns how many. */
export async function deletePlain(tx: Tx, repo: number, limit: number): Promise<number> {
  let deleted = 0
  for (const table of ['image_reads', 'past_contents', 'main_packages']) {
    deleted += await tx.run(
      sql`DELETE FROM ${ident(table)} WHERE ${atMost(limit, table, 'digest', sql`repo_id = ${repo}`)}`,
    )
  }
  return deleted
}

export async function someUpload(reader: Reader, repo: number): Promise<string | undefined> {
  const row = await reader.get<{ uid: string }>(sql`SELECT uid FROM uploads WHERE repo_id = ${repo} LIMIT 1`)
  return row?.uid
}
