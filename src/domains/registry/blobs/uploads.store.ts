import { locking } from '#db/row-locks.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Upload, UploadPart } from './blobs.model.ts'
import { addUpload, addUsage, uidOfRepo } from './usage.store.ts'

/** Inserts an upload and counts it. No other upload of the organization can start until the transaction ends. */
export async function insertUpload(tx: Tx, uid: string, repo: RepoRef, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO uploads (uid, repo_id, size, create_time, update_time) VALUES (${uid}, ${repo.id}, 0, ${now}, ${now})`)
  await addUpload(tx, rootOf(repo.uid))
}

export async function findUpload(reader: Reader, repo: number, uid: string): Promise<Upload | undefined> {
  return reader.get<Upload>(sql`SELECT uid, size, parts FROM uploads WHERE uid = ${uid} AND repo_id = ${repo}`)
}

/** Appends a chunk. Returns false if the upload has ended, or if another request has appended a chunk meanwhile. */
export async function appendPart(
  tx: Tx,
  repo: RepoRef,
  upload: string,
  part: UploadPart,
  now: string,
): Promise<boolean> {
  const grown = await tx.run(sql`
    UPDATE uploads SET size = ${part.start + part.size}, parts = parts + 1, update_time = ${now}
     WHERE uid = ${upload} AND size = ${part.start}`)
  if (grown === 0) return false
  await tx.run(sql`
    INSERT INTO upload_parts (upload_uid, start, size, location, digest)
    VALUES (${upload}, ${part.start}, ${part.size}, ${part.location}, ${part.digest})`)
  await addUsage(tx, rootOf(repo.uid), { uploadBytes: part.size })
  return true
}

/** Chunks of an upload in order. Returns undefined if there is no such upload. */
export async function partsOfOpen(reader: Reader, upload: string): Promise<UploadPart[] | undefined> {
  const rows = await reader.all<UploadPart | { [key in keyof UploadPart]: null }>(sql`
    SELECT p.start, p.size, p.location, p.digest FROM uploads u LEFT JOIN upload_parts p ON p.upload_uid = u.uid
     WHERE u.uid = ${upload}`)
  return rows.length === 0
    ? undefined
    : rows.filter((row) => row.start !== null).sort((one, other) => one.start - other.start)
}

/** Locks the upload until the transaction ends, so that no other request adds to it or ends it. */
export async function lockUpload(tx: Tx, uid: string): Promise<{ size: number; repo: number } | undefined> {
  return tx.get(sql`SELECT size, repo_id AS repo FROM uploads WHERE uid = ${uid} ${locking(tx, 'deleting')}`)
}

/** Size of a finished upload and the locations of its chunks. No row refers to these locations any more. */
export type Ended = { size: number; locations: string[] }

/** Deletes an upload. Returns undefined if there is no such upload, for example because another request has ended it. */
export async function deleteUpload(tx: Tx, uid: string): Promise<Ended | undefined> {
  const upload = await lockUpload(tx, uid)
  if (!upload) return undefined
  const { uid: repo } = (await tx.get<{ uid: string }>(
    sql`SELECT ${uidOfRepo} AS uid FROM repos WHERE id = ${upload.repo}`,
  ))!
  const parts = await tx.all<{ location: string }>(sql`
    DELETE FROM upload_parts WHERE upload_uid = ${uid} RETURNING location`)
  await tx.run(sql`DELETE FROM uploads WHERE uid = ${uid}`)
  await addUsage(tx, rootOf(repo), { uploads: -1, uploadBytes: -upload.size })
  return { size: upload.size, locations: parts.map(({ location }) => location) }
}

/** Deletes the uploads of a repository. Returns how many it had. */
export async function deleteUploadsOf(tx: Tx, repo: Pick<RepoRef, 'id' | 'uid'>, now: string): Promise<number> {
  // Locks the uploads, so that a chunk that arrives meanwhile is counted either completely or not at all.
  await tx.all(sql`SELECT uid FROM uploads WHERE repo_id = ${repo.id} ORDER BY uid ${locking(tx, 'deleting')}`)
  const row = await tx.get<{ uploads: number; bytes: number }>(sql`
    SELECT count(*) AS uploads, CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes FROM uploads WHERE repo_id = ${repo.id}`)
  await trashPieces(tx, sql`upload_uid IN (SELECT uid FROM uploads WHERE repo_id = ${repo.id})`, now)
  await tx.run(sql`DELETE FROM uploads WHERE repo_id = ${repo.id}`)
  await addUsage(tx, rootOf(repo.uid), { uploads: -row!.uploads, uploadBytes: -row!.bytes })
  return row!.uploads
}

/**
 * Deletes the first chunks of an upload, and the upload together with its last chunk. For repositories that are being removed.
 * Returns the number of deleted rows.
 */
export async function deleteSomeOfUpload(tx: Tx, uid: string, most: number, now: string): Promise<number> {
  await lockUpload(tx, uid)
  const first = sql`SELECT start FROM upload_parts WHERE upload_uid = ${uid} ORDER BY start LIMIT ${most}`
  const gone = await trashPieces(tx, sql`upload_uid = ${uid} AND start IN (${first})`, now)
  if (gone === most) return gone
  await deleteUpload(tx, uid)
  return gone + 1
}

/** Moves chunks to the trash. They can be removed at once, since chunks alone were never acknowledged as a blob. */
async function trashPieces(tx: Tx, which: ReturnType<typeof sql>, now: string): Promise<number> {
  await tx.run(sql`
    INSERT INTO blob_trash (location, size, due) SELECT location, size, ${now} FROM upload_parts WHERE ${which}
        ON CONFLICT (location) DO NOTHING`)
  return tx.run(sql`DELETE FROM upload_parts WHERE ${which}`)
}
