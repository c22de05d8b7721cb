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
import { type LedgerRepo, lastRow } from './views.store.ts'

export type ViewCache = {
  /**
   * What the tag stands for; only what is served is remembered. A move of the tag counts at once, and so does the time from
   * which something else is old enough. What another server deletes or quarantines counts after half a second.
   */
  of(repo: LedgerRepo, tag: string, question: Question): Promise<Served | Nothing>
  clear(): void
}

/** How old an answer may be: for what other servers do, and for whoever changes the database past an embedded one's. */
const maxAgeMs = 500
const maxEntries = 10_000

/** `from` and `until` are times of questions about now. */
type Entry = { served: Served; at: number; from: string; until: string }

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createViewCache(db: Db, monotonic: () => number): ViewCache {
  const entries = new Map<string, Entry>()
  let epoch = 0

  async function holds({ served: { latest }, ...entry }: Entry, repo: LedgerRepo, tag: string, question: Question) {
    const { until, isNow } = question
    if (monotonic() - entry.at >= maxAgeMs) return false
    if (isNow && (until < entry.from || until >= entry.until)) return false
    // One process alone writes to an embedded database, and forgets all answers with each commit that could change one.
    if (!db.shared) return true
    const last = await lastRow(db, repo, tag, rowsOf(question))
    return last !== undefined && last.time === latest.since && last.digest === latest.digest && !last.deleted
  }

  return {
    async of(repo, tag, question) {
      const key = keyOf(repo, tag, question)
      const known = entries.get(key)
      if (known && (await holds(known, repo, tag, question))) return known.served
      const [started, at] = [epoch, monotonic()]
      const resolved = await resolveTag(db, repo, tag, question)
      if (!resolved.chosen) return resolved
      const { chosen, latest, passed } = resolved
      const { skipped } = await explain(db, repo, tag, question, { ...resolved, passed: passed.slice(0, 1) })
      const served = { chosen, latest, heldUntil: skipped[0]?.eligible ?? '' }
      if (!question.age) return served
      const until = await steadyUntil(db, repo, tag, question, resolved)
      if (started === epoch) {
        entries.delete(key)
        entries.set(key, { served, at, from: question.until, until })
        if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
      }
      return served
    },
    clear() {
      epoch++
      entries.clear()
    },
  }
}

function keyOf({ id }: LedgerRepo, tag: string, { until, isNow, age, accepted = [] }: Question): string {
  const moment = isNow ? '' : until
  // There may be as many accepted digests as exceptions.
  const passing = accepted.length === 0 ? '' : createHash('sha256').update(accepted.join()).digest('base64')
  return [id, tag, moment, age?.ms, age?.hold, age?.countFrom, passing].join(' ')
}
