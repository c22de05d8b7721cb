// Detects live owners without comparing two clocks. An owner raises a number, and a watcher measures with its own monotonic clock
// how long the number has not changed.

export type Heartbeats<K> = {
  /** Records the number of an owner. Returns true if it has not changed for the length of a lease. */
  stoodStill(key: K, owner: string, beat: number): boolean
  /** Forgets all others. */
  keepOnly(keys: ReadonlySet<K>): void
}

/** `monotonic` gives milliseconds and never goes back. */
export function watchHeartbeats<K>(leaseMs: number, monotonic: () => number): Heartbeats<K> {
  const watched = new Map<K, { owner: string; beat: number; since: number }>()
  return {
    stoodStill(key, owner, beat) {
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
  /** A renewal that was sent at `sent` has arrived. */
  renewed(sent: number): void
  /** True if no other server can have the lease within the next `neededMs` milliseconds. */
  holds(neededMs?: number): boolean
}

/**
 * The owner's side. A watcher may have seen a renewal as early as it was sent, so trust counts from then, however late the
 * answer came.
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
