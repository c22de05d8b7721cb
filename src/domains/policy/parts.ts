import type { RuleCache } from '#domains/rules/rules.model.ts'
import type { Signal } from '#lib/signal.ts'
import type { GateCache } from './gates/gates.model.ts'
import type { PullRule } from './pull-rules/pull-rules.model.ts'
import type { LawCache } from './retention/law-cache.ts'
import type { ViewCache } from './views/view-cache.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type PolicyParts = {
  /** Signals that a retention plan is to be computed or applied. */
  retention: Signal
  /** Digests of tags in views, for tags that were pulled recently. */
  views: ViewCache
  /** Pull rules, at most 0.5 s stale. */
  pullRules: RuleCache<PullRule>
  /** Admission gates, at most 0.5 s stale, and their recent verdicts. */
  gates: GateCache
  /** Retention rules, tag rules, holds and quarantines, at most 0.5 s stale. */
  laws: LawCache
}
