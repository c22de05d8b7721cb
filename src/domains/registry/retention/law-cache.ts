// What organisations have said of what is kept, read at most twice a second as bindings are.
import type { Reader } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { type Law, mostMarks, mostRules, noLaw } from './retention.model.ts'
import { anyLaw, marksBelow, rulesBelow } from './retention.store.ts'

/** How old an answer may be, so that a change on another node counts within a second. */
const maxAgeMs = 500
const maxEntries = 1000

/** What organisations have said, at most half a second old; commits of this server clear it. */
export type LawCache = {
  /** What the organisation of a place has said, read by `reader` where that is not known: a transaction may ask. */
  of(reader: Reader, place: string): Promise<Law>
  clear(): void
}

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createLawCache(monotonic: () => number): LawCache {
  const entries = new Map<string, { law: Law; at: number }>()
  let none = Number.NEGATIVE_INFINITY
  let epoch = 0
  const isFresh = (at: number): boolean => monotonic() - at < maxAgeMs

  return {
    async of(reader, place) {
      const organization = rootOf(place)
      if (isFresh(none)) return noLaw
      const known = entries.get(organization)
      if (known && isFresh(known.at)) return known.law
      const [started, at] = [epoch, monotonic()]
      if (!(await anyLaw(reader))) {
        if (started === epoch) none = at
        return noLaw
      }
      const live = { after: '', most: mostMarks, live: true }
      const law: Law = {
        rules: await rulesBelow(reader, 'retention_rules', organization, '', mostRules),
        tagRules: await rulesBelow(reader, 'tag_rules', organization, '', mostRules),
        holds: await marksBelow(reader, 'holds', organization, live),
        quarantined: await marksBelow(reader, 'quarantined', organization, live),
      }
      if (started !== epoch) return law
      entries.delete(organization)
      entries.set(organization, { law, at })
      if (entries.size > maxEntries) entries.delete(entries.keys().next().value!)
      return law
    },
    clear() {
      epoch++
      none = Number.NEGATIVE_INFINITY
      entries.clear()
    },
  }
}
