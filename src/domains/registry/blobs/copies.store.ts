// What a database has in its store of blobs, page by page.
import { type Reader, sql } from '#db/sql.ts'
import type { Trash } from './trash.store.ts'

/** `digest` is empty where nobody knows it. */
export type StoredContent = Trash & { digest: string }

/** Blobs and pieces of uploads, in the order of their locations. */
export async function contentsAfter(reader: Reader, after: string, most: number): Promise<StoredContent[]> {
  return reader.all(sql`
    SELECT location, size, digest FROM (
      SELECT location, size, digest FROM blobs
       UNION ALL
      SELECT location, size, digest FROM upload_parts) c
     WHERE location > ${after} ORDER BY location LIMIT ${most}`)
}

export async function locationIsKnown(reader: Reader, location: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM blobs WHERE location = ${location}
     UNION ALL
    SELECT 1 AS found FROM upload_parts WHERE location = ${location}`)
  return row !== undefined
}

export async function blobIsAt(reader: Reader, location: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM blobs WHERE location = ${location}`)) !== undefined
}

/** The upload that has its piece there; nothing where it is a blob. */
export async function uploadAt(reader: Reader, location: string): Promise<string | undefined> {
  const row = await reader.get<{ uid: string }>(sql`
    SELECT upload_uid AS uid FROM upload_parts WHERE location = ${location}`)
  return row?.uid
}
