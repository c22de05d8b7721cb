import { deleteBefore as deleteEntriesBefore } from '#domains/outbox/audit.store.ts'
import type { Job, LongJob } from '#job.ts'
import { startDeliveries } from './delivery/deliver.ts'
import { maxKept, maxKeptInAll } from './refusals/refusals.model.ts'
import * as refused from './refusals/refusals.store.ts'
import { sweepStreams } from './subscriptions/audience.store.ts'
import * as store from './subscriptions/retention.store.ts'

/** Routes events to the queues of subscriptions, and sends them. Each queue has one owner, and every server owns some queues. */
export const deliverEvents: LongJob = {
  name: 'deliveries',
  start: startDeliveries,
}

/** Writes refused requests of the registry to the database. Each server writes the requests that it refused. */
export const writeRefusals: Job = {
  name: 'events.refusals',
  everyMs: 1000,
  runsOn: 'every node',
  run: async ({ refusals }) => ({ rows: await refusals.flush() }),
}

const dayMs = 24 * 60 * 60_000
const batch = 200

/** Deletes old refused requests. If there are too many in total, deletes some requests of the organization with the most. */
export const sweepRefusals: Job = {
  name: 'events.refusals.sweep',
  everyMs: 60_000,
  runsOn: 'one node',
  async run({ config, clock }, lease) {
    const now = clock().getTime()
    const before = new Date(now - config.eventRetentionDays * dayMs).toISOString()
    let rows = await lease.inBatches((tx) => refused.deleteBefore(tx, before, batch))
    rows += await lease.inBatches(async (tx) => {
      const most = (await refused.countAll(tx)) > maxKeptInAll ? await refused.largest(tx) : undefined
      if (!most) return 0
      const half = Math.floor(Math.min(most.total, maxKept) / 2)
      const outside = await refused.keepLatest(tx, most.organization, true, half)
      return outside + (await refused.keepLatest(tx, most.organization, false, half))
    })
    return { rows }
  },
}

/** Deletes expired events and deliveries. */
export const sweepEvents: Job = {
  name: 'events.sweep',
  everyMs: 60 * 60 * 1000,
  runsOn: 'one node',
  async run({ config, clock }, lease) {
    const keptMs = config.eventRetentionDays * dayMs
    const now = clock()
    const before = new Date(now.getTime() - keptMs).toISOString()
    await lease.inBatches((tx) => sweepStreams(tx, now.toISOString()))
    return {
      deliveries: await lease.inBatches((tx) => store.sweepDeliveries(tx, before, batch)),
      events: await lease.inBatches((tx) => store.sweepEvents(tx, before, batch)),
    }
  },
}

/** Deletes the deliveries of deleted subscriptions. */
export const sweepSubscriptions: Job = {
  name: 'subscriptions.sweep',
  everyMs: 60_000,
  runsOn: 'one node',
  wake: ({ events }) => events.queued,
  run: async (_, lease) => ({ rows: await lease.inBatches((tx) => store.sweepDeleted(tx, batch)) }),
}

/** Number of rows that one transaction deletes. The number is small, so that other writers do not wait long. */
const auditBatch = 100

/** Deletes audit entries after the configured retention time. If audit entries are kept forever, deletes none. */
export const sweepAuditLog: Job = {
  name: 'audit.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run({ config, clock }, lease) {
    if (config.auditRetentionDays === 0) return {}
    const before = new Date(clock().getTime() - config.auditRetentionDays * dayMs).toISOString()
    return { entries: await lease.inBatches((tx) => deleteEntriesBefore(tx, before, auditBatch), {}) }
  },
}
