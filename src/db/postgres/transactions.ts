// Transactions that are retried on conflict, each on one connection.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { changesOf, type createCommits } from '../changes.ts'
import type { createGuard, Outcome } from '../guard.ts'
import { type Change, retriedCommands, type Sql, type Tx, type TxOptions } from '../sql.ts'
import type { Connections } from './connections.ts'
import { Crowded, type Turn } from './crowds.ts'
import { codeOf, type TimeLimit } from './send.ts'

const conflictRetries = 12
const constraintRetries = 3
const patience = 6

/** Sends it once it is its turn, and not at all where `needs` has failed, which throws the same. */
type Send = (config: pg.QueryConfig, needs?: Promise<unknown>) => Promise<pg.QueryResult>
type TxWork<T> = (tx: Tx) => Promise<T>
/** `command` is the first that has failed. */
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
 * Runs a transaction, and retries it on conflicts. Throws its other errors, and Crowded if it has to wait without a connection.
 */
export function createTransactions(parts: Parts) {
  const { commits, counts } = parts
  const turns = createTurns()
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
        // A transaction that waits for rows in the database is not a newcomer that gets ahead of others.
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
        if (outcome.stepError instanceof Crowded) throw outcome.stepError
        // The work may have wrapped the conflict in an error of its own; a broken constraint it may have meant.
        const conflict = isConflict(outcome.error) || isConflict(outcome.stepError)
        const again = conflict || (isConstraint(outcome.error) && constraints++ < constraintRetries)
        if (!again || retries === conflictRetries) throw outcome.error
        counts.retries++
        const met = `${command} ${conflict ? 'conflict' : 'constraint'}`
        counts.again.set(met, (counts.again.get(met) ?? 0) + 1)
        // Applies even if it is the turn of this one, since other processes have turns of their own.
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
      // Sent with the first statement, so that a transaction that waits for its turn has not used the server yet. Queued at once,
      // so that a statement that is not awaited cannot follow the end.
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
      // PostgreSQL answers ROLLBACK, and no error, if a statement that was not awaited has failed.
      if (command !== 'COMMIT') throw new Error('a statement of this transaction has failed')
    } catch (error) {
      outcome = { ok: false, error, stepError: error }
      command = 'commit'
    }
  }
  // Without a connection this fails as well, but the first error is more informative.
  if (!outcome.ok) await one({ text: 'ROLLBACK' }).catch(() => {})
  return { outcome, changes, command }
}

/** Statements that begin with a common table expression count as `other`, since nothing looks for their command. */
function commandOf(text: string): Command {
  const word = /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase()
  return retriedCommands.find((one) => one === word) ?? 'other'
}

function beginOf({ isolation, durability }: TxOptions, { kind, ms }: TimeLimit): string {
  return [
    `BEGIN ISOLATION LEVEL ${isolation === 'rowLocks' ? 'READ COMMITTED' : 'SERIALIZABLE'}`,
    ...(durability === 'later' ? ['SET LOCAL synchronous_commit = off'] : []),
    ...(kind === 'none' ? ['SET LOCAL statement_timeout = 0'] : []),
    // Shorter than our own limit, so that PostgreSQL ends a statement that waits for a lock. Without this its connection would be
    // dropped as lost.
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

// Fresh transactions would starve one that has to sleep between attempts; after a few it gets this process for itself.
function createTurns() {
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

// Random, since behind a pooler the numbers of connections are those of the pooler, and few of them differ in their last digits.
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

// A concurrent writer won a race; the next attempt sees its rows, and the work's own checks name the problem.
function isConstraint(error: unknown): boolean {
  const code = codeOf(error)
  return code === '23505' || code === '23503'
}
