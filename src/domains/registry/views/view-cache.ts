// What tags stand for at an age, as was worked out a moment ago: of a tag that has moved lately, that takes several looks into
// the ledger, and a plain pull none.
import { createHash } from 'node:crypto'
import type { Db } from '#db/sql.ts'
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
   * something else is old enough. An image that another server brings back may count some seconds later.
   */
  of(repo: LedgerRepo, tag: string, question: Question): Promise<Served | Nothing>
  clear(): void
}

/**
 * How old an answer may be: for what another server brings back, which is all that nothing looks for, and for whoever changes an
 * embedded database past its server.
 */
const maxAgeMs = { shared: 5000, alone: 500 }
const maxEntries = 10_000

/** `from` and `until` are times of questions. */
type Entry = { served: Served; at: number; from: string; until: string }

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createViewCache(db: Db, monotonic: () => number): ViewCache {
  // Moments are for clients to choose, so they take no room from what everybody asks for.
  const [ofNow, ofMoments] = [new Map<string, Entry>(), new Map<string, Entry>()]
  const ageMs = db.shared ? maxAgeMs.shared : maxAgeMs.alone
  let epoch = 0

  function fresh(key: string, { until, isNow }: Question): Served | undefined {
    const known = (isNow ? ofNow : ofMoments).get(key)
    if (!known || monotonic() - known.at >= ageMs || until < known.from || until >= known.until) return undefined
    return known.served
  }

  /**
   * One process alone writes to an embedded database, and forgets all answers with each commit that could change one. Servers that
   * share a database look whether the tag has moved, and whether what is served is still there.
   */
  async function remembered(key: string, repo: LedgerRepo, tag: string, question: Question) {
    const served = fresh(key, question)
    if (!served || !db.shared) return served
    const { chosen, latest } = served
    const isStill = await standsStill(db, repo, tag, { until: rowsOf(question), latest, chosen: chosen.digest })
    return isStill && fresh(key, question) === served ? served : undefined
  }

  /**
   * On a shared database, one look tells what a tag was at a moment, with or without an answer; and other tags, which could make
   * a digest old enough and so no more, are not looked at.
   */
  const isKept = ({ age }: Question) => !db.shared || age?.countFrom === 'tag'

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
        entries.delete(key)
        entries.set(key, { served, at, from: question.until, until })
        if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
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
  const passing = accepted.length === 0 ? '' : createHash('sha256').update(accepted.join()).digest('base64')
  return [id, tag, isNow ? '' : until, age?.ms, age?.hold, age?.countFrom, passing].join(' ')
}
