import { isIPv6 } from 'node:net'
import { tooMany } from '../errors.ts'

export type LimitKind = 'source' | 'issuer'

/** How often each client address, and each outside issuer, may ask at a door that needs no token of ours. */
export type Limits = {
  /** Counts one request; throws RESOURCE_EXHAUSTED with RetryInfo when there were too many. */
  check(kind: LimitKind, key: string): void
}

type Bucket = { tokens: number; filledAt: number }

const maxBuckets = 100_000

/** Token buckets: a minute's worth at once, refilled evenly. `monotonic` gives milliseconds. */
export function createLimits(perMinute: Record<LimitKind, number>, monotonic: () => number): Limits {
  const buckets = new Map<string, Bucket>()
  return {
    check(kind, key) {
      const size = perMinute[kind]
      const name = `${kind} ${kind === 'source' ? networkOf(key) : key}`
      const now = monotonic()
      const bucket = buckets.get(name) ?? { tokens: size, filledAt: now }
      bucket.tokens = Math.min(size, bucket.tokens + ((now - bucket.filledAt) * size) / 60_000)
      bucket.filledAt = now
      // Whoever asked last is kept longest, so that a flood of new names does not free an old one.
      buckets.delete(name)
      buckets.set(name, bucket)
      if (buckets.size > maxBuckets) buckets.delete(buckets.keys().next().value!)
      if (bucket.tokens < 1) {
        throw tooMany('too many requests; try again later', Math.max(1, Math.ceil(((1 - bucket.tokens) * 60) / size)))
      }
      bucket.tokens--
    },
  }
}

/** One client usually has a whole /64 of IPv6 addresses. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped) return mapped
  const [head = '', tail = ''] = address.split('::')
  const left = head.split(':').filter(Boolean)
  const right = tail.split(':').filter(Boolean)
  const groups = [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'), ...right]
  const network = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
