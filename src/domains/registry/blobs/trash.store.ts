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
