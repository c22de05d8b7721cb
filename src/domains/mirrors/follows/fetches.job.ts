// Background job that fetches the content of mirrors. It serves several organizations at once. For each organization, it fetches
// one manifest at a time.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Job } from '#job.ts'
import { type Fetched, fetchQueued } from './fetches.service.ts'
import { nextFetch, organizationsToFetch } from './fetches.store.ts'

const everyMs = 10_000
/** Longest turn of one organization. Then other organizations have their turn. A fetch in progress is finished first. */
const turnMs = 2_000
const atOnce = 4
const organizationsAtOnce = 1000
/** Time limit for fetching one manifest with everything that it lists. */
const longestMs = 600_000

export const fetchFollowed = fetchFollowedWithin(longestMs)

export function fetchFollowedWithin(longestMs: number): Job {
  return {
    name: 'registry.follows.fetch',
    everyMs,
    runsOn: 'one node',
    wake: ({ follows }) => follows.fetches,
    async run(app, lease) {
      const sum = { fetched: 0, failed: 0 }
      const queue = createQueue(app, lease)
      const serve = async () => {
        for (let one = await queue.next(); one !== undefined; one = await queue.next()) {
          try {
            await turnOf({ app, lease, longestMs }, one, sum, queue)
          } finally {
            queue.done(one)
          }
        }
      }
      const unsubscribe = app.follows.fetches.subscribe(queue.look)
      try {
        // Waits for all workers, so that each one finishes its organization even if another worker fails.
        const ended = await Promise.allSettled(Array.from({ length: atOnce }, serve))
        const failure = ended.find(({ status }) => status === 'rejected')
        if (failure?.status === 'rejected') throw failure.reason
        return sum
      } finally {
        unsubscribe()
      }
    },
  }
}

type Queue = {
  /**
   * Next organization that no worker is serving. If all are being served, waits until one is free, which may take long. Returns
   * undefined if all organizations were served, or if the lease is lost.
   */
  next(): Promise<string | undefined>
  done(organization: string): void
  /** Excludes the organization from the rest of this run. Called if a fetch took too long. */
  rest(organization: string): void
  look(): void
}

function createQueue(app: App, lease: Lease): Queue {
  const [serving, resting] = [new Set<string>(), new Set<string>()]
  let waiting: string[] = []
  let news = Promise.withResolvers<void>()
  const isFree = (one: string): boolean => !serving.has(one) && !resting.has(one)
  const look = (): void => {
    news.resolve()
    news = Promise.withResolvers()
  }
  return {
    look,
    async next() {
      while (lease.holds()) {
        const coming = news.promise
        waiting = waiting.filter(isFree)
        if (waiting.length === 0) {
          waiting = await organizationsToFetch(app.db, app.clock().toISOString(), organizationsAtOnce)
        }
        const one = waiting.find(isFree)
        if (one !== undefined) {
          serving.add(one)
          return one
        }
        if (serving.size === 0) return undefined
        await coming
      }
      return undefined
    },
    done(one) {
      serving.delete(one)
      look()
    },
    rest: (one) => void resting.add(one),
  }
}

type Running = { app: App; lease: Lease; longestMs: number }

async function turnOf(running: Running, organization: string, sum: Omit<Fetched, 'slow'>, queue: Queue) {
  const { app, lease } = running
  const until = performance.now() + turnMs
  do {
    const fetch = await nextFetch(app.db, organization, app.clock().toISOString())
    if (!fetch) break
    const { fetched, failed, slow } = await fetchQueued({ ...running, fetch })
    sum.fetched += fetched
    sum.failed += failed
    if (slow) return queue.rest(organization)
  } while (performance.now() < until && lease.holds())
}
