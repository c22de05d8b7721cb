// Background job that compares the packages of images with advisories. The queue is in the database: a server that stops loses no
// work, and several servers share the queue.
import type { App } from '#app.ts'
import type { Job } from '#job.ts'
import { followSettings } from '../own-advisories/own-advisories.service.ts'
import type { DueMatch } from '../queue/queue.model.ts'
import { claimMatch, postponeMatch, processMatch } from './match-queue.service.ts'

const backOffMs = 1000
const longestBackOffMs = 3_600_000

/** Processes all due items. If an item fails, it is postponed and the run continues. */
export const matchPackages: Job = {
  name: 'vulnerabilities.match',
  everyMs: 30_000,
  runsOn: 'every node',
  wakeOn: ['insert match_queue'],
  async run(app, lease) {
    let items = 0
    await followSettings(app, lease.signal)
    let after: string | undefined
    while (lease.holds()) {
      const next = await claimMatch(app, { node: lease.node, isGone: (node) => lease.isGone(node), after })
      if (!next) break
      after = next.organization
      await matchOne(app, next, lease.signal)
      items++
    }
    return { items }
  },
}

async function matchOne(app: App, item: DueMatch, signal: AbortSignal): Promise<void> {
  try {
    await processMatch(app, item, signal)
  } catch (error) {
    if (signal.aborted) return postponeMatch(app, item, 0)
    const { kind, organization, attempts } = item
    app.log.error('comparison with advisories failed and is tried again', {
      kind,
      organization,
      item: item.item,
      attempts,
      error,
    })
    await postponeMatch(app, item, Math.min(backOffMs * 2 ** Math.min(attempts, 20), longestBackOffMs))
  }
}
