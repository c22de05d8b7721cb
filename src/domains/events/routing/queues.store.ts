// Ownership of queues. A queue has one owner at a time, which renews its lease by increasing `beat`. If `beat` does not change
// for the duration of a lease, another server takes the queue. Each server measures this time by its own clock, so clocks of
// servers are never compared.
import { locking } from '#db/row-locks.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

export type QueueState = {
  subscription: number
  owner: string
  beat: number
  generation: number
  /** Number of consecutive failures of the sink. */
  failures: number
  /** Time until which the sink gets no deliveries. Empty if the sink is not blocked. */
  blockedUntil: string
  /** Number of times that the failures of the sink were reset. */
  resets: number
  /** Time at which the queue has work. Empty if the queue has work now. */
  dueTime: string
  /** Events after this position were not tried. 0 if there are no such events. */
  behind: number
}
export type OwnedQueue = QueueState

const columns = sql`
  subscription_id AS "subscription", owner, beat, generation, failures, blocked_until AS "blockedUntil", resets,
  due_time AS "dueTime", behind`

/**
 * Addition to a queue. `deliveries`: number of stored deliveries. `behind`: position before the first untried event. `more`: more
 * events for a queue that has a position already.
 */
export type QueueAddition = { deliveries: number } | { behind: number } | 'more'

/** Reports additions to queues. The server takes queues without an owner, except queues whose sink is blocked. */
export function bumpQueues(
  tx: Tx,
  subscriptions: readonly number[],
  got: QueueAddition,
  node: string,
  now: string,
): Promise<OwnedQueue[]> {
  const change =
    got === 'more'
      ? sql`behind = behind`
      : 'behind' in got
        ? sql`behind = ${got.behind}`
        : sql`room = room - ${got.deliveries}`
  const free = sql`owner = '' AND paused = 0 AND blocked_until <= ${now}`
  return tx.all<OwnedQueue>(sql`
    UPDATE delivery_queues
       SET generation = generation + 1, due_time = blocked_until, ${change},
           beat = CASE WHEN ${free} THEN beat + 1 ELSE beat END,
           owner = CASE WHEN ${free} THEN ${node} ELSE owner END
     WHERE subscription_id IN (${list(subscriptions)}) AND deleted = 0
    RETURNING ${columns}`)
}

const open = sql`generation <> served AND paused = 0`

/**
 * Locks queues in the order of their subscriptions. Each transaction that changes several queues locks them first, in this order,
 * so that two of them do not deadlock.
 */
export async function lockQueues(tx: Tx, subscriptions: readonly number[]): Promise<void> {
  if (subscriptions.length < 2) return
  await tx.all(sql`
    SELECT 1 AS found FROM delivery_queues WHERE subscription_id IN (${list(subscriptions)})
     ORDER BY subscription_id ${locking(tx, 'alone')}`)
}

/** Queues that have work now, and queues with an owner. */
export function unservedQueues(reader: Reader, now: string): Promise<QueueState[]> {
  return reader.all<QueueState>(sql`
    SELECT ${columns} FROM delivery_queues
     WHERE ${open} AND (owner <> '' OR due_time <= ${now}) ORDER BY subscription_id`)
}

export function findQueue(reader: Reader, subscription: number): Promise<QueueState | undefined> {
  return reader.get<QueueState>(sql`SELECT ${columns} FROM delivery_queues WHERE subscription_id = ${subscription}`)
}

/** Earliest time at which a queue without an owner has work. Empty if a queue has work now. Undefined if no queue has work. */
export async function nextDueTime(reader: Reader): Promise<string | undefined> {
  const row = await reader.get<{ due: string | null }>(sql`
    SELECT min(due_time) AS due FROM delivery_queues WHERE ${open} AND owner = ''`)
  return row?.due ?? undefined
}

