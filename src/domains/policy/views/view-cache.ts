// What tags stand for at a moment or an age, as was worked out a moment ago: for an age, of a tag that has moved lately, that takes
// several looks into the ledger, and a plain pull takes none, or one.
import type { Db } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import { digestOf } from '#lib/digest.ts'
import {
  explain,
  type Nothing,
  type Question,
  resolveTag,
  rowsOf,
  type Served,
  steadyUntil,
} from './resolve.service.ts'
import { type LedgerRepo, standsStill } from './views.store.ts'

export type ViewCache = {
  /**
   * What the tag stands for; what is served is remembered. Whatever changes it counts at once, and so does the time from which
   * something else is old enough. What another server deletes or quarantines counts after half a second, as for pulls by digest,
   * and what it brings back some seconds later.
   */
  of(repo: LedgerRepo, tag: string, question: Question): Promise<Served | Nothing>
  clear(): void
}

/** How old it may be that what is served was there: for what other servers do, and whoever changes an embedded database past its own. */
const maxSeenMs = 500
/** How old an answer may be where that is looked for again, and moves of the tag with each pull. */
const maxAgeMs = 5000
const maxEntries = 10_000

/** `from` and `until` are times of questions; what is served was there at `seen`. */
type Entry = { served: Served; at: number; seen: number; from: string; until: string }

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createViewCache(db: Db, monotonic: () => number): ViewCache {
  // Moments are for clients to choose, so they take no room from what everybody asks for.
  const [ofNow, ofMoments] = [new Newest<string, Entry>(maxEntries), new Newest<string, Entry>(maxEntries)]
  let epoch = 0

  /**
   * One process alone writes to an embedded database, and forgets all answers with each commit that could change one. Servers that
   * share a database look whether the tag has moved. What a tag was at a moment stays.
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
    if (!(await standsStill(db, repo, tag, look)) || fresh(key, question) !== known) return undefined
    if (!isSeen) known.seen = at
    return known.served
  }

  /** Other tags, which could make a digest old enough, and so no more, are not looked at. */
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
      const until = await steadyUntil(db, repo, tag, question, { ...served, passed })
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
  // There may be as many accepted digests as exceptions.
  const passing = accepted.length === 0 ? '' : digestOf('sha256', Buffer.from(accepted.join()))
  return [id, tag, isNow ? '' : until, age?.ms, age?.hold, age?.countFrom, passing].join(' ')
}
