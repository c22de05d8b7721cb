// Backups that are being made, while which nothing is removed from the store.
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { StoredContent } from './copies.store.ts'

export async function isHeld(reader: Reader, now: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM backups WHERE until > ${now} LIMIT 1`)) !== undefined
}

/**
 * Until then, however the one that asks for it ends; `false` where somebody has it under this name. Those that have ended
 * are forgotten.
 */
export async function hold(tx: Tx, id: string, { now, until }: { now: string; until: string }): Promise<boolean> {
  await tx.run(sql`DELETE FROM backups WHERE until <= ${now}`)
  const held = await tx.run(sql`
    INSERT INTO backups (id, until) VALUES (${id}, ${until}) ON CONFLICT (id) DO NOTHING`)
  return held === 1
}

/** `false` where it is forgotten, since it had ended. */
export async function renewHold(tx: Tx, id: string, until: string): Promise<boolean> {
  return (await tx.run(sql`UPDATE backups SET until = ${until} WHERE id = ${id}`)) === 1
}

export async function release(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM backups WHERE id = ${id}`)
}

export async function releaseAll(tx: Tx): Promise<void> {
  await tx.run(sql`DELETE FROM backups`)
}

/** What waits for its removal, in the order of the locations: a backup of the database from before may name it. */
export async function trashAfter(reader: Reader, after: string, most: number): Promise<StoredContent[]> {
  return reader.all(sql`
    SELECT location, size, '' AS digest FROM blob_trash WHERE location > ${after} ORDER BY location LIMIT ${most}`)
}

/** Nothing in the trash is removed before this time: what was removed from a restored database may be wanted again. */
export async function delayAllTrash(tx: Tx, due: string): Promise<number> {
  return tx.run(sql`UPDATE blob_trash SET due = ${due} WHERE due < ${due}`)
}
