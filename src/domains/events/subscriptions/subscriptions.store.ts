import { allOf } from '#db/bulk.ts'
import { addToLists, countAt } from '#db/listing.ts'
import { nodeTable } from '#db/node-table.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { Subscription } from './subscriptions.model.ts'

const columns = sql`t.uid, t.sink, t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'subscriptions'
const nodes = nodeTable(
  { table: kind, columns, sorted: ['create_time', 'update_time'], filters: {} },
  (row: Subscription) => row,
)

export const { list: subscriptionList, find: findSubscription } = nodes

/** Number of subscriptions of the organization. Call `lockRouting` first, so that no other transaction adds a subscription. */
export async function countOf(reader: Reader, organization: string): Promise<number> {
  return countAt(reader, kind, [organization])
}

/** Sinks of subscriptions. Missing subscriptions are left out. */
export function sinksOf(reader: Reader, uids: readonly string[]): Promise<{ uid: string; sink: string }[]> {
  return allOf(reader, uids, (some) => sql`SELECT uid, sink FROM subscriptions WHERE uid IN (${list(some)})`)
}

/** Number of subscriptions of the organization with this sink. */
export async function countOfSink(reader: Reader, organization: string, sink: string): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM subscriptions
     WHERE substr(sink, 1, 200) = substr(${sink}, 1, 200) AND sink = ${sink}
       AND uid > ${`${organization}/`} AND uid < ${`${organization}0`}`)
  return row?.total ?? 0
}

/**
 * Inserts a subscription. `secret` is encrypted. `vendor` is the vendor whose names the events use, or empty for our own names.
 * Call `lockRouting` first.
 */
export async function insertSubscription(tx: Tx, one: Subscription, secret: Uint8Array, vendor: string): Promise<void> {
  const row = await tx.get<{ id: number }>(sql`
    UPDATE events_router SET subscriptions = subscriptions + 1 WHERE id = 1 RETURNING subscriptions AS id`)
  const { id } = row!
  await tx.run(sql`
    INSERT INTO subscriptions (id, uid, parent_uid, sink, secret, vendor, create_time, update_time)
    VALUES (${id}, ${one.uid}, ${parentOf(one.uid)}, ${one.sink}, ${secret}, ${vendor}, ${one.createTime}, ${one.updateTime})`)
  await tx.run(sql`INSERT INTO delivery_queues (subscription_id) VALUES (${id})`)
  await addToLists(tx, kind, one.uid, id, nodes.keysOf(one))
}

/**
 * Deletes a subscription. A background job deletes its deliveries, which are not sent any more. Returns false if the subscription
 * was deleted already.
 */
export async function deleteSubscription(tx: Tx, one: Subscription): Promise<boolean> {
  await tx.run(sql`
    UPDATE delivery_queues SET deleted = 1, served = generation, owner = ''
     WHERE subscription_id IN (SELECT id FROM subscriptions WHERE uid = ${one.uid})`)
  return nodes.delete(tx, one)
}
