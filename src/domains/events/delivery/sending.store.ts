// Queries for the server that owns a queue: pending deliveries, targets and results.
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { AttemptResult, DeliveryState, Payload, Waiting } from './deliveries.model.ts'

const waiting = sql`
  id, 0 AS "position", event_id AS "event", subject, attempts, next_time AS "nextTime", create_time AS "createTime"`

/** Pending deliveries after `after`, in order. */
export function scanWaiting(reader: Reader, subscription: number, after: number, limit: number): Promise<Waiting[]> {
  return reader.all<Waiting>(sql`
    SELECT ${waiting} FROM deliveries
     WHERE subscription_id = ${subscription} AND state = 0 AND id > ${after} ORDER BY id LIMIT ${limit}`)
}

/** Pending deliveries of one subject, up to `upTo`. */
export function scanSubject(
  reader: Reader,
  { subscription, subject, after, upTo }: { subscription: number; subject: string; after: number; upTo: number },
  limit: number,
): Promise<Waiting[]> {
  return reader.all<Waiting>(sql`
    SELECT ${waiting} FROM deliveries
     WHERE subscription_id = ${subscription} AND subject = ${subject} AND state = 0 AND id > ${after} AND id <= ${upTo}
     ORDER BY id LIMIT ${limit}`)
}

export type Target = {
  uid: string
  group: string
  sink: string
  /** Types of the subscription as JSON. */
  types: string
  /** Vendor whose names are used in the events. Empty for our own names. */
  vendor: string
  secret: Uint8Array
  oldSecret: Uint8Array | null
  /** Time at which the old secret expires. Until then, both secrets sign requests. */
  oldSecretTime: string
}

const target = sql`
  s.uid, s.parent_uid AS "group", s.sink, s.types, s.vendor, s.secret, s.old_secret AS "oldSecret", s.old_secret_time AS "oldSecretTime"`

/** Target of a queue. Undefined if the server does not own the queue any more, or if the queue is paused. */
export async function findTarget(reader: Reader, subscription: number, node: string): Promise<Target | undefined> {
  return reader.get<Target>(sql`
    SELECT ${target} FROM delivery_queues q JOIN subscriptions s ON s.id = q.subscription_id
     WHERE q.subscription_id = ${subscription} AND q.owner = ${node} AND q.paused = 0`)
}

/** Events with these IDs. Expired events are missing. */
export async function findPayloads(reader: Reader, events: readonly number[]): Promise<Payload[]> {
  return reader.all<Payload>(sql`
    SELECT id, uuid, type, audience, source, subject, event_group AS "group", actor, body_type AS "bodyType", body,
           extensions, create_time AS "createTime"
      FROM events_outbox WHERE id IN (${list(events)})`)
}

export async function markDelivered(tx: Tx, ids: readonly number[]): Promise<void> {
  await tx.run(sql`
    UPDATE deliveries SET state = 1, attempts = attempts + 1, next_time = '' WHERE id IN (${list(ids)})`)
}

export async function markFailed(tx: Tx, id: number, state: DeliveryState, nextTime: string): Promise<void> {
  await tx.run(sql`
    UPDATE deliveries SET state = ${state}, attempts = attempts + 1, next_time = ${nextTime}
     WHERE id = ${id} AND state = 0`)
}

/**
 * Gives up at most `limit` old deliveries that were not tried because their sink failed, the oldest first. Returns the number of
 * given-up deliveries.
 */
export async function giveUpOlderThan(tx: Tx, subscription: number, time: string, limit: number): Promise<number> {
  return tx.run(sql`
    UPDATE deliveries SET state = 2, next_time = ''
     WHERE id IN (SELECT id FROM (
       SELECT id, create_time FROM deliveries
        WHERE subscription_id = ${subscription} AND state = 0 ORDER BY id LIMIT ${limit}) AS oldest
        WHERE create_time <= ${time})`)
}

export type NewAttempt = {
  delivery: number
  result: AttemptResult
  status: number
  durationMs: number
  createTime: string
}

export async function insertAttempts(tx: Tx, attempts: readonly NewAttempt[]): Promise<void> {
  const rows = attempts.map(({ delivery, result, status, durationMs, createTime }) => {
    return sql`(${delivery}, ${result}, ${status}, ${durationMs}, ${createTime})`
  })
  await tx.run(sql`
    INSERT INTO delivery_attempts (delivery_id, result, status, duration_ms, create_time) VALUES ${join(rows, ', ')}`)
}

/** Row that a transaction inserts: a delivery with its first attempt, or an attempt that started at `attemptTime`. */
export type Proof = { delivery: number; subscription: number; event: number; attemptTime: string | undefined }

/** True if the row exists. A delivery without attempts does not match, because it can be a replay with the same ID. */
export async function isStored(
  reader: Reader,
  { delivery, subscription, event, attemptTime }: Proof,
): Promise<boolean> {
  const attempt = sql`
    AND EXISTS (SELECT 1 FROM delivery_attempts WHERE delivery_id = ${delivery} AND create_time = ${attemptTime ?? ''})`
  const row = await reader.get(sql`
    SELECT 1 AS found FROM deliveries
     WHERE id = ${delivery} AND subscription_id = ${subscription} AND event_id = ${event} AND attempts > 0
       ${attemptTime === undefined ? sql`` : attempt}`)
  return row !== undefined
}
