// Transactions that are retried on conflict, each on one connection.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { changesOf, type createCommits } from '../changes.ts'
import type { createGuard, Outcome } from '../guard.ts'
import { type Change, retriedCommands, type Sql, type Tx, type TxOptions } from '../sql.ts'
import type { Connections } from './connections.ts'
import { LockFull, type Turn } from './lock-limits.ts'
import { codeOf, type TimeLimit } from './send.ts'

/** Retries on conflict, which wait for 2.5 s at most. With 12, transactions of two busy servers on the same rows could fail. */
const conflictRetries = 24
const constraintRetries = 3
const patience = 6

/**
 * Sends the statement after all earlier ones of its transaction. If `needs` rejects, sends nothing and rejects with the same
 * error.
 */
type Send = (config: pg.QueryConfig, needs?: Promise<unknown>) => Promise<pg.QueryResult>
type TxWork<T> = (tx: Tx) => Promise<T>
/** `command` is the command of the first failed statement. */
type Attempted<T> = { outcome: Outcome<T>; changes: ReadonlySet<Change>; command: Command | undefined }
type Command = (typeof retriedCommands)[number]

type Parts = {
  send: Connections['send']
  toQuery(query: Sql): pg.QueryConfig
  guard: ReturnType<typeof createGuard>
  commits: ReturnType<typeof createCommits>
  counts: { commits: number; retries: number; again: Map<string, number> }
}

/**
 * Runs a transaction, and retries it on conflicts. Throws all other errors. Throws Crowded if the transaction has to wait for a
 * lock without a connection.
 */
export function createTransactions(parts: Parts) {
  const { commits, counts } = parts
  const turns = createRetryPriority()
  const shardOf = createShards()
  return async function transact<T>(
    client: pg.PoolClient,
    turn: Turn,
    work: TxWork<T>,
    options: TxOptions,
    limit: TimeLimit,
  ): Promise<T> {
    const begin = beginOf(options, limit)
    let constraints = 0
    let giveBack: (() => void) | undefined
    try {
      for (let retries = 0; ; retries++) {
        if (retries === patience) giveBack = await turns.take()
        // A transaction that has failed several times runs before new ones. A `rowLocks` transaction does not wait for it, since
        // it waits for rows in the database instead.
        else if (!giveBack && options.isolation !== 'rowLocks') await turns.open()
        const {
          outcome,
          changes,
          command = 'other',
        } = await attempt(parts, client, work, { begin, limit, shard: shardOf(client), turn })
        if (outcome.ok) {
          counts.commits++
          commits.report([changes])
          for (const callback of outcome.after) callback()
          return outcome.value
        }
        if (outcome.stepError instanceof LockFull) throw outcome.stepError
        // The work may have wrapped a conflict error, so the error of the statement is checked too. A constraint error that the
        // work has replaced is intended, so it is not retried.
        const conflict = isConflict(outcome.error) || isConflict(outcome.stepError)
        const again = conflict || (isConstraint(outcome.error) && constraints++ < constraintRetries)
        if (!again || retries === conflictRetries) throw outcome.error
        counts.retries++
        const met = `${command} ${conflict ? 'conflict' : 'constraint'}`
        counts.again.set(met, (counts.again.get(met) ?? 0) + 1)
        // Sleeps even when other transactions of this process are held back, since other processes may cause the next conflict.
        await sleep(Math.random() * 2 ** (Math.min(retries, patience) + 1))
      }
    } finally {
      giveBack?.()
    }
  }
}

