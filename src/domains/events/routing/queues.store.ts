// Ownership of queues. A queue has one owner at a time, which renews its lease by raising `beat`. Other nodes take over a queue
// whose `beat` has not changed for the length of a lease by their own clock, so clocks are never compared.
import { locking } from '#db/row-locks.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

export type QueueState = {
  subscription: number
  owner: string
  beat: number
  generation: number
  /** Number of consecutive failures of the sink as a whole. */
  failures: number
  /** Time until which nothing is sent to the sink. Empty if it is not blocked. */
  blockedUntil: string
  /** Number of resets of the sink's failures. */
  resets: number
  /** Time at which there is work. Empty for now. */
  dueTime: string
  /** Position after which its events have not been tried. 0 if there are none. */
  behind: number
}
export type OwnedQueue = QueueState

const columns = sql`
  subscription_id AS "subscription", owner, beat, generation, failures, blocked_until AS "blockedUntil", resets,
  due_time AS "dueTime", behind`

/** Additions to a queue: stored deliveries, its first event after a position, or more events while it has a position. */
export type Got = { deliveries: number } | { behind: number } | 'more'

/** Notifies queues of additions. The node takes those without an owner, unless their sink is blocked. */
export function bumpQueues(
  tx: Tx,
  subscriptions: readonly number[],
  got: Got,
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

/** Queues that have work now, and queues with an owner. */
export function unservedQueues(reader: Reader, now: string): Promise<QueueState[]> {
  return reader.all<QueueState>(sql`
    SELECT ${columns} FROM delivery_queues
     WHERE ${open} AND (owner <> '' OR due_time <= ${now}) ORDER BY subscription_id`)
}

export function findQueue(reader: Reader, subscription: number): Promise<QueueState | undefined> {
  return reader.get<QueueState>(sql`SELECT ${columns} FROM delivery_queues WHERE subscription_id = ${subscription}`)
}

/** Time at which a queue without an owner has work. Empty for now, undefined for never. */
export async function nextDueTime(reader: Reader): Promise<string | undefined> {
  const row = await reader.get<{ due: string | null }>(sql`
    SELECT min(due_time) AS due FROM delivery_queues WHERE ${open} AND owner = ''`)
  return row?.due ?? undefined
}

/** Takes a queue in the state in which it was read. Undefined if it has changed since. */
export function claimQueue(tx: Tx, seen: QueueState, node: string): Promise<OwnedQueue | undefined> {
  return tx.get<OwnedQueue>(sql`
    UPDATE delivery_queues SET owner = ${node}, beat = beat + 1
     WHERE subscription_id = ${seen.subscription} AND owner = ${seen.owner} AND beat = ${seen.beat} AND paused = 0
       AND generation <> served
    RETURNING ${columns}`)
}

/**
 * Renews the leases of the node, and returns its queues. Locks rows in order of the subscription, as results do, so that the two
 * do not deadlock.
 */
export function beat(tx: Tx, node: string): Promise<OwnedQueue[]> {
  return tx.all<OwnedQueue>(sql`
    UPDATE delivery_queues SET beat = beat + 1
     WHERE subscription_id IN (
       SELECT subscription_id FROM delivery_queues WHERE owner = ${node} ORDER BY subscription_id ${locking(tx, 'alone')})
    RETURNING ${columns}`)
}

/** Removes the owners of all queues, for the only process of a database: former owners have stopped. */
export async function freeAllQueues(tx: Tx): Promise<void> {
  await tx.run(sql`UPDATE delivery_queues SET owner = '' WHERE owner <> ''`)
}

/**
 * Releases a queue: completely served if `dueTime` is undefined, else with work at that time. Returns false if the queue got
 * additions meanwhile, or is not the node's. `isDone` means that all its events have been tried; call `lockRouting` first.
 */
export async function releaseQueue(
  tx: Tx,
  { subscription, generation, isDone }: { subscription: number; generation: number; isDone: boolean },
  node: string,
  dueTime: string | undefined,
): Promise<boolean> {
  const served = dueTime === undefined ? sql`generation` : sql`served`
  // Routing does not notify a paused queue, so its position stays.
  const behind = isDone ? sql`CASE WHEN paused = 0 THEN 0 ELSE behind END` : sql`behind`
  const released = await tx.run(sql`
    UPDATE delivery_queues SET owner = '', served = ${served}, due_time = ${dueTime ?? ''}, behind = ${behind}
     WHERE subscription_id = ${subscription} AND owner = ${node} AND generation = ${generation}`)
  return released > 0
}

/** Releases a queue with unfinished work, which the next owner continues. */
export async function freeQueue(tx: Tx, subscription: number, node: string): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET owner = '' WHERE subscription_id = ${subscription} AND owner = ${node}`)
}

export type SinkState = { failures: number; until: string; resets: number }

/** Stores the state of the sink. Does nothing if it was reset since. */
export async function setSinkState(tx: Tx, subscription: number, state: SinkState): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET failures = ${state.failures}, blocked_until = ${state.until}
     WHERE subscription_id = ${subscription} AND resets = ${state.resets}`)
}

/** Pauses a queue. Returns false if it was paused already. Its owner stops before the next deliveries, and then releases it. */
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

/** Releases the queues of a node that stops, so that others can take them at once. */
export async function freeQueuesOf(tx: Tx, node: string): Promise<void> {
  await tx.run(sql`UPDATE delivery_queues SET owner = '' WHERE owner = ${node}`)
}
