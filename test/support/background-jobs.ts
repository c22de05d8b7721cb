// Runs background jobs when a test asks for it, and other servers on the same database.
import type { App } from '#app.ts'
import { createLeases, type Lease } from '#db/leases.ts'
import type { Job, JobStatus } from '#job.ts'

/** Runs a job once. Uses a separate node, which gets the lease. */
export async function runJob(app: App, job: Job): Promise<JobStatus> {
  const leases = createLeases(app.db, {
    node: 'by-hand',
    // The lease is not renewed, however long the job takes.
    leaseMs: 3_600_000,
    monotonic: () => performance.now(),
    skew: app.skew,
    names: job.runsOn === 'one node' ? [job.name] : [],
    signal: new AbortController().signal,
  })
  await leases.look()
  const lease = job.runsOn === 'one node' ? leases.find(job.name) : leases.everyNode
  if (!lease) throw new Error(`another node has the lease of ${job.name}`)
  try {
    return await job.run(app, lease)
  } finally {
    await leases.release()
  }
}

/** Functions of a lease, without a real lease. All tests are the same node, so a real lease could not exclude them. */
export function withoutLease({ db }: Pick<App, 'db'>): Pick<Lease, 'tx' | 'signal' | 'check'> {
  return { tx: db.tx.bind(db), signal: new AbortController().signal, check() {} }
}
