// Types of background jobs. Contains no code, so that both domains and workers.ts can import it.
import type { App } from './app.ts'
import type { Lease } from './db/leases.ts'
import type { Change } from './db/sql.ts'
import type { Signal } from './lib/signal.ts'

/** Numbers that a run logs, such as of deleted rows. If all are zero, the run had nothing to do. */
export type JobStatus = Readonly<Record<string, number>>

/** Background job that runs repeatedly. It looks for its work at each run, so a lost signal only delays the work. */
export type Job = {
  /** Name of the job, of its lease, and of its label in /metrics. */
  name: string
  everyMs: number | ((app: App) => number)
  /** With `one node`, a run needs the lease with the job's name, and must write with `lease.tx`. */
  runsOn: 'one node' | 'every node'
  /** Signal that starts a run at once. */
  wake?(app: App): Signal
  /** Changes to tables that start a run at once. Only commits of this process are noticed. */
  wakeOn?: readonly Change[]
  /** Runs the job once. If it throws, the job is retried. */
  run(app: App, lease: Lease): Promise<JobStatus>
}

/** Background job with a loop of its own. If it needs leases, it takes them itself. */
export type LongJob = {
  name: string
  start(app: App, at: JobContext): Promise<RunningJob>
}

export type RunningJob = {
  /** Stops the job. Work in progress gets `graceMs` milliseconds to finish. */
  close(graceMs: number): Promise<void>
}

export type JobContext = {
  /** ID of this process among those that share the database. */
  node: string
  /** URL of the server for clients. */
  url: string
  monotonic: () => number
  /** Reports that one pass of the loop has succeeded. */
  ran(): void
  /** Reports that one pass of the loop has failed. The job retries it. */
  failed(error: unknown): void
}
