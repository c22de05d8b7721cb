// Writers wait here for the one connection that writes, and share commits: those that wait run one after the other, each in
// a savepoint, and one commit answers them all. Callers that have used less time of the thread go first.
import { connecting } from '#lib/turns/connecting.ts'
import { chargeBackground, FairQueue } from '#lib/turns/fair-queue.ts'
import type { createCommits } from '../changes.ts'
import type { Outcome } from '../guard.ts'
import type { Change, DbCounts } from '../sql.ts'
import type { Connection } from './sqlite-connection.ts'

const batchWorks = 256
const batchMs = 5

/** One queued transaction: `run` does its work, `settle` tells the caller once the commit has or has not happened. */
export type Job = {
  durable: boolean
  aside: 'disk' | 'memory'
  changes: ReadonlySet<Change>
  run(): Promise<Outcome<unknown>>
  settle(outcome: Outcome<unknown>): void
}

type Parts = {
  writer: Connection
  commits: ReturnType<typeof createCommits>
  /** Called right before a commit. */
  beforeCommit(): void
  /** Called after a commit. `busyMs` is the duration of the commit and of the work before it. */
  afterCommit(busyMs: number): void
  /** The promise that the next batch waits for, if there is one. */
  hold(): Promise<void> | undefined
}

export class WriteQueue {
  /** Nobody else writes, so nothing is tried again. */
  readonly counts: DbCounts = { transactions: 0, commits: 0, retries: 0, refused: 0, again: new Map() }
  readonly #parts: Parts
  readonly #jobs = new FairQueue<Job>()
  #flushing: Promise<void> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  push(job: Job): void {
    this.#jobs.push(job)
    this.#flushing ??= this.#flushAll()
  }

  /** Resolves once nobody waits. */
  async idle(): Promise<void> {
    await this.#flushing
  }

  async #flushAll(): Promise<void> {
    while (this.#jobs.length > 0) {
      // All requests that the event loop has ready get to queue before the batch starts.
      await new Promise<void>((resolve) => connecting.behind(resolve))
      await this.#parts.hold()
      await this.#flush()
    }
    this.#flushing = undefined
  }

  async #flush(): Promise<void> {
    const { writer, commits, beforeCommit, afterCommit } = this.#parts
    const jobs = this.#jobs
    const begun: Job[] = []
    const outcomes: Outcome<unknown>[] = []
    // Settled before the transaction begins, since SQLite does not change it inside one.
    const durable = [...jobs].some((job) => job.durable)
    const { aside } = jobs.next()!.item
    const isNext = (job: Job) => job.aside === aside && (durable || !job.durable)
    try {
      writer.waitForDisk(durable)
      writer.setAside(aside)
      writer.control('BEGIN IMMEDIATE')
      const start = performance.now()
      while (begun.length < batchWorks && performance.now() < start + batchMs) {
        const entry = jobs.take(isNext)
        if (!entry) break
        begun.push(entry.item)
        const began = performance.now()
        outcomes.push(await attempt(writer, entry.item))
        chargeBackground(entry, performance.now() - began)
      }
      beforeCommit()
      writer.control('COMMIT')
      this.counts.commits++
      commits.report(begun.flatMap(({ changes }, i) => (outcomes[i]!.ok ? [changes] : [])))
      afterCommit(performance.now() - start)
    } catch (error) {
      rollBack(writer)
      // Without a transaction nobody in the queue can be served; the next call tries again.
      if (begun.length === 0) for (let entry = jobs.take(); entry; entry = jobs.take()) begun.push(entry.item)
      // Also those that failed alone: they may have seen rows that are gone now.
      outcomes.splice(0, Infinity, ...begun.map(() => failed(error)))
    }
    this.counts.transactions += begun.length
    for (const [i, job] of begun.entries()) job.settle(outcomes[i]!)
  }
}

/** Runs one work inside its savepoint. Throws only when the whole batch is lost. */
async function attempt(writer: Connection, job: Job): Promise<Outcome<unknown>> {
  writer.control('SAVEPOINT work')
  const outcome = await job.run()
  if (!writer.inTransaction) throw outcome.ok ? new Error('the transaction was rolled back by SQLite') : outcome.error
  if (!outcome.ok) writer.control('ROLLBACK TO work')
  writer.control('RELEASE work')
  if (outcome.ok) for (const callback of outcome.after) callback()
  return outcome
}

function rollBack(writer: Connection): void {
  try {
    if (writer.inTransaction) writer.control('ROLLBACK')
  } catch {
    // Then the next BEGIN fails too, and this is tried again.
  }
}

function failed(error: unknown): Outcome<unknown> {
  return { ok: false, error, stepError: undefined }
}
