import { Newest } from '../caches/newest.ts'
import { AppError, tooMany } from '../errors.ts'
import { networkOf } from './source-address.ts'

/**
 * Kinds of limited requests. Token exchanges, requests without a token, and refused credentials are counted by client address.
 * Accepted outside tokens are counted by identity, and by organization and issuer. SCIM requests are counted by organization and
 * by address. Device codes are counted by the person who types them. Requests that are sent to AWS are counted by address and
 * identity.
 */
export type LimitKind =
  | 'source'
  | 'request'
  | 'refusal'
  | 'issuer'
  | 'identity'
  | 'guess'
  | 'aws'
  | 'scim'
  | 'scimSource'

/** Limits on requests of each kind in a minute. */
export type Limits = {
  /** Counts a request. Throws RESOURCE_EXHAUSTED with RetryInfo if there were too many. */
  check(kind: LimitKind, key: string): void
  /** Throws like `check`, but does not count a request. */
  look(kind: LimitKind, key: string): void
}

type Bucket = { tokens: number; filledAt: number }

const mostKeys = 50_000
const byAddress: readonly LimitKind[] = ['source', 'request', 'refusal', 'scimSource']

/**
 * Limits as token buckets: all requests of a minute may come at once, and the bucket refills evenly. `monotonic` returns
 * milliseconds. `nodes` returns the number of servers that share the limits.
 */
export function createLimits(
  perMinute: Record<LimitKind, number>,
  monotonic: () => number,
  maxKeys: number = mostKeys,
  nodes: () => number = () => 1,
): Limits {
  // Each kind has a map of its own, so that many names of one kind do not evict those of another.
  const kinds = new Map<LimitKind, Newest<string, Bucket>>()

  const bucketOf = (kind: LimitKind, key: string): Bucket => {
    const size = Math.max(1, perMinute[kind] / nodes())
    const buckets = kinds.get(kind) ?? new Newest<string, Bucket>(maxKeys)
    kinds.set(kind, buckets)
    const name = byAddress.includes(kind) ? networkOf(key) : key
    const now = monotonic()
    const bucket = buckets.get(name) ?? { tokens: size, filledAt: now }
    bucket.tokens = Math.min(size, bucket.tokens + ((now - bucket.filledAt) * size) / 60_000)
    bucket.filledAt = now
    // Sets the key again, so that the map evicts the keys that were used longest ago. A flood of new keys then does not reset an
    // active one.
    buckets.set(name, bucket)
    if (bucket.tokens < 1) {
      throw tooMany('too many requests; retry later', Math.max(1, Math.ceil(((1 - bucket.tokens) * 60) / size)))
    }
    return bucket
  }
  return {
    check: (kind, key) => void bucketOf(kind, key).tokens--,
    look: (kind, key) => void bucketOf(kind, key),
  }
}

/**
 * Checks a credential, and counts it if it is refused. A valid credential works even if its source has sent too many invalid
 * ones. For an invalid one, such a source gets RESOURCE_EXHAUSTED instead of the refusal.
 */
export async function countRefusals<T>(limits: Limits, source: string, look: () => Promise<T>): Promise<T> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof AppError && (error.code === 'UNAUTHENTICATED' || error.code === 'PERMISSION_DENIED')) {
      limits.check('refusal', source)
    }
    throw error
  }
}
