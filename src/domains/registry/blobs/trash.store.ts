// What waits for its removal from the store: no row names it any more, but a backup of before may.
import { readFact } from '#db/facts.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

export type Trash = { location: string; size: number }

/** In the transaction that deletes the last row that named it. */
export async function addTrash(tx: Tx, { location, size }: Trash, due: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO blob_trash (location, size, due) VALUES (${location}, ${size}, ${due}) ON CONFLICT (location) DO NOTHING`)
}

/** What is due, the oldest first. */
export async function dueTrash(reader: Reader, now: string, most: number): Promise<Trash[]> {
  return reader.all(sql`
    SELECT location, size FROM blob_trash WHERE due <= ${now} ORDER BY due, location LIMIT ${most}`)
}

/** `firstDue` is when the first of them is to be removed; empty for none. */
export type TrashDepth = { count: number; firstDue: string }

/** How much waits; no more than `most` is counted. */
export async function trashDepth(reader: Reader, most: number): Promise<TrashDepth> {
  const row = await reader.get<{ count: number; due: string | null }>(sql`
    SELECT (SELECT count(*) FROM (SELECT 1 AS one FROM blob_trash LIMIT ${most}) AS counted) AS count,
           (SELECT due FROM blob_trash ORDER BY due LIMIT 1) AS due`)
  return { count: row!.count, firstDue: row!.due ?? '' }
}

export async function forgetTrash(tx: Tx, locations: readonly string[]): Promise<void> {
  if (locations.length > 0) await tx.run(sql`DELETE FROM blob_trash WHERE location IN (${list(locations)})`)
}

/** Those that the store would not remove wait on, so that they are not in the way of others. */
export async function delayTrash(tx: Tx, locations: readonly string[], due: string): Promise<void> {
  if (locations.length === 0) return
  await tx.run(sql`UPDATE blob_trash SET due = ${due} WHERE location IN (${list(locations)})`)
}

/** Whether the store with this id, as it stands there, is the one that the database was tied to. */
export async function isStoreOf(reader: Reader, id: string | undefined): Promise<boolean> {
  const wanted = `${await readFact(reader, 'blob_folder_id')} ${await readFact(reader, 'database_id')}`
  return id === wanted
}
