import { deleteOldest } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'

export type RequestRow = { requestHash: string; answer: Uint8Array | null }

export async function findRequest(reader: Reader, id: string, now: string): Promise<RequestRow | undefined> {
  return reader.get(sql`
    SELECT request_hash AS "requestHash", answer FROM request_ids WHERE id = ${id} AND expire_time > ${now}`)
}

export type NewRequest = { id: string; requestHash: string; now: string; expireTime: string }

/** Inserts a request ID. Returns false if the ID is already stored and has not expired. */
export async function insertRequest(tx: Tx, { id, requestHash, now, expireTime }: NewRequest): Promise<boolean> {
  await tx.run(sql`DELETE FROM request_ids WHERE id = ${id} AND expire_time <= ${now}`)
  const inserted = await tx.run(sql`
    INSERT INTO request_ids (id, request_hash, answer, expire_time) VALUES (${id}, ${requestHash}, NULL, ${expireTime})
        ON CONFLICT (id) DO NOTHING`)
  return inserted > 0
}

export async function setAnswer(tx: Tx, id: string, answer: Uint8Array): Promise<void> {
  await tx.run(sql`UPDATE request_ids SET answer = ${answer} WHERE id = ${id}`)
}

/** Deletes up to `limit` expired request IDs. Returns the number of deleted IDs. */
export async function sweepRequests(tx: Tx, now: string, limit: number): Promise<number> {
  return deleteOldest(tx, { table: 'request_ids', key: 'id' }, now, limit)
}
