import { kindOf } from '#lib/events/event-body.ts'

export const planStates = { PLANNING: 1, READY: 2, APPLYING: 3, APPLIED: 4 } as const
export type PlanState = (typeof planStates)[keyof typeof planStates]

/** Retention plan: the manifests that retention rules would delete in a scope, and the progress of deleting them. */
export type Plan = {
  id: number
  uid: string
  /** Uid of a repository, or of a group for all repositories below it. */
  scopeUid: string
  state: PlanState
  actor: string
  /** Uid of the identity that applied the plan. Empty before that. */
  appliedBy: string
  createTime: string
  /** Time of the last change of the state or the counts. */
  updateTime: string
  expireTime: string
  /** Position of planning: the current repository, and the last manifest that was examined. Empty at the start. */
  repo: string
  digest: string
  manifests: number
  bytes: number
  dryRunManifests: number
  dryRunBytes: number
  /** Number of manifests that are kept because a decision on them would need too many reads. */
  undecided: number
  truncated: number
  deleted: number
  leftOver: number
}

export const deletionReasons = { EXPIRED: 1, NOT_LAST: 2, PART: 3 } as const
export type DeletionReason = (typeof deletionReasons)[keyof typeof deletionReasons]
export const outcomes = { NONE: 0, DELETED: 1, KEPT: 2, GONE: 3 } as const
export type Outcome = (typeof outcomes)[keyof typeof outcomes]

/** Decision to delete a manifest. `level` is higher than the levels of all parents of the manifest. */
export type DeletionDecision = { why: DeletionReason; rule: string; until: string; partOf: string; level: number }

/** A manifest that a plan deletes. */
export type PlannedDeletion = DeletionDecision & {
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

/** Days after which a plan expires. */
export const planDays = 7
/** Most plans of an organization at a time. */
export const mostPlans = 20
/** Most manifests in a plan. */
export const mostDeletions = 100_000
