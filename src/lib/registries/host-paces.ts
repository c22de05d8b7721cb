// Rate limits and pauses for requests to other registries. A host has one token bucket, of which holders that ask at the same
// time have equal parts. Each upstream has a bucket of its own. A pause that a registry asks for applies to the upstreams that
// share an account there, so the quota of one account does not delay others.
import { Newest } from '../caches/newest.ts'

/** Sender of requests: `holder` owns the upstream, and `key` identifies the upstream. */
export type Asker = {
  holder: string
  key: string
  requestsPerSecond: number
  /** Takes only what others leave: a bucket must be more than half full. */
  spare?: boolean
}

export type HostPaces = {
  /** Milliseconds until this upstream may ask the host. Returns 0 and counts a request if it may ask now. */
  take(host: string, asker: Asker): number
  /** For how many milliseconds the account there is not to be asked. */
  pausedMs(account: string): number
  /**
   * The registry asks for a pause, or does not answer. The pause is as long as it asks, else longer each time, at most one hour.
   */
  failed(account: string, retryAfterMs: number | undefined): void
  succeeded(account: string): void
}

/** The most requests of one upstream that may go to its host at once, after a pause. */
const burst = 10
/**
 * Limits of all upstreams of a host together: requests at once, and per second. Holders that asked in the last second share them.
 */
const hostBurst = 30
const hostPerSecond = 20
const askingMs = 1_000
const firstPauseMs = 5_000
/** Longest pause, whatever the other side asks for. */
const longestPauseMs = 3_600_000
const maxEntries = 10_000

/** `monotonic` gives milliseconds. */
export function createHostPaces(monotonic: () => number): HostPaces {
  // Time at which the bucket of each host, holder and upstream is full again.
  const fullAt = new Newest<string, number>(maxEntries)
  const pauses = new Newest<string, { until: number; failures: number }>(maxEntries)
  // Time of the last request of each holder, by host; the latest holder comes last.
  const askers = new Newest<string, Map<string, number>>(maxEntries)

  const countAskers = (host: string, holder: string, now: number): number => {
    const asked = askers.get(host) ?? new Map<string, number>()
    asked.delete(holder)
    asked.set(holder, now)
    for (const [one, at] of asked) {
      if (now - at < askingMs && asked.size <= maxEntries) break
      asked.delete(one)
    }
    askers.set(host, asked)
    return asked.size
  }

  return {
    take(host, { holder, key, requestsPerSecond, spare = false }) {
      const now = monotonic()
      const sharers = countAskers(host, holder, now)
      // Each holder has a rate of its own, so that frequent requests of one fill no bucket of the others.
      const buckets = [
        { name: `host ${host}`, eachMs: 1000 / hostPerSecond, most: hostBurst },
        {
          name: `holder ${host} ${holder}`,
          eachMs: (1000 / hostPerSecond) * sharers,
          most: Math.max(1, Math.floor(hostBurst / sharers)),
        },
        { name: `upstream ${host} ${key}`, eachMs: 1000 / requestsPerSecond, most: burst },
      ].map((one) => ({ ...one, full: Math.max(fullAt.get(one.name) ?? 0, now) }))
      const usable = (most: number): number => (spare ? Math.max(1, Math.floor(most / 2)) : most)
      const waitMs = Math.max(...buckets.map(({ full, eachMs, most }) => full - now - (usable(most) - 1) * eachMs))
      if (waitMs > 0) return Math.ceil(waitMs)
      for (const { name, full, eachMs } of buckets) fullAt.set(name, full + eachMs)
      return 0
    },
    pausedMs(account) {
      return Math.max(0, Math.ceil((pauses.get(account)?.until ?? 0) - monotonic()))
    },
    failed(account, retryAfterMs) {
      const failures = (pauses.get(account)?.failures ?? 0) + 1
      const own = firstPauseMs * 2 ** Math.min(failures - 1, 20)
      pauses.set(account, { until: monotonic() + Math.min(retryAfterMs ?? own, longestPauseMs), failures })
    },
    succeeded(account) {
      pauses.delete(account)
    },
  }
}

/** Value of `Retry-After` in milliseconds from `now`, from one second to one hour; `undefined` if it cannot be read. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined || header.length > 64) return undefined
  const waitMs = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 1000), longestPauseMs)
}
