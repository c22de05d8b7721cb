// What organisations have said of what is kept, looked for at most twice a second as bindings are.
import type { Reader } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { type Law, lawFrom, noLaw, sizeOf } from './retention.model.ts'
import { lawVersion, readLaw } from './retention.store.ts'

/** How old an answer may be, so that a change on another node counts within a second. */
const maxAgeMs = 500
/** How much is remembered, in rules and patterns of all organisations. */
const maxSize = 200_000

/** What organisations have said, at most half a second old. After a commit that changed something, only what has changed is read again. */
export type LawCache = {
  /**
   * What the organisation of a place has said; `fresh` for what the reader knows, however short ago it was asked. A transaction may ask with itself as the reader where it is not known. What
   * it reads is not remembered, since it may be of the past, or never come to be.
   */
  of(reader: Reader, place: string, options?: { fresh: boolean }): Promise<Law>
  /** Nobody has said anything, as was found a moment ago. */
  isEmpty(): boolean
  clear(): void
}

type Entry = { law: Law; version: number; size: number; at: number; epoch: number }

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createLawCache(db: Reader, monotonic: () => number): LawCache {
  const entries = new Map<string, Entry>()
  let size = 0
  let none = Number.NEGATIVE_INFINITY
  let epoch = 0
  const isFresh = (at: number): boolean => monotonic() - at < maxAgeMs

  function forget(organization: string): void {
    size -= entries.get(organization)?.size ?? 0
    entries.delete(organization)
  }

  function remember(organization: string, entry: Entry): void {
    forget(organization)
    if (entry.size > maxSize) return
    entries.set(organization, entry)
    size += entry.size
    while (size > maxSize) forget(entries.keys().next().value!)
  }

  return {
    async of(reader, place, { fresh } = { fresh: false }) {
      if (!fresh && isFresh(none)) return noLaw
      const organization = rootOf(place)
      const known = entries.get(organization)
      if (!fresh && known && known.epoch === epoch && isFresh(known.at)) return known.law
      const [started, at] = [epoch, monotonic()]
      const { version, any } = await lawVersion(reader, organization)
      // Read before what it is the version of, which may then be newer, and never older.
      const law =
        known?.version === version ? known.law : version === 0 ? noLaw : lawFrom(await readLaw(reader, organization))
      if (reader !== db) return law
      if (!any && started === epoch) none = at
      else if (any) remember(organization, { law, version, size: sizeOf(law), at, epoch: started })
      return law
    },
    isEmpty: () => isFresh(none),
    clear() {
      epoch++
      none = Number.NEGATIVE_INFINITY
    },
  }
}
