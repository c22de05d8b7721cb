// Queue of transactions for the one writing connection. Queued transactions run one after the other, each in a savepoint, and
// share one commit. Callers that have used less thread time go first. A long batch is spread over several turns of the event
// loop, so that reads are answered in between.
import { connecting } from '#lib/scheduling/connecting.ts'
import { chargeBackground, FairQueue } from '#lib/scheduling/fair-queue.ts'
import { createYielder } from '#lib/scheduling/yielder.ts'
import type { createCommits } from '../changes.ts'
import type { Outcome } from '../guard.ts'
import type { Change, DbCounts } from '../sql.ts'
import type { Connection } from './sqlite-connection.ts'

const batchWorks = 256
const batchMs = 5
/**
 * Milliseconds that a batch runs without a pause. A batch starts transactions for 5 ms. They nearly always end within 10 ms, so
 * the batch needs one turn and one commit.
 */
const unpausedMs = 10
/** Milliseconds after which a batch makes no more pauses, since other writers wait for its end. */
const pausesForMs = 1000

/** Queued transaction. `run` does the work. `settle` passes the result to the caller, after the commit or after a failure. */
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
  /** `retries` stays 0, since there is only one writer. */
  readonly counts: DbCounts = { transactions: 0, commits: 0, retries: 0, refused: 0, again: new Map() }
  readonly #parts: Parts
  readonly #jobs = new FairQueue<Job>()
  readonly #yielder = createYielder(undefined, connecting.turn, unpausedMs)
  #flushing: Promise<void> | undefined
  #pausing: Promise<void> | undefined
  /** Start of the current batch, and the total time of its pauses. */
  #startMs = 0
  #pausedMs = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  push(job: Job): void {
    this.#jobs.push(job)
    this.#flushing ??= this.#flushAll()
  }

  /**
   * Promise that the next statement of the batch has to wait for. Undefined if the batch has not yet used its time in this turn
   * of the event loop.
   */
  pause(): Promise<void> | undefined {
    const isLate = performance.now() > this.#startMs + pausesForMs
    return isLate || !this.#yielder.isDue() ? undefined : this.#rest()
  }

  /** Statements that start at the same time share one pause, which keeps their order. */
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

  /** Resolves once the queue is empty. */
  async idle(): Promise<void> {
    await this.#flushing
  }

  async #flushAll(): Promise<void> {
    while (this.#jobs.length > 0) {
      // Waits for one turn of the event loop, so that all requests that have arrived can queue their transactions before the
      // batch starts.
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

  /** Milliseconds since the start of the current batch, without its pauses. */
  #busyMs(): number {
    return performance.now() - this.#startMs - this.#pausedMs
  }

  async #flush(): Promise<void> {
    const { writer, commits, beforeCommit, afterCommit } = this.#parts
    const jobs = this.#jobs
    const begun: Job[] = []
    const outcomes: Outcome<unknown>[] = []
    // Decided before the transaction begins, since SQLite does not change this setting inside a transaction.
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
      // The commit of a long batch takes long too, so it gets a turn of its own.
      if (this.#pausedMs > 0) await this.#rest()
      beforeCommit()
      writer.control('COMMIT')
      this.counts.commits++
      commits.report(begun.flatMap(({ changes }, i) => (outcomes[i]!.ok ? [changes] : [])))
      afterCommit(this.#busyMs())
    } catch (error) {
      rollBack(writer)
      // If no transaction has run, `BEGIN` has failed, so all queued transactions fail. The next queued transaction tries it
      // again.
      if (begun.length === 0) for (let entry = jobs.take(); entry; entry = jobs.take()) begun.push(entry.item)
      // Transactions that have failed alone get this error too, since they may have read rows that are now rolled back.
      outcomes.splice(0, Infinity, ...begun.map(() => failed(error)))
    }
    this.counts.transactions += begun.length
    for (const [i, job] of begun.entries()) job.settle(outcomes[i]!)
  }
}

/** Runs one transaction in a savepoint. Throws if SQLite has rolled back the whole batch. */
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
    // The next `BEGIN` fails too, and then `ROLLBACK` is tried again.
  }
}

function failed(error: unknown): Outcome<unknown> {
  return { ok: false, error, stepError: undefined }
}
