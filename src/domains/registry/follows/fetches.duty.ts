// Brings the content of what repos follow, one manifest of an organisation after the other, several organisations at once.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Duty } from '#duty.ts'
import { bringOne } from './fetches.service.ts'
import { nextFetch, organizationsToFetch } from './fetches.store.ts'

const everyMs = 10_000
/** How long the content of one organisation is brought before others have their turn; what was begun is ended. */
const turnMs = 2_000
const atOnce = 4
const organizationsAtOnce = 1000

export const fetchFollowed: Duty = {
  name: 'registry.follows.fetch',
  everyMs,
  runsOn: 'one node',
  wake: ({ follows }) => follows.fetches,
  async run(app, lease) {
    const sum = { fetched: 0, failed: 0 }
    while (lease.holds()) {
      const waiting = await organizationsToFetch(app.db, app.clock().toISOString(), organizationsAtOnce)
      if (waiting.length === 0) break
      const serve = async () => {
        for (let one = waiting.shift(); one !== undefined && lease.holds(); one = waiting.shift()) {
          const { fetched, failed } = await turnOf(app, lease, one)
          sum.fetched += fetched
          sum.failed += failed
        }
      }
      await Promise.all(Array.from({ length: atOnce }, serve))
    }
    return sum
  },
}

async function turnOf(app: App, lease: Lease, organization: string) {
  const until = performance.now() + turnMs
  const sum = { fetched: 0, failed: 0 }
  do {
    const fetch = await nextFetch(app.db, organization, app.clock().toISOString())
    if (!fetch) break
    const { fetched, failed } = await bringOne({ app, lease, fetch })
    sum.fetched += fetched
    sum.failed += failed
  } while (performance.now() < until && lease.holds())
  return sum
}
