// Detection of live owners without comparing two clocks. An owner regularly raises a number. A watcher measures with its own
// monotonic clock how long the number has stayed the same.

export type Heartbeats<K> = {
  /** Records the number of an owner. Returns true if the number has stayed the same for the length of a lease. */
  hasStalled(key: K, owner: string, beat: number): boolean
  /** Removes all other keys. */
  keepOnly(keys: ReadonlySet<K>): void
}

/** `monotonic` returns milliseconds and never goes back. */
export function watchHeartbeats<K>(leaseMs: number, monotonic: () => number): Heartbeats<K> {
  const watched = new Map<K, { owner: string; beat: number; since: number }>()
  return {
    hasStalled(key, owner, beat) {
      let known = watched.get(key)
      if (known?.owner !== owner || known.beat !== beat) {
        known = { owner, beat, since: monotonic() }
        watched.set(key, known)
      }
      return monotonic() - known.since >= leaseMs
    },
    keepOnly(keys) {
      for (const key of watched.keys()) if (!keys.has(key)) watched.delete(key)
    },
  }
}

export type Trust = {
  /** Records a successful renewal that was sent at the time `sent`. */
  renewed(sent: number): void
  /** True if no other server can take over the lease within the next `neededMs` milliseconds. */
  holds(neededMs?: number): boolean
}

/**
 * Creates the owner's view of its lease. A watcher may have seen the renewal right after it was sent. So the time of the lease
 * starts then, not when the response arrives.
 */
export function createTrust(leaseMs: number, monotonic: () => number): Trust {
  let until = Number.NEGATIVE_INFINITY
  return {
    renewed(sent) {
      until = Math.max(until, sent + leaseMs)
    },
    holds: (neededMs = 0) => monotonic() + neededMs < until,
  }
}
