import { list, sql, type Tx } from '#db/sql.ts'

/**
 * Deletes at most `limit` old events, and returns the number of deleted events. Keeps the newest event, because SQLite would use
 * its number again.
 */
export async function sweepEvents(tx: Tx, before: string, limit: number): Promise<number> {
  return tx.run(sql`
    DELETE FROM events_outbox WHERE id IN (
      SELECT id FROM events_outbox WHERE create_time < ${before} AND position <> 0
         AND id < (SELECT max(id) FROM events_outbox) ORDER BY create_time, id LIMIT ${limit})`)
}

/** Deletes old deliveries. The oldest rows have the lowest IDs, so only the first `limit` rows are read. */
export async function sweepDeliveries(tx: Tx, before: string, limit: number): Promise<number> {
  const rows = await tx.all<{ id: number; createTime: string }>(sql`
    SELECT id, create_time AS "createTime" FROM deliveries ORDER BY id LIMIT ${limit}`)
  return remove(
    tx,
    rows.filter(({ createTime }) => createTime < before).map(({ id }) => id),
  )
}

/** Deletes deliveries of deleted subscriptions. Deletes their queues after the last delivery. */
export async function sweepDeleted(tx: Tx, limit: number): Promise<number> {
  const queue = await tx.get<{ subscription: number }>(sql`
    SELECT subscription_id AS "subscription" FROM delivery_queues WHERE deleted = 1 ORDER BY subscription_id LIMIT 1`)
  if (!queue) return 0
  const { subscription } = queue
  const rows = await tx.all<{ id: number }>(sql`
    SELECT id FROM deliveries WHERE subscription_id = ${subscription} ORDER BY id LIMIT ${limit}`)
  if (rows.length > 0)
    return remove(
      tx,
      rows.map(({ id }) => id),
    )
  return tx.run(sql`DELETE FROM delivery_queues WHERE subscription_id = ${subscription}`)
}

/**
 * Keeps the newest `keep` delivered and the newest `keep` given-up deliveries of a subscription. Deletes at most `limit` of each,
 * the oldest first. Returns the number of deleted deliveries.
 */
export async function trimDeliveries(tx: Tx, subscription: number, keep: number, limit: number): Promise<number> {
  let removed = 0
  for (const state of [1, 2]) {
    const mine = sql`subscription_id = ${subscription} AND state = ${state}`
    const rows = await tx.all<{ id: number }>(sql`
      SELECT id FROM deliveries
       WHERE ${mine} AND id <= (SELECT id FROM deliveries WHERE ${mine} ORDER BY id DESC LIMIT 1 OFFSET ${keep})
       ORDER BY id LIMIT ${limit}`)
    removed += await remove(
      tx,
      rows.map(({ id }) => id),
    )
  }
  return removed
}

async function remove(tx: Tx, ids: readonly number[]): Promise<number> {
  if (ids.length === 0) return 0
  await tx.run(sql`DELETE FROM delivery_attempts WHERE delivery_id IN (${list(ids)})`)
  return tx.run(sql`DELETE FROM deliveries WHERE id IN (${list(ids)})`)
}
