import type { RuleCache } from '#domains/rules/rules.model.ts'
import type { Signal } from '#lib/signal.ts'
import type { GateCache } from './gates/gates.model.ts'
import type { PullRule } from './pull-rules/pull-rules.model.ts'
import type { LawCache } from './retention/law-cache.ts'
import type { ViewCache } from './views/view-cache.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type PolicyParts = {
  /** A retention plan is to be made, or applied. */
  retention: Signal
  /** Digests of tags as of an age, for tags that were pulled lately. */
  views: ViewCache
  /** Pull rules, at most half a second old. */
  pullRules: RuleCache<PullRule>
  /** Admission gates, at most half a second old, and their recent verdicts. */
  gates: GateCache
  /** Retention rules, tag rules, holds and quarantines, at most half a second old. */
  laws: LawCache
}
