// Cache of the rules of organizations, read from the database at most twice a second.
import type { Reader } from '#db/sql.ts'
import { createSharedResults, maxStaleMs } from '#lib/caches/short-lived-cache.ts'
import { mostExceptions } from './exceptions.service.ts'
import type { DigestException, Rule, RuleCache, RulesInForce } from './rules.model.ts'
import type { EndingTable, RuleTable } from './rules.store.ts'

const maxEntries = 1000

/** Parts that a cache of rules needs. `monotonic` returns milliseconds of a clock that never goes back. */
export type RuleSource = { db: Reader; clock: () => Date; monotonic: () => number }

/** Creates a cache of rules. Only rules for which `isOn` returns true are cached. */
export function createRuleCache<T extends Rule>(
  { db, clock, monotonic }: RuleSource,
  { rules, exceptions }: { rules: RuleTable<T>; exceptions: EndingTable<DigestException> },
  { most, isOn = () => true }: { most: number; isOn?: (rule: T) => boolean },
): RuleCache<T> {
  const organizations = createSharedResults<RulesInForce<T> | undefined>(monotonic, {
    ageMs: maxStaleMs,
    entries: maxEntries,
  })
  let none = { known: false, at: 0 }
  let epoch = 0

  async function load(organization: string): Promise<RulesInForce<T> | undefined> {
    const [started, at] = [epoch, monotonic()]
    const any = await rules.any(db)
    if (started === epoch) none = { known: !any, at }
    if (!any) return undefined
    const inForce = (await rules.list.below(db, organization, {}, most)).filter(isOn)
    if (inForce.length === 0) return undefined
    const now = clock().toISOString()
    return { rules: inForce, exceptions: await exceptions.list.below(db, organization, { now }, mostExceptions) }
  }

  return {
    isEmpty: () => none.known && monotonic() - none.at < maxStaleMs,
    of: (organization) => organizations.of(organization, () => load(organization)),
    clear() {
      epoch++
      none = { known: false, at: 0 }
      organizations.clear()
    },
  }
}
