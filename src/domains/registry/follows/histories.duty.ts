// Asks upstreams for the past of what repos follow, an organisation after the other, several at once.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Duty } from '#duty.ts'
import { askForOne } from './histories.service.ts'
import { nextAsking, organizationsAsking } from './histories.store.ts'

const everyMs = 10_000
/** How long is asked for one organisation before others have their turn. */
const turnMs = 2_000
const atOnce = 4
const organizationsAtOnce = 1000

export const askForHistories: Duty = {
  name: 'registry.follows.histories',
  everyMs,
  runsOn: 'one node',
  wake: ({ follows }) => follows.histories,
  async run(app, lease) {
    const sum = { told: 0, failed: 0 }
    while (lease.holds()) {
      const waiting = await organizationsAsking(app.db, app.clock().toISOString(), organizationsAtOnce)
      if (waiting.length === 0) break
      const serve = async () => {
        for (let one = waiting.shift(); one !== undefined && lease.holds(); one = waiting.shift()) {
          await turnOf(app, lease, one, sum)
        }
      }
      await Promise.all(Array.from({ length: atOnce }, serve))
    }
    return sum
  },
}

async function turnOf(app: App, lease: Lease, organization: string, sum: { told: number; failed: number }) {
  const until = performance.now() + turnMs
  do {
    const asking = await nextAsking(app.db, organization, app.clock().toISOString())
    if (!asking) return
    const { told, failed } = await askForOne({ app, lease, asking })
    sum.told += told
    sum.failed += failed
  } while (performance.now() < until && lease.holds())
}
