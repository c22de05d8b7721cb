import type { Ground } from '#app.ts'
import { createSignal } from '#lib/signal.ts'
import { createGateCache } from './gates/gate-cache.ts'
import type { PolicyParts } from './parts.ts'
import { createPullRuleCache } from './pull-rules/pull-rule-cache.ts'
import { createLawCache } from './retention/law-cache.ts'
import { createViewCache } from './views/view-cache.ts'

export function openPolicy({ db, clock, monotonic }: Ground): PolicyParts {
  return {
    retention: createSignal(),
    views: createViewCache(db, monotonic),
    pullRules: createPullRuleCache(db, clock, monotonic),
    gates: createGateCache(db, clock, monotonic),
    laws: createLawCache(db, monotonic),
  }
}
