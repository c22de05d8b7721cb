// What waits for its removal from the store: no row names it any more, but a backup of before may.
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
