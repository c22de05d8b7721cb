// Locations of content in the blob store: all content of a database page by page, the trash, and holds of backups.

import { readFact } from '#db/facts.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

/** Content in the blob store. `digest` is empty if it is unknown. */
export type StoredContent = Trash & { digest: string }

/** Blobs and chunks of uploads after this location, by location. */
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

/** Upload that has a chunk at this location. Returns undefined if the location belongs to a blob. */
export async function uploadAt(reader: Reader, location: string): Promise<string | undefined> {
  const row = await reader.get<{ uid: string }>(sql`
    SELECT upload_uid AS uid FROM upload_parts WHERE location = ${location}`)
  return row?.uid
}

type Trash = { location: string; size: number }

/** Queues content for removal. Call this in the transaction that deletes the last row with this location. */
export async function addTrash(tx: Tx, { location, size }: Trash, due: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO blob_trash (location, size, due) VALUES (${location}, ${size}, ${due}) ON CONFLICT (location) DO NOTHING`)
}

/** Trash that is due for removal, the oldest first. */
export async function dueTrash(reader: Reader, now: string, most: number): Promise<Trash[]> {
  return reader.all(sql`
    SELECT location, size FROM blob_trash WHERE due <= ${now} ORDER BY due, location LIMIT ${most}`)
}

/** `firstDue` is the earliest removal time, or empty if the trash is empty. */
export type TrashDepth = { count: number; firstDue: string }

/** Number of contents in the trash, counted up to `most`, and the earliest removal time. */
export async function trashDepth(reader: Reader, most: number): Promise<TrashDepth> {
  const row = await reader.get<{ count: number; due: string | null }>(sql`
    SELECT (SELECT count(*) FROM (SELECT 1 AS one FROM blob_trash LIMIT ${most}) AS counted) AS count,
           (SELECT due FROM blob_trash ORDER BY due LIMIT 1) AS due`)
  return { count: row!.count, firstDue: row!.due ?? '' }
}

export async function forgetTrash(tx: Tx, locations: readonly string[]): Promise<void> {
  if (locations.length > 0) await tx.run(sql`DELETE FROM blob_trash WHERE location IN (${list(locations)})`)
}

/** Delays the removal of contents that the store failed to remove, so that other contents come first. */
export async function delayTrash(tx: Tx, locations: readonly string[], due: string): Promise<void> {
  if (locations.length === 0) return
  await tx.run(sql`UPDATE blob_trash SET due = ${due} WHERE location IN (${list(locations)})`)
}

/** True if the database belongs to the store with this id. */
export async function isStoreOf(reader: Reader, id: string | undefined): Promise<boolean> {
  const wanted = `${await readFact(reader, 'blob_folder_id')} ${await readFact(reader, 'database_id')}`
  return id === wanted
}

export async function isBackupRunning(reader: Reader, now: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM backups WHERE until > ${now} LIMIT 1`)) !== undefined
}

/**
 * Adds a hold. Until the given time no content is removed from the store, even if the caller crashes. Returns false if a hold of
 * this name exists. Deletes expired holds.
 */
export async function hold(tx: Tx, id: string, { now, until }: { now: string; until: string }): Promise<boolean> {
  await tx.run(sql`DELETE FROM backups WHERE until <= ${now}`)
  const held = await tx.run(sql`
    INSERT INTO backups (id, until) VALUES (${id}, ${until}) ON CONFLICT (id) DO NOTHING`)
  return held === 1
}

/** Extends a hold. Returns false if it has expired and was deleted. */
export async function renewHold(tx: Tx, id: string, until: string): Promise<boolean> {
  return (await tx.run(sql`UPDATE backups SET until = ${until} WHERE id = ${id}`)) === 1
}

export async function release(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM backups WHERE id = ${id}`)
}

export async function releaseAll(tx: Tx): Promise<void> {
  await tx.run(sql`DELETE FROM backups`)
}

/** Content in the trash after this location, by location. Older backups of the database may refer to this content. */
export async function trashAfter(reader: Reader, after: string, most: number): Promise<StoredContent[]> {
  return reader.all(sql`
    SELECT location, size, '' AS digest FROM blob_trash WHERE location > ${after} ORDER BY location LIMIT ${most}`)
}

/** Delays the removal of all trash to at least this time, since a restored database may need it again. */
export async function delayAllTrash(tx: Tx, due: string): Promise<number> {
  return tx.run(sql`UPDATE blob_trash SET due = ${due} WHERE due < ${due}`)
}
