// Detects connections without answers while a new connection is answered, as after the loss of a host, when no packet closes
// them. Drops them, so that waiting statements fail at once and the pool opens new ones.
import { performance } from 'node:perf_hooks'
import type pg from 'pg'
import { drop, type Sent, sentOn } from './send.ts'

export type WatchTimes = {
  /** Milliseconds without an answer after which it checks if the server still works on a statement. */
  silentMs: number
  /** Period of these checks. */
  watchMs: number
  /** Pause before the next check of a statement that the server works on. */
  sparedMs: number
}

export type Watched = {
  /** The connections that may be dropped. */
  live(): pg.PoolClient[]
  /** True if a pooler is in between, so that no new connection can list the backends that are working. */
  isPooled: boolean
  /** The backends that work, according to a new connection. Undefined if it is not answered. */
  ask(pids: readonly number[]): Promise<ReadonlySet<number> | undefined>
}

/**
 * Number of statements without an answer after which all connections are dropped, and milliseconds for which each of them counts.
 */
const enough = 2
const countsMs = 60_000

export function createLossWatch({ silentMs, watchMs, sparedMs }: WatchTimes, { live, isPooled, ask }: Watched) {
  /** Times at which statements were found to have no answer, and no backend at work on them. */
  let unanswered: number[] = []
  /** Statements that were silent at the last look. */
  let before: ReadonlySet<Sent> = new Set()
  /** Statements that the server worked on, and when to check them again. */
  const spared = new WeakMap<Sent, number>()
  let looking = false
  const timer = setInterval(() => void look(), watchMs)
  timer.unref()

  function isSilent(client: pg.PoolClient): boolean {
    const now = performance.now()
    const one = sentOn(client)
    return one !== undefined && now - one.at >= silentMs && now >= (spared.get(one) ?? 0)
  }

  function silentOnes(): { client: pg.PoolClient; sent: Sent }[] {
    const found = live()
      .filter(isSilent)
      .map((client) => ({ client, sent: sentOn(client)! }))
    // Behind a pooler the server cannot be asked about a statement, and one that waits for a lock is silent as well. Only quick
    // statements are never silent for so long; every other statement counts when its time limit has passed.
    return isPooled ? found.filter(({ sent }) => sent.limit.kind === 'quick') : found
  }

  async function look(): Promise<void> {
    if (looking) return
    looking = true
    try {
      const waiting = silentOnes()
      const seen = before
      before = new Set(waiting.map(({ sent }) => sent))
      unanswered = unanswered.filter((at) => performance.now() - at < countsMs)
      if (waiting.length === 0 && unanswered.length < enough) return
      const working = await ask(isPooled ? [] : waiting.map(({ client }) => pidOf(client)))
      // While no new connection is answered either, the others may be as good as any.
      if (working === undefined) return
      for (const { client, sent } of waiting) {
        if (working.has(pidOf(client))) spared.set(sent, performance.now() + sparedMs)
      }
      dropLost(
        waiting.filter(({ client, sent }) => seen.has(sent) && sentOn(client) === sent && !working.has(pidOf(client))),
      )
    } finally {
      looking = false
    }
  }

  function dropLost(lost: readonly { client: pg.PoolClient }[]): void {
    unanswered.push(...lost.map(() => performance.now()))
    const isAll = unanswered.length >= enough
    if (isAll) unanswered = []
    for (const client of isAll ? live() : lost.map((one) => one.client)) drop(client)
  }

  return {
    /** The time limit of a statement has passed. It is above the server's own, so the connection is lost. */
    noAnswer(): void {
      unanswered.push(performance.now())
      void look()
    },
    close: () => clearInterval(timer),
  }
}

const pidOf = (client: pg.PoolClient): number => (client as unknown as { processID: number }).processID
