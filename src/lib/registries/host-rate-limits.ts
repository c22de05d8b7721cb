// Rate limits and pauses for requests to other registries. Each host has a token bucket, which holders that send requests at the
// same time share equally. Each upstream has a bucket of its own. If a registry asks for a pause, the pause applies to upstreams
// with the same account there, so other accounts are not delayed.
import { Newest } from '../caches/newest.ts'

/** Sender of requests: `holder` owns the upstream, and `key` identifies the upstream. */
export type RequestSender = {
  holder: string
  key: string
  requestsPerSecond: number
  /** If true, requests are allowed only while each bucket is more than half full, so they do not delay others. */
  spare?: boolean
}

export type HostRateLimits = {
  /**
   * Milliseconds until a request of this upstream to the host is allowed. If it is allowed now, counts the request and returns 0.
   */
  take(host: string, asker: RequestSender): number
  /** Milliseconds until the pause of this account ends. 0 if there is no pause. */
  pausedMs(account: string): number
  /**
   * Starts a pause, after the registry has asked for one or has not responded. Without `retryAfterMs`, each pause is twice as
   * long as the one before. A pause lasts at most one hour.
   */
  failed(account: string, retryAfterMs: number | undefined): void
  succeeded(account: string): void
}

/** Maximum number of requests of one upstream at once, after a time without requests. */
const burst = 10
/**
 * Limits on one host for all upstreams together: requests at once, and requests per second. All holders with a request in the
 * last second share them.
 */
const hostBurst = 30
const hostPerSecond = 20
const askingMs = 1_000
const firstPauseMs = 5_000
/** Longest pause, even if a registry asks for a longer one. */
const longestPauseMs = 3_600_000
const maxEntries = 10_000

/** `monotonic` returns milliseconds. */
export function createHostRateLimits(monotonic: () => number): HostRateLimits {
  // Time at which each bucket is full again.
  const fullAt = new Newest<string, number>(maxEntries)
  const pauses = new Newest<string, { until: number; failures: number }>(maxEntries)
  // Time of the last request of each holder, by host. The holder of the latest request comes last.
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
      // Each holder has a bucket of its own, so that many requests of one holder do not use up the share of the others.
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

/**
 * Value of a `Retry-After` header in milliseconds, limited to between one second and one hour. `undefined` if it cannot be read.
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined || header.length > 64) return undefined
  const waitMs = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 1000), longestPauseMs)
}
