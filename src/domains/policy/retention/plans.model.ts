import { kindOf } from '#lib/events/event-body.ts'

export const planStates = { PLANNING: 1, READY: 2, APPLYING: 3, APPLIED: 4 } as const
export type PlanState = (typeof planStates)[keyof typeof planStates]

/** Retention plan: the manifests that retention rules would delete in a scope, and the progress of deleting them. */
export type Plan = {
  id: number
  uid: string
  /** A group, for all repositories below it, or a repository. */
  scopeUid: string
  state: PlanState
  actor: string
  /** Empty before the plan is applied. */
  appliedBy: string
  createTime: string
  /** Time of the last change of its state or counts. */
  updateTime: string
  expireTime: string
  /** Position of planning: the current repository and the last manifest that was judged. Empty at the start. */
  repo: string
  digest: string
  manifests: number
  bytes: number
  dryRunManifests: number
  dryRunBytes: number
  /** Manifests that stay because a decision on them would need too many reads. */
  undecided: number
  truncated: number
  deleted: number
  leftOver: number
}

export const whys = { EXPIRED: 1, NOT_LAST: 2, PART: 3 } as const
export type Why = (typeof whys)[keyof typeof whys]
export const outcomes = { NONE: 0, DELETED: 1, KEPT: 2, GONE: 3 } as const
export type Outcome = (typeof outcomes)[keyof typeof outcomes]

/** Verdict that a manifest is to be deleted. `level` is higher than the levels of all of its parents. */
export type LetGo = { why: Why; rule: string; until: string; partOf: string; level: number }

/** A manifest that a plan deletes. */
export type PlannedDeletion = LetGo & {
  position: number
  repoUid: string
  digest: string
  bytes: number
  /** 1 if only rules in DRY_RUN would delete the manifest. */
  dryRun: number
  outcome: Outcome
}

export const toRetentionPlanResource = kindOf<Plan>('retention-plan')
export const retentionPlanType = 'registry.pinfold.dev/RetentionPlan'

/** Days until a plan expires. */
export const planDays = 7
/** Plans that an organization can have at a time. */
export const mostPlans = 20
/** Manifests that a plan can name. */
export const mostDeletions = 100_000
