import { locking } from '#db/row-locks.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Upload, UploadPart } from './blobs.model.ts'
import { addUpload, addUsage, uidOfRepo } from './usage.store.ts'

/** Until the transaction ends, no other upload of the organisation begins. */
export async function insertUpload(tx: Tx, uid: string, repo: RepoRef, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO uploads (uid, repo_id, size, create_time, update_time) VALUES (${uid}, ${repo.id}, 0, ${now}, ${now})`)
  await addUpload(tx, rootOf(repo.uid))
}

export async function findUpload(reader: Reader, repo: number, uid: string): Promise<Upload | undefined> {
  return reader.get<Upload>(sql`SELECT uid, size, parts FROM uploads WHERE uid = ${uid} AND repo_id = ${repo}`)
}

/** `false` when the upload is gone, or has grown meanwhile, so that the part does not fit any more. */
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

/** The pieces of an upload in their order; `undefined` when there is no such upload. */
export async function partsOfOpen(reader: Reader, upload: string): Promise<UploadPart[] | undefined> {
  const rows = await reader.all<UploadPart | { [key in keyof UploadPart]: null }>(sql`
    SELECT p.start, p.size, p.location, p.digest FROM uploads u LEFT JOIN upload_parts p ON p.upload_uid = u.uid
     WHERE u.uid = ${upload}`)
  return rows.length === 0
    ? undefined
    : rows.filter((row) => row.start !== null).sort((one, other) => one.start - other.start)
}

/** Until the transaction ends nobody adds to the upload, or ends it. */
export async function lockUpload(tx: Tx, uid: string): Promise<{ size: number; repo: number } | undefined> {
  return tx.get(sql`SELECT size, repo_id AS repo FROM uploads WHERE uid = ${uid} ${locking(tx, 'deleting')}`)
}

/** What an upload had that is over: its bytes, and where its pieces are. Nothing of it belongs to anybody else. */
export type Ended = { size: number; locations: string[] }

/** `undefined` when there was none, or another request has ended it. */
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

/** Returns how many uploads the repo had. */
export async function deleteUploadsOf(tx: Tx, repo: Pick<RepoRef, 'id' | 'uid'>, now: string): Promise<number> {
  // Pieces that come meanwhile are there or not there, but not counted by halves.
  await tx.all(sql`SELECT uid FROM uploads WHERE repo_id = ${repo.id} ORDER BY uid ${locking(tx, 'deleting')}`)
  const row = await tx.get<{ uploads: number; bytes: number }>(sql`
    SELECT count(*) AS uploads, CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes FROM uploads WHERE repo_id = ${repo.id}`)
  await trashPieces(tx, sql`upload_uid IN (SELECT uid FROM uploads WHERE repo_id = ${repo.id})`, now)
  await tx.run(sql`DELETE FROM uploads WHERE repo_id = ${repo.id}`)
  await addUsage(tx, rootOf(repo.uid), { uploads: -row!.uploads, uploadBytes: -row!.bytes })
  return row!.uploads
}

/**
 * Takes away the first pieces of an upload of a repo that is going, and with the last of them the upload. Answers with how
 * many there were, the upload among them.
 */
export async function deleteSomeOfUpload(tx: Tx, uid: string, most: number, now: string): Promise<number> {
  await lockUpload(tx, uid)
  const first = sql`SELECT start FROM upload_parts WHERE upload_uid = ${uid} ORDER BY start LIMIT ${most}`
  const gone = await trashPieces(tx, sql`upload_uid = ${uid} AND start IN (${first})`, now)
  if (gone === most) return gone
  await deleteUpload(tx, uid)
  return gone + 1
}

/** Nothing was ever acknowledged with them alone, so they may go at once. */
async function trashPieces(tx: Tx, which: ReturnType<typeof sql>, now: string): Promise<number> {
  await tx.run(sql`
    INSERT INTO blob_trash (location, size, due) SELECT location, size, ${now} FROM upload_parts WHERE ${which}
        ON CONFLICT (location) DO NOTHING`)
  return tx.run(sql`DELETE FROM upload_parts WHERE ${which}`)
}
