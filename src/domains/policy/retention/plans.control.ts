import type { Handlers } from '#app.ts'
import {
  type PlannedDeletion as DeletionMessage,
  type RetentionPlan as PlanMessage,
  PlannedDeletion_Outcome,
  PlannedDeletion_Why,
  RetentionPlan_State,
  RetentionPlansService,
} from '#gen/pinfold/control/registry/v1/retention_plans_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { exceptionOrders } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { timestamp } from '#lib/timestamp.ts'
import { aRetentionPlan, outcomes, type Plan, planStates, whys } from './plans.model.ts'
import * as service from './plans.service.ts'

const rules = { fields: exceptionOrders, defaultOrder: 'uid' }
const deletionRules = { fields: { position: { column: 'position', sort: true } }, defaultOrder: 'position' } as const

export const retentionPlans: Handlers<typeof RetentionPlansService> = {
  async planRetention(call, { parent }) {
    return planMessage(await service.planRetention(call, parent))
  },

  async getRetentionPlan(call, { uid }) {
    return planMessage(await service.getRetentionPlan(call, uid))
  },

  async listRetentionPlans(call, request) {
    const page = readPage(call, request, rules, [request.scopeUid])
    const listed = await service.listRetentionPlans(call, page, request.scopeUid)
    const response = 'pinfold.control.registry.v1.ListRetentionPlansResponse'
    return listResponse(response, 'retentionPlans', listed, planMessage, request)
  },

  async listPlannedDeletions(call, request) {
    const page = readPage(call, request, deletionRules, [request.planUid])
    const listed = await service.listDeletions(call, request.planUid, page)
    const response = 'pinfold.control.registry.v1.ListPlannedDeletionsResponse'
    return listResponse(response, 'deletions', listed, deletionMessage, request)
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
    updateTime: timestamp(plan.updateTime),
    expireTime: timestamp(expireTime),
  }
}

function deletionMessage(one: service.ListedDeletion): DeletionMessage {
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