/** Takes a queue. Returns undefined if the queue has changed since it was read. */
export function claimQueue(tx: Tx, seen: QueueState, node: string): Promise<OwnedQueue | undefined> {
  return tx.get<OwnedQueue>(sql`
    UPDATE delivery_queues SET owner = ${node}, beat = beat + 1
     WHERE subscription_id = ${seen.subscription} AND owner = ${seen.owner} AND beat = ${seen.beat} AND paused = 0
       AND generation <> served
    RETURNING ${columns}`)
}

/**
 * Renews the leases of the server, and returns its queues. Locks rows in the order of subscriptions, as `lockQueues` does.
 */
export function beat(tx: Tx, node: string): Promise<OwnedQueue[]> {
  return tx.all<OwnedQueue>(sql`
    UPDATE delivery_queues SET beat = beat + 1
     WHERE subscription_id IN (
       SELECT subscription_id FROM delivery_queues WHERE owner = ${node} ORDER BY subscription_id ${locking(tx, 'alone')})
    RETURNING ${columns}`)
}

/**
 * Removes the owners of all queues. Called if this process is the only one that uses the database, so all former owners have
 * stopped.
 */
export async function freeAllQueues(tx: Tx): Promise<void> {
  await tx.run(sql`UPDATE delivery_queues SET owner = '' WHERE owner <> ''`)
}

/**
 * Releases a queue. `dueTime` is the time at which the queue has work again, or undefined if all is sent. Returns false if the
 * queue got additions in the meantime, or if the server does not own it. `isDone` states that all events were tried. Then call
 * `lockRouting` first.
 */
export async function releaseQueue(
  tx: Tx,
  { subscription, generation, isDone }: { subscription: number; generation: number; isDone: boolean },
  node: string,
  dueTime: string | undefined,
): Promise<boolean> {
  const served = dueTime === undefined ? sql`generation` : sql`served`
  // Routing does not report events to a paused queue, so the position of the queue must stay.
  const behind = isDone ? sql`CASE WHEN paused = 0 THEN 0 ELSE behind END` : sql`behind`
  const released = await tx.run(sql`
    UPDATE delivery_queues SET owner = '', served = ${served}, due_time = ${dueTime ?? ''}, behind = ${behind}
     WHERE subscription_id = ${subscription} AND owner = ${node} AND generation = ${generation}`)
  return released > 0
}

/** Releases a queue with unfinished work, so that the next owner continues the work. */
export async function freeQueue(tx: Tx, subscription: number, node: string): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET owner = '' WHERE subscription_id = ${subscription} AND owner = ${node}`)
}

export type SinkState = { failures: number; until: string; resets: number }

/** Stores the state of the sink. Does nothing if the failures were reset in the meantime. */
export async function setSinkState(tx: Tx, subscription: number, state: SinkState): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET failures = ${state.failures}, blocked_until = ${state.until}
     WHERE subscription_id = ${subscription} AND resets = ${state.resets}`)
}

/**
 * Pauses a queue. Returns false if the queue was paused already. The owner stops before the next deliveries, and then releases
 * the queue.
 */
export async function pauseQueue(tx: Tx, subscription: number, reason: string): Promise<boolean> {
  const paused = await tx.run(sql`
    UPDATE delivery_queues SET paused = 1, pause_reason = ${reason}
     WHERE subscription_id = ${subscription} AND paused = 0`)
  return paused > 0
}

/** Resumes a queue, and resets the failures of its sink. */
export async function resumeQueue(tx: Tx, subscription: number): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues
       SET paused = 0, pause_reason = '', generation = generation + 1, resets = resets + 1, failures = 0,
           blocked_until = '', due_time = ''
     WHERE subscription_id = ${subscription}`)
}

/** Releases all queues of a server that stops, so that other servers can take them at once. */
export async function freeQueuesOf(tx: Tx, node: string): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET owner = ''
     WHERE subscription_id IN (
       SELECT subscription_id FROM delivery_queues WHERE owner = ${node} ORDER BY subscription_id ${locking(tx, 'alone')})`)
}
