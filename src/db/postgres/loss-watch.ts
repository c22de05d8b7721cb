// Detects lost connections: they get no response while a new connection does. This happens when a host fails and no packet closes
// its connections. Closes lost connections, so that waiting statements fail at once and the pool opens new ones.
import { performance } from 'node:perf_hooks'
import type pg from 'pg'
import { drop, type Sent, sentOn } from './send.ts'

export type WatchTimes = {
  /** Milliseconds without a response after which a statement is checked. */
  silentMs: number
  /** Milliseconds between two rounds of checks. */
  watchMs: number
  /** Milliseconds until a statement that the server is still running is checked again. */
  sparedMs: number
}

export type Watched = {
  /** Connections that the watch may close. */
  live(): pg.PoolClient[]
  /** True behind a pooler. Then a new connection cannot list which backends are running a statement. */
  isPooled: boolean
  /**
   * Opens a new connection, and returns which of these backends are running a statement. Undefined if the server does not
   * respond.
   */
  ask(pids: readonly number[]): Promise<ReadonlySet<number> | undefined>
}

/**
 * Number of lost statements after which all connections are closed, and the milliseconds after which a lost statement is
 * forgotten.
 */
const enough = 2
const countsMs = 60_000

export function createLossWatch({ silentMs, watchMs, sparedMs }: WatchTimes, { live, isPooled, ask }: Watched) {
  /** Times at which lost statements were found: no response, and no backend that runs them. */
  let unanswered: number[] = []
  /** Statements without a response in the previous round. */
  let before: ReadonlySet<Sent> = new Set()
  /** Statements that the server is still running, and the times of their next checks. */
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
    // Behind a pooler, the watch cannot find out whether the server runs a statement, and a statement may just wait for a lock.
    // So only quick statements are checked. All others count as lost at their time limit.
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
      // If a new connection gets no response either, the whole server is unavailable, and new connections would not help.
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
    /** Call it when the time limit of a statement has passed. The server's own limit is lower, so the connection is lost. */
    noAnswer(): void {
      unanswered.push(performance.now())
      void look()
    },
    close: () => clearInterval(timer),
  }
}

const pidOf = (client: pg.PoolClient): number => (client as unknown as { processID: number }).processID
