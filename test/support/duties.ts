// Runs background jobs by hand, and other nodes on the same database.
import type { App } from '#app.ts'
import { createLeases, type Lease } from '#db/leases.ts'
import type { Duty, DutyStatus } from '#duty.ts'

/** Runs a job once, on a node of its own that gets the lease. */
export async function runDuty(app: App, duty: Duty): Promise<DutyStatus> {
  const leases = createLeases(app.db, {
    node: 'by-hand',
    // The lease is not renewed, however long the job takes.
    leaseMs: 3_600_000,
    monotonic: () => performance.now(),
    skew: app.skew,
    names: duty.runsOn === 'one node' ? [duty.name] : [],
    signal: new AbortController().signal,
  })
  await leases.look()
  const lease = duty.runsOn === 'one node' ? leases.find(duty.name) : leases.everyNode
  if (!lease) throw new Error(`another node has the lease of ${duty.name}`)
  try {
    return await duty.run(app, lease)
  } finally {
    await leases.release()
  }
}

/** Functions of a lease, without one, because all tests together would have it as the same node. */
export function withoutLease({ db }: Pick<App, 'db'>): Pick<Lease, 'tx' | 'signal' | 'check'> {
  return { tx: db.tx.bind(db), signal: new AbortController().signal, check() {} }
}
