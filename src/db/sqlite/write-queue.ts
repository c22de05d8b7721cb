// Queue of writers for the one connection that writes. The waiting transactions run one after the other, each in a savepoint, and
// share one commit. Callers that have used less time of the thread go first. A long batch is spread over several turns of the
// event loop, in which read-only requests are answered.
import { connecting } from '#lib/scheduling/connecting.ts'
import { chargeBackground, FairQueue } from '#lib/scheduling/fair-queue.ts'
import { createYielder } from '#lib/scheduling/yielder.ts'
import type { createCommits } from '../changes.ts'
import type { Outcome } from '../guard.ts'
import type { Change, DbCounts } from '../sql.ts'
import type { Connection } from './sqlite-connection.ts'

const batchWorks = 256
const batchMs = 5
/** Milliseconds that a batch runs without a pause. Works that have begun within 5 ms nearly always end before, and then share one turn and one commit. */
const unpausedMs = 10
/** Milliseconds after which an open batch continues without pauses, since other writers wait for it. */
const pausesForMs = 1000

/** Queued transaction: `run` does its work, and `settle` reports to the caller if the commit has happened. */
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
  /** Promise that the next batch waits for; undefined if there is none. */
  hold(): Promise<void> | undefined
}

export class WriteQueue {
  /** This is the only writer, so there are no retries. */
  readonly counts: DbCounts = { transactions: 0, commits: 0, retries: 0, refused: 0, again: new Map() }
  readonly #parts: Parts
  readonly #jobs = new FairQueue<Job>()
  readonly #yielder = createYielder(undefined, connecting.turn, unpausedMs)
  #flushing: Promise<void> | undefined
  #pausing: Promise<void> | undefined
  /** The start of the present batch, and the time that it has paused. */
  #startMs = 0
  #pausedMs = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  push(job: Job): void {
    this.#jobs.push(job)
    this.#flushing ??= this.#flushAll()
  }

  /** The pause of a batch that has run for long enough in this turn of the event loop. Statements of a batch wait for it. */
  pause(): Promise<void> | undefined {
    const isLate = performance.now() > this.#startMs + pausesForMs
    return isLate || !this.#yielder.isDue() ? undefined : this.#rest()
  }

  /** Statements that were asked for at once share a pause, so that they keep their order. */
  #rest(): Promise<void> {
    this.#pausing ??= this.#nextTurn()
    return this.#pausing
  }

  async #nextTurn(): Promise<void> {
    const began = performance.now()
    await this.#yielder.next()
    this.#pausedMs += performance.now() - began
    this.#pausing = undefined
  }

  /** Resolves once no transaction waits. */
  async idle(): Promise<void> {
    await this.#flushing
  }

  async #flushAll(): Promise<void> {
    while (this.#jobs.length > 0) {
      // All requests that the event loop has ready get to queue before the batch starts.
      await connecting.turn()
      await this.#parts.hold()
      await this.#flush()
    }
    this.#flushing = undefined
  }

  #begin(): void {
    this.#startMs = performance.now()
    this.#pausedMs = 0
    this.#yielder.restart()
  }

  /** Milliseconds that the present batch has run, without its pauses. */
  #busyMs(): number {
    return performance.now() - this.#startMs - this.#pausedMs
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
      this.#begin()
      while (begun.length < batchWorks && performance.now() < this.#startMs + batchMs) {
        const entry = jobs.take(isNext)
        if (!entry) break
        begun.push(entry.item)
        const began = this.#busyMs()
        outcomes.push(await attempt(writer, entry.item))
        chargeBackground(entry, this.#busyMs() - began)
      }
      // A commit takes the longer the more was written.
      if (this.#pausedMs > 0) await this.#rest()
      beforeCommit()
      writer.control('COMMIT')
      this.counts.commits++
      commits.report(begun.flatMap(({ changes }, i) => (outcomes[i]!.ok ? [changes] : [])))
      afterCommit(this.#busyMs())
    } catch (error) {
      rollBack(writer)
      // Without a transaction nothing in the queue can run; the next call tries again.
      if (begun.length === 0) for (let entry = jobs.take(); entry; entry = jobs.take()) begun.push(entry.item)
      // Also those that failed alone: they may have seen rows that are now rolled back.
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
    // The next `BEGIN` then fails too, and the rollback is tried again.
  }
}

function failed(error: unknown): Outcome<unknown> {
  return { ok: false, error, stepError: undefined }
}
