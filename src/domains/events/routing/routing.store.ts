// Queries for routing events and for inserting deliveries.
import { exists } from '#db/bulk.ts'
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { type DeliveryState, deliveryStates } from './delivery-states.model.ts'

/** Fields of an event that select its subscriptions. */
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
  /** Token of the vendor whose names the subscription uses. Empty for our own names. */
  vendor: string
  /** See `QueueState`. */
  behind: number
}
/**
 * A delivery to insert. `createTime` is the time of the event, or of the request for a redelivery. `ended` is the result of the
 * first attempt.
 */
export type NewDelivery = {
  subscription: number
  event: number
  subject: string
  createTime: string
  ended?: { state: DeliveryState; nextTime: string }
}

/** Limit on the rows that one statement inserts, so that there are few different statements. */
const rowsAtOnce = 50

/**
 * Locks routing until the transaction ends. Every transaction that adds deliveries must call this first. Then deliveries become
 * visible in the order of their IDs, and readers that read in this order miss none.
 */
export async function lockRouting(tx: Tx): Promise<{ position: number }> {
  const row = await tx.get<{ position: number }>(sql`
    UPDATE events_router SET position = position WHERE id = 1 RETURNING position`)
  return row!
}

export async function anyUnrouted(reader: Reader): Promise<boolean> {
  return exists(reader, sql`FROM events_outbox WHERE position = 0`)
}

/** Oldest events that were not routed yet, in order. */
export function unroutedEvents(tx: Tx, limit: number): Promise<UnroutedEvent[]> {
  return tx.all(sql`
    SELECT id, type, audience, subject, event_group AS "group", create_time AS "createTime" FROM events_outbox
     WHERE position = 0 ORDER BY id LIMIT ${limit}`)
}

/** Assigns positions after `position` to events. `ids` must be in order. Positions can be skipped, but are never used twice. */
export async function orderEvents(tx: Tx, position: number, ids: readonly number[]): Promise<void> {
  const [first, last] = [ids[0]!, ids.at(-1)!]
  await tx.run(sql`UPDATE events_outbox SET position = ${position + 1 - first} + id WHERE id IN (${list(ids)})`)
  await tx.run(sql`UPDATE events_router SET position = ${position + 1 + last - first} WHERE id = 1`)
}

/**
 * Subscriptions of these groups. Paused subscriptions with a position are left out, because new events come after this position
 * anyway.
 */
export function subscribersAt(tx: Tx, groups: readonly string[]): Promise<Subscriber[]> {
  return tx.all(sql`
    SELECT s.id, s.uid, s.parent_uid AS "group", s.types, s.vendor, q.behind
      FROM subscriptions s JOIN delivery_queues q ON q.subscription_id = s.id
     WHERE s.parent_uid IN (${list(groups)}) AND (q.behind = 0 OR q.paused = 0)`)
}

/** Inserts deliveries in the given order, with consecutive numbers. Returns the first number. Call `lockRouting` first. */
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
