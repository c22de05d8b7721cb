// Types of background jobs. Contains no code, so that domains can implement them and workers.ts can list them.
import type { App } from './app.ts'
import type { Lease } from './db/leases.ts'
import type { Change } from './db/sql.ts'
import type { Signal } from './lib/signal.ts'

/** Counts of a run, for the log. A run with only zeros did nothing. */
export type JobStatus = Readonly<Record<string, number>>

/** Repeated background job. It finds its work by reading, so a lost signal only delays it. */
export type Job = {
  /** Name of the job, also its label in /metrics and the name of its lease. */
  name: string
  everyMs: number | ((app: App) => number)
  /** With `one node`, the job holds the lease of its name while it runs, and writes with `lease.tx`. */
  runsOn: 'one node' | 'every node'
  /** Signal that starts a run at once. */
  wake?(app: App): Signal
  /** Changes whose commits in this process start a run at once. */
  wakeOn?: readonly Change[]
  /** Runs the job. If it throws, it is retried. */
  run(app: App, lease: Lease): Promise<JobStatus>
}

/** Background job with its own loop, and its own leases if it needs any. */
export type LongJob = {
  name: string
  start(app: App, at: JobContext): Promise<RunningJob>
}

export type RunningJob = {
  /** Stops the job. Work in progress has `graceMs` to finish. */
  close(graceMs: number): Promise<void>
}

export type JobContext = {
  /** ID of this process among those that share the database. */
  node: string
  /** URL of the server for clients. */
  url: string
  monotonic: () => number
  /** Reports a successful round of the loop. */
  ran(): void
  /** Reports a failed round of the loop, which is retried. */
  failed(error: unknown): void
}
