// Cache of resolved tags in views. To resolve a recently moved tag by age takes several queries on the tag history. A plain pull
// takes at most one query.
import type { Db } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import { digestOf } from '#lib/digest.ts'
import {
  explain,
  type Question,
  resolveTag,
  rowsOf,
  type Served,
  stableUntil,
  type Unresolved,
} from './resolve.service.ts'
import { isUnchangedTag, type LedgerRepo } from './views.store.ts'

export type ViewCache = {
  /**
   * Resolves the tag. If a digest is served, caches the result. Changes by this server take effect at once, and so does the time
   * at which another digest is old enough. Deletions and quarantines by other servers take effect after 0.5 s, as for pulls by
   * digest. Content that other servers restore or release is served after up to 5 s.
   */
  of(repo: LedgerRepo, tag: string, question: Question): Promise<Served | Unresolved>
  clear(): void
}

/**
 * Time in ms for which the served digest is assumed to be available without a check. Other servers may delete it, or a program
 * may change an embedded database directly.
 */
const maxSeenMs = 500
/** Maximum age of an entry in ms. Until then, each pull checks only the digest and the last move of the tag. */
const maxAgeMs = 5000
const maxEntries = 10_000

/** Cached result. It is valid for requests as of times between `from` and `until`. The served digest was available at `seen`. */
type Entry = { served: Served; at: number; seen: number; from: string; until: string }

/** Creates a cache. `monotonic` returns milliseconds of a clock that never goes back. */
export function createViewCache(db: Db, monotonic: () => number): ViewCache {
  // Clients choose any time for snapshots. Snapshot entries have their own cache, so that they do not displace entries for the
  // present.
  const [ofNow, ofMoments] = [new Newest<string, Entry>(maxEntries), new Newest<string, Entry>(maxEntries)]
  let epoch = 0

  /**
   * True if a cached result needs a check for newer moves of the tag. An embedded database has one writer process, which clears
   * the cache with each relevant commit. The digest of a tag at a past time does not change.
   */
  const isLookedAt = ({ isNow }: Question) => db.shared && isNow

  function fresh(key: string, question: Question): Entry | undefined {
    const { until, isNow } = question
    const known = (isNow ? ofNow : ofMoments).get(key)
    const ageMs = isLookedAt(question) ? maxAgeMs : maxSeenMs
    if (!known || monotonic() - known.at >= ageMs || until < known.from || until >= known.until) return undefined
    return known
  }

  async function remembered(key: string, repo: LedgerRepo, tag: string, question: Question) {
    const known = fresh(key, question)
    if (!known || !isLookedAt(question)) return known?.served
    const { chosen, latest } = known.served
    const at = monotonic()
    const isSeen = at - known.seen < maxSeenMs
    const look = { until: rowsOf(question), latest, chosen: isSeen ? undefined : chosen.digest }
    if (!(await isUnchangedTag(db, repo, tag, look)) || fresh(key, question) !== known) return undefined
    if (!isSeen) known.seen = at
    return known.served
  }

  /**
   * False if moves of other tags can change the age of a digest. On a shared database, such results are not cached, because the
   * cache does not check moves of other tags.
   */
  const isKept = ({ age }: Question) => !(db.shared && age?.countFrom === 'repo')

  return {
    async of(repo, tag, question) {
      const key = isKept(question) ? keyOf(repo, tag, question) : ''
      const known = key === '' ? undefined : await remembered(key, repo, tag, question)
      if (known) return known
      const [started, at] = [epoch, monotonic()]
      const resolved = await resolveTag(db, repo, tag, question)
      if (!resolved.chosen) return resolved
      const { chosen, latest, passed } = resolved
      const { skipped } = await explain(db, repo, tag, question, { ...resolved, passed: passed.slice(0, 1) })
      const served = { chosen, latest, heldUntil: skipped[0]?.eligible ?? '' }
      if (key === '') return served
      const until = await stableUntil(db, repo, tag, question, { ...served, passed })
      if (started === epoch) {
        const entries = question.isNow ? ofNow : ofMoments
        entries.set(key, { served, at, seen: at, from: question.until, until })
      }
      return served
    },
    clear() {
      epoch++
      ofNow.clear()
      ofMoments.clear()
    },
  }
}

function keyOf({ id }: LedgerRepo, tag: string, { until, isNow, age, accepted = [] }: Question): string {
  // The key has a hash of the accepted digests, because there can be as many as exemptions.
  const passing = accepted.length === 0 ? '' : digestOf('sha256', Buffer.from(accepted.join()))
  return [id, tag, isNow ? '' : until, age?.ms, age?.hold, age?.countFrom, passing].join(' ')
}