async function attempt<T>(
  { send, toQuery, guard }: Parts,
  client: pg.PoolClient,
  work: TxWork<T>,
  { begin, limit, shard, turn }: { begin: string; limit: TimeLimit; shard: number; turn: Turn },
): Promise<Attempted<T>> {
  const one = createSequentialSend((config) => send(client, config, limit))
  const changes = new Set<Change>()
  let command: Command | undefined
  let begun: Promise<unknown> | undefined
  const step = async (query: Sql): Promise<pg.QueryResult> => {
    const config = toQuery(query)
    for (const change of changesOf(config.text)) changes.add(change)
    try {
      // `BEGIN` is sent with the first statement, so a transaction that has to wait before it does not use the server. Both are
      // queued at once, so a statement that is not awaited cannot run after the end of the transaction.
      begun ??= one({ text: begin })
      return await one(config, begun)
    } catch (error) {
      command ??= commandOf(config.text)
      throw error
    }
  }
  const steps = {
    all: async <R>(query: Sql): Promise<R[]> => (await step(query)).rows,
    run: async (query: Sql) => (await step(query)).rowCount ?? 0,
    meet: turn.enter,
  }
  let outcome = await guard.run(steps, shard, work)
  if (!begun) return { outcome, changes, command }
  if (outcome.ok) {
    try {
      const { command } = await one({ text: 'COMMIT' })
      // If a statement that was not awaited has failed, PostgreSQL responds to COMMIT with ROLLBACK instead of an error.
      if (command !== 'COMMIT') throw new Error('a statement of this transaction has failed')
    } catch (error) {
      outcome = { ok: false, error, stepError: error }
      command = 'commit'
    }
  }
  // If the connection is lost, ROLLBACK fails too. That error is dropped, since the first error is more informative.
  if (!outcome.ok) await one({ text: 'ROLLBACK' }).catch(() => {})
  return { outcome, changes, command }
}

/** Command of a statement. A statement that begins with a common table expression has the command `other`. */
function commandOf(text: string): Command {
  const word = /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase()
  return retriedCommands.find((one) => one === word) ?? 'other'
}

function beginOf({ isolation, durability }: TxOptions, { kind, ms }: TimeLimit): string {
  return [
    `BEGIN ISOLATION LEVEL ${isolation === 'rowLocks' ? 'READ COMMITTED' : 'SERIALIZABLE'}`,
    ...(durability === 'later' ? ['SET LOCAL synchronous_commit = off'] : []),
    ...(kind === 'none' ? ['SET LOCAL statement_timeout = 0'] : []),
    // This timeout is shorter than our own limit, so PostgreSQL ends a statement that waits for a lock. Otherwise our limit would
    // end first, and the connection would be dropped as lost.
    ...(kind === 'quick' ? [`SET LOCAL statement_timeout = ${Math.ceil(ms * 0.8)}`] : []),
  ].join('; ')
}

// pg accepts one statement at a time, while a transaction may start several at once.
function createSequentialSend(send: Send): Send {
  let last: Promise<unknown> = Promise.resolve()
  return (config, needs) => {
    const result = last.then(() => needs).then(() => send(config))
    last = result.catch(() => {})
    return result
  }
}

// Lets a transaction that keeps failing run without new transactions of this process. Otherwise new ones would conflict with it
// after each sleep.
function createRetryPriority() {
  let last: Promise<void> = Promise.resolve()
  return {
    open: () => last,
    async take(): Promise<() => void> {
      const before = last
      const { promise, resolve } = Promise.withResolvers<void>()
      last = before.then(() => promise)
      await before
      return resolve
    },
  }
}

const shards = 256

// Chooses a random counter shard for each connection. The connection's number does not serve: behind a pooler, few numbers differ
// in their last digits.
function createShards(): (client: pg.PoolClient) => number {
  const chosen = new WeakMap<pg.PoolClient, number>()
  return (client) => {
    const shard = chosen.get(client) ?? randomInt(shards)
    chosen.set(client, shard)
    return shard
  }
}

function isConflict(error: unknown): boolean {
  const code = codeOf(error)
  return code === '40001' || code === '40P01'
}

// True if a concurrent writer has inserted or deleted the row first. The next attempt sees the change, and the checks of the work
// then report the problem.
function isConstraint(error: unknown): boolean {
  const code = codeOf(error)
  return code === '23505' || code === '23503'
}
