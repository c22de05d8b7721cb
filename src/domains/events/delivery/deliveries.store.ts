// Deliveries and settings of subscriptions, as the API reads and changes them.
import { countRows } from '#db/bulk.ts'
import { join, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import {
  type AttemptResult,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryState,
  deliveryUid,
  type Settings,
} from './deliveries.model.ts'
import type { Target } from './sending.store.ts'

/** Data of a subscription that services need but answers do not contain. */
export type Subscriber = {
  id: number
  uid: string
  group: string
  types: readonly string[]
  /** Vendor whose names are used in the events. Empty for our own names. */
  vendor: string
  secretShown: boolean
  /** See `QueueState`. */
  behind: number
}
export type Found = { settings: Settings; subscriber: Subscriber }

type SettingsRow = Omit<Settings, 'types' | 'paused'> & {
  id: number
  group: string
  types: string
  vendor: string
  paused: number
  secretShown: number
  behind: number
}

export async function findSettings(reader: Reader, uid: string): Promise<Found | undefined> {
  const row = await reader.get<SettingsRow>(sql`
    SELECT s.id, s.uid, s.parent_uid AS "group", s.types, s.vendor, s.secret_shown AS "secretShown",
           s.old_secret_time AS "oldSecretExpireTime", q.paused, q.pause_reason AS "pauseReason", q.failures,
           q.blocked_until AS "blockedUntil", q.behind,
           coalesce((SELECT o.create_time FROM events_outbox o
                      WHERE q.behind > 0 AND o.position > q.behind AND o.position > 0 ORDER BY o.position LIMIT 1),
                    '') AS "behindTime",
           (SELECT count(*) FROM deliveries d WHERE d.subscription_id = s.id AND d.state = 0) AS waiting,
           (SELECT count(*) FROM deliveries d WHERE d.subscription_id = s.id AND d.state = 2) AS "givenUp"
      FROM subscriptions s JOIN delivery_queues q ON q.subscription_id = s.id
     WHERE s.uid = ${uid}`)
  if (!row) return undefined
  const { id, group, vendor, secretShown, behind, ...shown } = row
  const types = JSON.parse(row.types) as string[]
  return {
    settings: { ...shown, types, paused: row.paused === 1 },
    subscriber: { id, uid, group, types, vendor, secretShown: secretShown === 1, behind },
  }
}

export async function setTypes(tx: Tx, subscription: number, types: readonly string[]): Promise<void> {
  await tx.run(sql`UPDATE subscriptions SET types = ${JSON.stringify(types)} WHERE id = ${subscription}`)
}

/** Sets the secret. `keepUntil` is the expiry time of the previous secret. It is empty if the previous secret expires at once. */
export async function setSecret(tx: Tx, subscription: number, secret: Uint8Array, keepUntil: string): Promise<void> {
  const old = keepUntil === '' ? sql`NULL` : sql`secret`
  await tx.run(sql`
    UPDATE subscriptions SET old_secret = ${old}, old_secret_time = ${keepUntil}, secret = ${secret}, secret_shown = 1
     WHERE id = ${subscription}`)
}

/** Target of a subscription. Paused subscriptions have a target too. */
export async function findTargetOf(reader: Reader, subscription: number): Promise<Target | undefined> {
  return reader.get<Target>(sql`
    SELECT uid, parent_uid AS "group", sink, types, vendor, secret, old_secret AS "oldSecret", old_secret_time AS "oldSecretTime"
      FROM subscriptions WHERE id = ${subscription}`)
}

type Row = {
  id: number
  event: number
  state: DeliveryState
  subject: string
  attemptCount: number
  nextTime: string
  createTime: string
  eventId: string | null
  type: string | null
  result: AttemptResult | null
  status: number | null
  durationMs: number | null
  attemptTime: string | null
}

const columns = sql`
  d.id, d.event_id AS "event", d.state, d.subject, d.attempts AS "attemptCount", d.next_time AS "nextTime",
  d.create_time AS "createTime", o.uuid AS "eventId", o.type, a.result, a.status, a.duration_ms AS "durationMs",
  a.create_time AS "attemptTime"`
const joins = sql`
  LEFT JOIN events_outbox o ON o.id = d.event_id
  LEFT JOIN delivery_attempts a ON a.id = (SELECT max(b.id) FROM delivery_attempts b WHERE b.delivery_id = d.id)`

function fromRow(subscription: string, row: Row): Delivery {
  const { result, status, durationMs, attemptTime } = row
  return {
    uid: deliveryUid(subscription, row.id),
    event: row.event,
    state: row.state,
    eventId: row.eventId ?? '',
    type: row.type ?? '',
    subject: row.subject,
    attemptCount: row.attemptCount,
    nextAttemptTime: row.state === 0 ? row.nextTime : '',
    lastAttempt:
      result === null ? undefined : { result, status: status!, durationMs: durationMs!, createTime: attemptTime! },
    createTime: row.createTime,
  }
}

type SubscriptionKey = { id: number; uid: string }

/** One page of deliveries, and one more row. */
export async function listDeliveries(
  reader: Reader,
  { id, uid }: SubscriptionKey,
  page: Page,
  state: DeliveryState | undefined,
  after: number | undefined,
): Promise<Delivery[]> {
  const dir = page.order.desc ? sql`DESC` : sql`ASC`
  const past = page.order.desc ? sql`<` : sql`>`
  const from = after === undefined ? [] : [sql`id ${past} ${after}`]
  const rows = await reader.all<Row>(sql`
    SELECT ${columns}
      FROM (SELECT * FROM deliveries WHERE ${join([...conditions(id, state), ...from], ' AND ')}
             ORDER BY id ${dir} LIMIT ${page.size + 1} OFFSET ${page.skip}) AS d
           ${joins}
     ORDER BY d.id ${dir}`)
  return rows.map((row) => fromRow(uid, row))
}

export async function countDeliveries(reader: Reader, id: number, state: DeliveryState | undefined): Promise<number> {
  return countRows(reader, sql`FROM deliveries WHERE ${join(conditions(id, state), ' AND ')}`)
}

function conditions(subscription: number, state: DeliveryState | undefined): Sql[] {
  const mine = sql`subscription_id = ${subscription}`
  return state === undefined ? [mine] : [mine, sql`state = ${state}`]
}

/** Deliveries with these IDs, in no particular order. Missing deliveries are left out. */
export async function findDeliveries(
  reader: Reader,
  { id, uid }: SubscriptionKey,
  ids: readonly number[],
): Promise<Delivery[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM deliveries d ${joins} WHERE d.id IN (${list(ids)}) AND d.subscription_id = ${id}`)
  return rows.map((row) => fromRow(uid, row))
}

/** Latest attempts of a delivery, the oldest first. */
export async function attemptsOf(reader: Reader, delivery: number, limit: number): Promise<DeliveryAttempt[]> {
  const rows = await reader.all<DeliveryAttempt>(sql`
    SELECT result, status, duration_ms AS "durationMs", create_time AS "createTime" FROM delivery_attempts
     WHERE delivery_id = ${delivery} ORDER BY id DESC LIMIT ${limit}`)
  return rows.reverse()
}

/** A position before all events from `time` on. */
export async function positionBefore(reader: Reader, time: string): Promise<number> {
  const row = await reader.get<{ position: number }>(sql`
    SELECT position FROM events_outbox WHERE create_time < ${time} ORDER BY create_time DESC, id DESC LIMIT 1`)
  return Math.max(row?.position ?? 0, 0)
}

export type OrderedEvent = {
  id: number
  position: number
  type: string
  audience: string
  subject: string
  group: string
  createTime: string
}

export const orderedColumns = sql`
  id, position, type, audience, subject, event_group AS "group", create_time AS "createTime"`

/** Events after a position, in the global order. */
export function eventsAfter(reader: Reader, position: number, limit: number): Promise<OrderedEvent[]> {
  return reader.all(sql`
    SELECT ${orderedColumns}
      FROM events_outbox WHERE position > ${position} AND position > 0 ORDER BY position LIMIT ${limit}`)
}

/** Stores the result of a test event. The delivery is never pending, so no server sends the test event again. */
export async function storeTestResult(tx: Tx, id: number, state: DeliveryState): Promise<void> {
  await tx.run(sql`UPDATE deliveries SET state = ${state}, attempts = 1 WHERE id = ${id}`)
}
