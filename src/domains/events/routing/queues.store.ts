// Who serves which queue. A queue has one owner at a time, who says that it is still there by raising `beat`; others
// take over what has stood still for the length of a lease by their own clock, so no two clocks are ever compared.
import { locking } from '#db/row-locks.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

export type QueueState = {
  subscription: number
  owner: string
  beat: number
  generation: number
  /** How often in a row the sink as a whole has failed. */
  failures: number
  /** Until when nothing is sent to the sink; empty for not blocked. */
  blockedUntil: string
  /** How often somebody has said that the failures of the sink are over. */
  resets: number
  /** When there is something to do; empty for now. */
  dueTime: string
  /** The position behind which its events have not been tried; 0 if there are none. */
  behind: number
}
export type OwnedQueue = QueueState

const columns = sql`
  subscription_id AS "subscription", owner, beat, generation, failures, blocked_until AS "blockedUntil", resets,
  due_time AS "dueTime", behind`

/** What a queue has got: stored deliveries, its first event behind a position, or more events while it has a position. */
export type Got = { deliveries: number } | { behind: number } | 'more'

/** Tells the queues what they have got; those of nobody become the node's, unless their sink is blocked. */
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

/** The queues that have something to do now, and those that somebody says to be at work on. */
export function unservedQueues(reader: Reader, now: string): Promise<QueueState[]> {
  return reader.all<QueueState>(sql`
    SELECT ${columns} FROM delivery_queues
     WHERE ${open} AND (owner <> '' OR due_time <= ${now}) ORDER BY subscription_id`)
}

export function findQueue(reader: Reader, subscription: number): Promise<QueueState | undefined> {
  return reader.get<QueueState>(sql`SELECT ${columns} FROM delivery_queues WHERE subscription_id = ${subscription}`)
}

/** When one of the queues of nobody has something to do; empty for now, `undefined` for never. */
export async function nextDueTime(reader: Reader): Promise<string | undefined> {
  const row = await reader.get<{ due: string | null }>(sql`
    SELECT min(due_time) AS due FROM delivery_queues WHERE ${open} AND owner = ''`)
  return row?.due ?? undefined
}

/** Takes a queue as it was seen; `undefined` when something has happened to it since. */
export function claimQueue(tx: Tx, seen: QueueState, node: string): Promise<OwnedQueue | undefined> {
  return tx.get<OwnedQueue>(sql`
    UPDATE delivery_queues SET owner = ${node}, beat = beat + 1
     WHERE subscription_id = ${seen.subscription} AND owner = ${seen.owner} AND beat = ${seen.beat} AND paused = 0
       AND generation <> served
    RETURNING ${columns}`)
}

/**
 * Says that the node is still there. Answers with what it owns. Rows are locked by subscription, as results lock them: then
 * neither waits for a row of the other that waits for one of its own.
 */
export function beat(tx: Tx, node: string): Promise<OwnedQueue[]> {
  return tx.all<OwnedQueue>(sql`
    UPDATE delivery_queues SET beat = beat + 1
     WHERE subscription_id IN (
       SELECT subscription_id FROM delivery_queues WHERE owner = ${node} ORDER BY subscription_id ${locking(tx, 'alone')})
    RETURNING ${columns}`)
}

/** For a process that serves alone: whoever owned queues is gone. */
export async function freeAllQueues(tx: Tx): Promise<void> {
  await tx.run(sql`UPDATE delivery_queues SET owner = '' WHERE owner <> ''`)
}

/**
 * Gives a queue back: served to the end when `dueTime` is undefined, else with something to do at that time. False when
 * it has got something meanwhile, or is not the node's. `isDone` says that all its events have been tried; call `lockRouting`
 * first.
 */
export async function releaseQueue(
  tx: Tx,
  { subscription, generation, isDone }: { subscription: number; generation: number; isDone: boolean },
  node: string,
  dueTime: string | undefined,
): Promise<boolean> {
  const served = dueTime === undefined ? sql`generation` : sql`served`
  // Routing tells a paused queue nothing, so its position stays.
  const behind = isDone ? sql`CASE WHEN paused = 0 THEN 0 ELSE behind END` : sql`behind`
  const released = await tx.run(sql`
    UPDATE delivery_queues SET owner = '', served = ${served}, due_time = ${dueTime ?? ''}, behind = ${behind}
     WHERE subscription_id = ${subscription} AND owner = ${node} AND generation = ${generation}`)
  return released > 0
}

/** For whoever stops before the end; what it was about is still there for the next. */
export async function freeQueue(tx: Tx, subscription: number, node: string): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET owner = '' WHERE subscription_id = ${subscription} AND owner = ${node}`)
}

export type SinkState = { failures: number; until: string; resets: number }

/** Does nothing when it was reset since. */
export async function setSinkState(tx: Tx, subscription: number, state: SinkState): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues SET failures = ${state.failures}, blocked_until = ${state.until}
     WHERE subscription_id = ${subscription} AND resets = ${state.resets}`)
}

/** False when it was paused already. Its owner stops before the next deliveries, and then gives it back. */
export async function pauseQueue(tx: Tx, subscription: number, reason: string): Promise<boolean> {
  const paused = await tx.run(sql`
    UPDATE delivery_queues SET paused = 1, pause_reason = ${reason}
     WHERE subscription_id = ${subscription} AND paused = 0`)
  return paused > 0
}

/** Starts as if the sink had never failed. */
export async function resumeQueue(tx: Tx, subscription: number): Promise<void> {
  await tx.run(sql`
    UPDATE delivery_queues
       SET paused = 0, pause_reason = '', generation = generation + 1, resets = resets + 1, failures = 0,
           blocked_until = '', due_time = ''
     WHERE subscription_id = ${subscription}`)
}

/** The node stops: others may take its queues at once. */
export async function freeQueuesOf(tx: Tx, node: string): Promise<void> {
  await tx.run(sql`UPDATE delivery_queues SET owner = '' WHERE owner = ${node}`)
}
