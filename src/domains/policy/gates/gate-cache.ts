// The gates of organisations, read at most twice a second as bindings are, and what they said a moment ago.
import type { Reader } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import { type GateCache, type GatesOfOrganization, mostExceptions, mostGates, type Verdict } from './gates.model.ts'
import { anyGate, exceptionList, gateList } from './gates.store.ts'

/** How old an answer may be, so that a change on another node counts within a second. */
const maxAgeMs = 500
const maxEntries = 1000
/** How old a verdict may be: what is found in an image counts after so long at most. */
const verdictMs = 5000
const maxVerdicts = 10_000

type Aged<T> = { value: Promise<T>; at: number }

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createGateCache(reader: Reader, clock: () => Date, monotonic: () => number): GateCache {
  const organizations = new Newest<string, Aged<GatesOfOrganization | undefined>>(maxEntries)
  const verdicts = new Newest<string, Aged<Verdict>>(maxVerdicts)
  let none = { known: false, at: 0 }
  let epoch = 0

  async function load(organization: string): Promise<GatesOfOrganization | undefined> {
    const [started, at] = [epoch, monotonic()]
    const any = await anyGate(reader)
    if (started === epoch) none = { known: !any, at }
    if (!any) return undefined
    const all = await gateList.below(reader, organization, {}, mostGates)
    const gates = all.filter(({ mode }) => mode !== 'OFF')
    if (gates.length === 0) return undefined
    const now = clock().toISOString()
    return { gates, exceptions: await exceptionList.below(reader, organization, { now }, mostExceptions) }
  }

  /** What is known of a key and not too old, else what `make` gives. */
  function kept<T>(entries: Newest<string, Aged<T>>, key: string, ms: number, make: () => Promise<T>): Promise<T> {
    const now = monotonic()
    const known = entries.get(key)
    if (known && now - known.at < ms) return known.value
    const entry = { value: make(), at: now }
    entries.set(key, entry)
    entry.value.catch(() => {
      if (entries.get(key) === entry) entries.delete(key)
    })
    return entry.value
  }

  return {
    isEmpty: () => none.known && monotonic() - none.at < maxAgeMs,
    of: (organization) => kept(organizations, organization, maxAgeMs, () => load(organization)),
    verdict: (key, judge) => kept(verdicts, key, verdictMs, judge),
    clear() {
      epoch++
      none = { known: false, at: 0 }
      organizations.clear()
    },
  }
}
