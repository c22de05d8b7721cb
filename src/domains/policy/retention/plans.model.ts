import { kindOf } from '#lib/events/event-body.ts'

export const planStates = { PLANNING: 1, READY: 2, APPLYING: 3, APPLIED: 4 } as const
export type PlanState = (typeof planStates)[keyof typeof planStates]

/** What rules let go in a place, and what has become of it. */
export type Plan = {
  id: number
  uid: string
  /** A group, for all below it, or a repo. */
  scopeUid: string
  state: PlanState
  actor: string
  /** Empty before somebody has applied it. */
  appliedBy: string
  createTime: string
  /** Time of the last change of its state or counts. */
  updateTime: string
  expireTime: string
  /** The repo that is being looked at, and the last manifest that was; empty at the start. */
  repo: string
  digest: string
  manifests: number
  bytes: number
  dryRunManifests: number
  dryRunBytes: number
  /** Manifests that are kept since it would take too much to decide on them. */
  undecided: number
  truncated: number
  deleted: number
  leftOver: number
}

export const whys = { EXPIRED: 1, NOT_LAST: 2, PART: 3 } as const
export type Why = (typeof whys)[keyof typeof whys]
export const outcomes = { NONE: 0, DELETED: 1, KEPT: 2, GONE: 3 } as const
export type Outcome = (typeof outcomes)[keyof typeof outcomes]

/** That a manifest goes. `level` is higher than that of all that it belongs to. */
export type LetGo = { why: Why; rule: string; until: string; partOf: string; level: number }

/** A manifest that a plan deletes. */
export type PlannedDeletion = LetGo & {
  position: number
  repoUid: string
  digest: string
  bytes: number
  /** 1 where only rules in DRY_RUN let it go. */
  dryRun: number
  outcome: Outcome
}

export const aRetentionPlan = kindOf<Plan>('retention-plan')
export const retentionPlanType = 'registry.pinfold.dev/RetentionPlan'

/** How long a plan can be read and applied. */
export const planDays = 7
/** How many an organisation may have at a time. */
export const mostPlans = 20
/** How many manifests one names. */
export const mostDeletions = 100_000
