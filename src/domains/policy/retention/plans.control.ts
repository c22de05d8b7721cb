import type { Handlers } from '#app.ts'
import {
  type PlannedDeletion as DeletionMessage,
  type RetentionPlan as PlanMessage,
  PlannedDeletion_Outcome,
  PlannedDeletion_Why,
  PlannedDeletionSchema,
  RetentionPlan_State,
  RetentionPlanSchema,
  RetentionPlansService,
} from '#gen/pinfold/control/registry/v1/retention_plans_pb.ts'
import { getting } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { exceptionOrders } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { deletionReasons, outcomes, type Plan, planStates, toRetentionPlanResource } from './plans.model.ts'
import * as service from './plans.service.ts'

const toPlan = messageOf(RetentionPlanSchema, { left: 'leftOver' })
const toDeletion = messageOf(PlannedDeletionSchema)
const rules = { fields: exceptionOrders, defaultOrder: 'uid' }
const deletionRules = { fields: { position: { column: 'position', sort: true } }, defaultOrder: 'position' } as const

export const retentionPlans: Handlers<typeof RetentionPlansService> = {
  async planRetention(call, { parent }) {
    return planMessage(await service.planRetention(call, parent))
  },

  getRetentionPlan: getting(service.getRetentionPlan, planMessage),
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

  applyRetention: getting(service.applyRetention, planMessage),
}

const { method } = RetentionPlansService
export const retentionPlanEvents: readonly EventBody[] = [
  eventBody(method.planRetention, toRetentionPlanResource, planMessage),
  eventBody(method.applyRetention, toRetentionPlanResource, planMessage),
]

function planMessage(plan: Plan): PlanMessage {
  const state = RetentionPlan_State[nameOf(planStates, plan.state)]
  return toPlan({ ...plan, truncated: plan.truncated === 1, state })
}

function deletionMessage(one: service.ListedDeletion): DeletionMessage {
  const { outcome } = one
  return toDeletion({
    ...one,
    dryRun: one.dryRun === 1,
    why: PlannedDeletion_Why[nameOf(deletionReasons, one.why)],
    outcome:
      outcome === outcomes.NONE
        ? PlannedDeletion_Outcome.OUTCOME_UNSPECIFIED
        : PlannedDeletion_Outcome[nameOf(outcomes, outcome) as 'KEPT'],
  })
}
