// Background job that requests tag history from upstreams. Organizations take turns, and several are served at once.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Job } from '#job.ts'
import { requestHistory } from './histories.service.ts'
import { nextRequest, organizationsWithRequests } from './histories.store.ts'

const everyMs = 10_000
/** Longest turn of one organization. Then other organizations have their turn. */
const turnMs = 2_000
const atOnce = 4
const organizationsAtOnce = 1000

export const requestHistories: Job = {
  name: 'registry.follows.histories',
  everyMs,
  runsOn: 'one node',
  wake: ({ follows }) => follows.histories,
  async run(app, lease) {
    const sum = { told: 0, failed: 0 }
    const rests: Pauses = new Map()
    while (lease.holds()) {
      const most = organizationsAtOnce + rests.size
      const asking = await organizationsWithRequests(app.db, app.clock().toISOString(), most)
      const waiting = asking.filter((one) => !restOf(rests, one)?.isServed)
      if (waiting.length === 0) break
      const serve = async () => {
        for (let one = waiting.shift(); one !== undefined && lease.holds(); one = waiting.shift()) {
          await turnOf({ app, lease, sum, rests }, one)
        }
      }
      await Promise.all(Array.from({ length: atOnce }, serve))
    }
    return sum
  },
}

/**
 * Upstreams of an organization that are skipped until a time, because their rate limit is used up. `isServed` is true if all due
 * requests of the organization go to these upstreams.
 */
type Rest = { until: number; upstreams: string[]; isServed: boolean }
type Pauses = Map<string, Rest>
type Run = { app: App; lease: Lease; sum: { told: number; failed: number }; rests: Pauses }

function restOf(rests: Pauses, organization: string): Rest | undefined {
  const rest = rests.get(organization)
  if (rest && performance.now() < rest.until) return rest
  rests.delete(organization)
  return undefined
}

async function turnOf({ app, lease, sum, rests }: Run, organization: string): Promise<void> {
  const until = performance.now() + turnMs
  do {
    const rest = restOf(rests, organization)
    const asking = await nextRequest(app.db, organization, app.clock().toISOString(), rest?.upstreams)
    if (!asking) {
      if (rest) rest.isServed = true
      return
    }
    const { told, failed, waitsFor } = await requestHistory({ app, lease, asking })
    sum.told += told
    sum.failed += failed
    if (waitsFor !== '') {
      const upstreams = [...(rest?.upstreams ?? []), waitsFor]
      rests.set(organization, { until: performance.now() + everyMs, upstreams, isServed: false })
    }
  } while (performance.now() < until && lease.holds())
}
