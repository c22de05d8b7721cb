// What a background duty is; no code, so that the domains can write theirs and workers.ts can list them.
import type { App } from './app.ts'
import type { Lease } from './db/leases.ts'
import type { Change } from './db/sql.ts'
import type { Signal } from './lib/signal.ts'

/** What a run came to, in numbers, for the log. A run that only has zeros did nothing. */
export type DutyStatus = Readonly<Record<string, number>>

/** Work that is done again and again. It finds what there is to do by reading, so a lost signal costs only time. */
export type Duty = {
  /** Also its label in /metrics and the name of its lease. */
  name: string
  everyMs: number | ((app: App) => number)
  /** `one node` holds the lease of that name while it runs, and writes with `lease.tx`. */
  runsOn: 'one node' | 'every node'
  /** Asks for a run at once. */
  wake?(app: App): Signal
  /** Commits of this process after which it runs at once. */
  wakeOn?: readonly Change[]
  /** Throws to be tried again. */
  run(app: App, lease: Lease): Promise<DutyStatus>
}

/** Work with a loop of its own, and leases of its own where it needs some. */
export type LongDuty = {
  name: string
  start(app: App, at: DutySite): Promise<RunningDuty>
}

export type RunningDuty = {
  /** What is on its way has `graceMs` to finish. */
  close(graceMs: number): Promise<void>
}

export type DutySite = {
  /** This process among those that share the database. */
  node: string
  /** What clients call us. */
  url: string
  monotonic: () => number
  /** A round of the loop has gone well. */
  ran(): void
  /** It has not, and the loop tries again. */
  failed(error: unknown): void
}
