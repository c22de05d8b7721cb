import { exists } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

/** Types of the subscriptions of these groups as JSON, and the vendor of each. The vendor is empty for our own names. */
export function typesAt(reader: Reader, groups: readonly string[]): Promise<{ types: string; vendor: string }[]> {
  return reader.all(sql`
    SELECT types, vendor FROM subscriptions WHERE parent_uid IN (${list(groups)})`)
}

/** True if a stream is open now for one of these groups. */
export async function hasStream(reader: Reader, groups: readonly string[], now: string): Promise<boolean> {
  return exists(reader, sql`FROM pull_streams WHERE place IN (${list(groups)}) AND expire_time > ${now}`)
}

export async function setStream(tx: Tx, stream: string, groups: readonly string[], expireTime: string): Promise<void> {
  await deleteStream(tx, stream)
  for (const group of groups) {
    await tx.run(sql`
      INSERT INTO pull_streams (stream, place, expire_time) VALUES (${stream}, ${group}, ${expireTime})`)
  }
}

/** Renews the announcement of a stream. Returns the number of its groups. */
export async function renewStream(tx: Tx, stream: string, expireTime: string): Promise<number> {
  return tx.run(sql`UPDATE pull_streams SET expire_time = ${expireTime} WHERE stream = ${stream}`)
}

export async function deleteStream(tx: Tx, stream: string): Promise<void> {
  await tx.run(sql`DELETE FROM pull_streams WHERE stream = ${stream}`)
}

/** Deletes expired announcements of streams, which killed servers left behind. */
export async function sweepStreams(tx: Tx, before: string): Promise<number> {
  return tx.run(sql`DELETE FROM pull_streams WHERE expire_time < ${before}`)
}
