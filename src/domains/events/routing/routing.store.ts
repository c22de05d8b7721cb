// Reads and writes of routing, and the insertion of deliveries.
import { exists } from '#db/bulk.ts'
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { type DeliveryState, deliveryStates } from './delivery-states.model.ts'

/** What of an event decides who gets it. */
export type UnroutedEvent = {
  id: number
  type: string
  audience: string
  subject: string
  group: string
  createTime: string
}
export type Subscriber = {
  id: number
  uid: string
  group: string
  types: string
  /** The token of whose names it uses; empty for ours. */
  vendor: string
  /** See `QueueState`. */
  behind: number
}
/** `createTime` is that of the event, or of whoever asked for it once more. `ended` is how its first attempt ended. */
export type NewDelivery = {
  subscription: number
  event: number
  subject: string
  createTime: string
  ended?: { state: DeliveryState; nextTime: string }
}

/** How many rows one statement inserts, so that there are not too many different statements. */
const rowsAtOnce = 50

/**
 * Waits until nobody else routes, and then keeps others waiting until the transaction ends. Whatever adds deliveries does
 * this first: then their ids grow in the order in which they can be seen, and no reader that goes by them misses one.
 */
export async function lockRouting(tx: Tx): Promise<{ position: number }> {
  const row = await tx.get<{ position: number }>(sql`
    UPDATE events_router SET position = position WHERE id = 1 RETURNING position`)
  return row!
}

export async function anyUnrouted(reader: Reader): Promise<boolean> {
  return exists(reader, sql`FROM events_outbox WHERE position = 0`)
}

/** The oldest events that have not been routed, in order. */
export function unroutedEvents(tx: Tx, limit: number): Promise<UnroutedEvent[]> {
  return tx.all(sql`
    SELECT id, type, audience, subject, event_group AS "group", create_time AS "createTime" FROM events_outbox
     WHERE position = 0 ORDER BY id LIMIT ${limit}`)
}

/** Gives each its position behind `position`; `ids` are in order. Positions may be left out, but none is given twice. */
export async function orderEvents(tx: Tx, position: number, ids: readonly number[]): Promise<void> {
  const [first, last] = [ids[0]!, ids.at(-1)!]
  await tx.run(sql`UPDATE events_outbox SET position = ${position + 1 - first} + id WHERE id IN (${list(ids)})`)
  await tx.run(sql`UPDATE events_router SET position = ${position + 1 + last - first} WHERE id = 1`)
}

/** Subscriptions of these groups. Paused ones that are behind are left out: their position says all. */
export function subscribersAt(tx: Tx, groups: readonly string[]): Promise<Subscriber[]> {
  return tx.all(sql`
    SELECT s.id, s.uid, s.parent_uid AS "group", s.types, s.vendor, q.behind
      FROM subscriptions s JOIN delivery_queues q ON q.subscription_id = s.id
     WHERE s.parent_uid IN (${list(groups)}) AND (q.behind = 0 OR q.paused = 0)`)
}

/** In the order given, with numbers that follow each other; answers with the first. Call `lockRouting` first. */
export async function insertDeliveries(tx: Tx, deliveries: readonly NewDelivery[]): Promise<number> {
  if (deliveries.length === 0) return 0
  const row = await tx.get<{ last: number }>(sql`
    UPDATE events_router SET deliveries = deliveries + ${deliveries.length} WHERE id = 1 RETURNING deliveries AS "last"`)
  const first = row!.last - deliveries.length + 1
  for (let done = 0; done < deliveries.length; done += rowsAtOnce) {
    const rows = deliveries.slice(done, done + rowsAtOnce).map((one, i) => {
      const { subscription, event, subject, createTime, ended } = one
      const { state, nextTime } = ended ?? { state: deliveryStates.waiting, nextTime: '' }
      return sql`(${first + done + i}, ${subscription}, ${event}, ${subject}, ${state}, ${ended ? 1 : 0}, ${nextTime},
                  ${createTime})`
    })
    await tx.run(sql`
      INSERT INTO deliveries (id, subscription_id, event_id, subject, state, attempts, next_time, create_time)
      VALUES ${join(rows, ', ')}`)
  }
  return first
}
