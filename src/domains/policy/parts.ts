import type { RuleCache } from '#domains/rules/rules.model.ts'
import type { Signal } from '#lib/signal.ts'
import type { GateCache } from './gates/gates.model.ts'
import type { PullRule } from './pull-rules/pull-rules.model.ts'
import type { ContentRulesCache } from './retention/content-rules-cache.ts'
import type { ViewCache } from './views/view-cache.ts'

/** Caches, signals and clients of the policy domain. They exist as long as the process runs. */
export type PolicyParts = {
  /** Signals that a retention plan has to be computed or applied. */
  retention: Signal
  /** Digests to which tags resolve in views, for recently pulled tags. */
  views: ViewCache
  /** Cooldown policies, at most 0.5 s stale. */
  pullRules: RuleCache<PullRule>
  /** Admission policies, at most 0.5 s stale, and their recent verdicts. */
  gates: GateCache
  /** Retention policies, tag protection rules, holds and quarantines, at most 0.5 s stale. */
  contentRules: ContentRulesCache
}
