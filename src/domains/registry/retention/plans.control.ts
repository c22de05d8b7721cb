import type { Call, Handlers } from '#app.ts'
import {
  type PlannedDeletion as DeletionMessage,
  type RetentionPlan as PlanMessage,
  PlannedDeletion_Outcome,
  PlannedDeletion_Why,
  RetentionPlan_State,
  RetentionPlansService,
} from '#gen/pinfold/control/registry/v1/retention_plans_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { type Page, readPage, toListed } from '#lib/lists/paging.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { timestamp } from '#lib/timestamp.ts'
import { aRetentionPlan, outcomes, type Plan, type PlannedDeletion, planStates, whys } from './plans.model.ts'
import * as service from './plans.service.ts'
import { uidFields } from './retention.model.ts'

const byUid = { fields: uidFields, defaultOrder: 'uid' }

function pageOf(call: Call, { pageSize, pageToken }: { pageSize: number; pageToken: string }, filters: unknown): Page {
  return readPage(call, { pageSize, pageToken, orderBy: '', skip: 0 }, byUid, filters)
}

export const retentionPlans: Handlers<typeof RetentionPlansService> = {
  async planRetention(call, { parent }) {
    return planMessage(await service.planRetention(call, parent))
  },

  async getRetentionPlan(call, { uid }) {
    return planMessage(await service.getRetentionPlan(call, uid))
  },

  async listRetentionPlans(call, { scopeUid, ...page }) {
    const { items, next } = await service.listRetentionPlans(call, pageOf(call, page, [scopeUid]), scopeUid)
    const $typeName = 'pinfold.control.registry.v1.ListRetentionPlansResponse'
    return { $typeName, retentionPlans: items.map(planMessage), nextPageToken: next }
  },

  async listPlannedDeletions(call, { planUid, ...rest }) {
    const page = pageOf(call, rest, [planUid])
    const rows = await service.deletionsOf(call, planUid, Number(page.after?.uid ?? 0), page.size + 1)
    const { items, next } = toListed(call, page, rows, 0)
    const $typeName = 'pinfold.control.registry.v1.ListPlannedDeletionsResponse'
    return { $typeName, deletions: items.map(deletionMessage), nextPageToken: next }
  },

  async applyRetention(call, { uid }) {
    return planMessage(await service.applyRetention(call, uid))
  },
}

const { method } = RetentionPlansService
export const retentionPlanEvents: readonly EventBody[] = [
  eventBody(method.planRetention, aRetentionPlan, planMessage),
  eventBody(method.applyRetention, aRetentionPlan, planMessage),
]

function planMessage(plan: Plan): PlanMessage {
  const { uid, actor, appliedBy, createTime, expireTime } = plan
  return {
    $typeName: 'pinfold.control.registry.v1.RetentionPlan',
    ...{ uid, actor, appliedBy, truncated: plan.truncated === 1 },
    state: RetentionPlan_State[nameOf(planStates, plan.state)],
    manifests: BigInt(plan.manifests),
    bytes: BigInt(plan.bytes),
    dryRunManifests: BigInt(plan.dryRunManifests),
    dryRunBytes: BigInt(plan.dryRunBytes),
    undecided: BigInt(plan.undecided),
    deleted: BigInt(plan.deleted),
    left: BigInt(plan.leftOver),
    createTime: timestamp(createTime),
    expireTime: timestamp(expireTime),
  }
}

function deletionMessage(one: PlannedDeletion): DeletionMessage {
  const { repoUid, digest, rule, partOf, until, outcome } = one
  return {
    $typeName: 'pinfold.control.registry.v1.PlannedDeletion',
    ...{ repoUid, digest, rule, partOf, dryRun: one.dryRun === 1, bytes: BigInt(one.bytes) },
    why: PlannedDeletion_Why[nameOf(whys, one.why)],
    outcome:
      outcome === outcomes.NONE
        ? PlannedDeletion_Outcome.OUTCOME_UNSPECIFIED
        : PlannedDeletion_Outcome[nameOf(outcomes, outcome) as 'KEPT'],
    ...(until === '' ? {} : { until: timestamp(until) }),
  }
}
