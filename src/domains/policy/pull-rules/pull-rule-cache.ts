// The rules of organisations, read at most twice a second as bindings are.
import type { Reader } from '#db/sql.ts'
import { Newest } from '#lib/caches/newest.ts'
import { mostExceptions, mostRules, type PullRuleCache, type RulesOfOrganization } from './pull-rules.model.ts'
import { anyRule, exceptionList, ruleList } from './pull-rules.store.ts'

/** How old an answer may be, so that a change on another node counts within a second. */
const maxAgeMs = 500
const maxEntries = 1000

/** `monotonic` gives milliseconds of a clock that never steps. */
export function createPullRuleCache(reader: Reader, clock: () => Date, monotonic: () => number): PullRuleCache {
  const entries = new Newest<string, { rules: Promise<RulesOfOrganization | undefined>; at: number }>(maxEntries)
  let none = { known: false, at: 0 }
  let epoch = 0

  async function load(organization: string): Promise<RulesOfOrganization | undefined> {
    const [started, at] = [epoch, monotonic()]
    const any = await anyRule(reader)
    if (started === epoch) none = { known: !any, at }
    if (!any) return undefined
    const rules = await ruleList.below(reader, organization, {}, mostRules)
    if (rules.length === 0) return undefined
    const now = clock().toISOString()
    return { rules, exceptions: await exceptionList.below(reader, organization, { now }, mostExceptions) }
  }

  return {
    isEmpty: () => none.known && monotonic() - none.at < maxAgeMs,
    of(organization) {
      const now = monotonic()
      const known = entries.get(organization)
      if (known && now - known.at < maxAgeMs) return known.rules
      const entry = { rules: load(organization), at: now }
      entries.set(organization, entry)
      entry.rules.catch(() => {
        if (entries.get(organization) === entry) entries.delete(organization)
      })
      return entry.rules
    },
    clear() {
      epoch++
      none = { known: false, at: 0 }
      entries.clear()
    },
  }
}
