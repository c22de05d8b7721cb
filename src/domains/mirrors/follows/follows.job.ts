// Background job that checks the upstreams of mirrors. Organizations take turns, and so do the mirrors of one organization.
// Several upstreams are checked at once, so that an upstream that does not answer delays few others.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Job } from '#job.ts'
import { nextDueFollow, organizationsWithDue } from './follows.store.ts'
import { checkUpstream, type Listings, recordFailedCheck, type UpstreamCheckResult } from './watch.service.ts'

const everyMs = 5_000
/** Longest turn for the upstreams of one organization. Then other organizations have their turn. */
const turnMs = 2_000
const atOnce = 8
const organizationsAtOnce = 1000

export const followUpstreams = createFollowJob(turnMs)

export function createFollowJob(turnMs: number): Job {
  return {
    name: 'registry.follows',
    everyMs,
    runsOn: 'one node',
    wake: ({ follows }) => follows.due,
    async run(app, lease) {
      const sum = { looks: 0, moves: 0, failed: 0 }
      const add = ({ looks, moves, failed }: UpstreamCheckResult) => {
        sum.looks += looks
        sum.moves += moves
        sum.failed += Number(failed)
      }
      const listings: Listings = new Map()
      while (lease.holds()) {
        const waiting = await organizationsWithDue(app.db, app.clock().toISOString(), organizationsAtOnce)
        if (waiting.length === 0) break
        const serve = async () => {
          for (let one = waiting.shift(); one !== undefined && lease.holds(); one = waiting.shift()) {
            await turnOf({ app, lease, turnMs, listings }, one, add)
          }
        }
        await Promise.all(Array.from({ length: atOnce }, serve))
      }
      return sum
    },
  }
}

type Running = { app: App; lease: Lease; turnMs: number; listings: Listings }

async function turnOf(
  { app, lease, turnMs, listings }: Running,
  organization: string,
  add: (looked: UpstreamCheckResult) => void,
): Promise<void> {
  const until = performance.now() + turnMs
  const turnIsOver = () => performance.now() >= until
  do {
    // Reads only the next mirror, since the queue may change while it is checked.
    const follow = await nextDueFollow(app.db, organization, app.clock().toISOString())
    if (!follow) return
    const looking = { app, lease, follow, listings, turnIsOver }
    try {
      add(await checkUpstream(looking))
    } catch (error) {
      if (!lease.holds()) throw error
      app.log.error('upstream could not be checked', { repo: follow.repo, error })
      await recordFailedCheck(looking)
    }
  } while (!turnIsOver() && lease.holds())
}
