import type { Ground } from '#app.ts'
import { createSignal } from '#lib/signal.ts'
import { createGateCache } from './gates/gates.service.ts'
import type { PolicyParts } from './parts.ts'
import { createPullRuleCache } from './pull-rules/pull-rules.service.ts'
import { createContentRulesCache } from './retention/content-rules-cache.ts'
import { createViewCache } from './views/view-cache.ts'

export function openPolicy(ground: Ground): PolicyParts {
  const { db, monotonic } = ground
  return {
    retention: createSignal(),
    views: createViewCache(db, monotonic),
    pullRules: createPullRuleCache(ground),
    gates: createGateCache(ground),
    contentRules: createContentRulesCache(db, monotonic),
  }
}
