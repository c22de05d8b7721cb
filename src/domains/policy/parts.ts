import type { Signal } from '#lib/signal.ts'
import type { GateCache } from './gates/gates.model.ts'
import type { PullRuleCache } from './pull-rules/pull-rules.model.ts'
import type { LawCache } from './retention/law-cache.ts'
import type { ViewCache } from './views/view-cache.ts'

/** What this domain holds in memory, as long as the process runs. */
export type PolicyParts = {
  /** A plan of what rules let go is to be made, or applied. */
  retention: Signal
  /** What tags stand for at an age, of those that were pulled so lately. */
  views: ViewCache
  /** How old what is pulled has to be, at most half a second old. */
  pullRules: PullRuleCache
  /** What has to be so of what is pulled, at most half a second old, and what was found out lately. */
  gates: GateCache
  /** What is kept, and what may not be moved or pulled, at most half a second old. */
  laws: LawCache
}
