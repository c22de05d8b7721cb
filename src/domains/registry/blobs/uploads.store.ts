import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { Upload, UploadPart } from './blobs.model.ts'

export async function insertUpload(tx: Tx, uid: string, repo: number, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO uploads (uid, repo_id, size, create_time, update_time) VALUES (${uid}, ${repo}, 0, ${now}, ${now})`)
}

export async function findUpload(reader: Reader, repo: number, uid: string): Promise<Upload | undefined> {
  return reader.get<Upload>(sql`SELECT uid, size FROM uploads WHERE uid = ${uid} AND repo_id = ${repo}`)
}

/** `false` when the upload is gone, or has grown meanwhile, so that the part does not fit any more. */
export async function appendPart(tx: Tx, upload: string, part: UploadPart, now: string): Promise<boolean> {
  const grown = await tx.run(sql`
    UPDATE uploads SET size = ${part.start + part.size}, update_time = ${now}
     WHERE uid = ${upload} AND size = ${part.start}`)
  if (grown === 0) return false
  await tx.run(sql`
    INSERT INTO upload_parts (upload_uid, start, size, location, digest)
    VALUES (${upload}, ${part.start}, ${part.size}, ${part.location}, ${part.digest})`)
  return true
}

export async function partsOf(reader: Reader, upload: string): Promise<UploadPart[]> {
  return reader.all<UploadPart>(sql`
    SELECT start, size, location, digest FROM upload_parts WHERE upload_uid = ${upload} ORDER BY start`)
}

/** `false` when there was none. */
export async function deleteUpload(tx: Tx, uid: string): Promise<boolean> {
  await tx.run(sql`DELETE FROM upload_parts WHERE upload_uid = ${uid}`)
  return (await tx.run(sql`DELETE FROM uploads WHERE uid = ${uid}`)) === 1
}

export async function deleteUploadsOf(tx: Tx, repo: number): Promise<void> {
  await tx.run(sql`
    DELETE FROM upload_parts WHERE upload_uid IN (SELECT uid FROM uploads WHERE repo_id = ${repo})`)
  await tx.run(sql`DELETE FROM uploads WHERE repo_id = ${repo}`)
}
