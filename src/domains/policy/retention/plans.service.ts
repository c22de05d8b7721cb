// Creates, lists and applies retention plans. A background job computes the plans and deletes the manifests.
import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import { groupOf, limitReached, listBelow } from '#domains/rules/scopes.service.ts'
import { failedPrecondition, found } from '#lib/errors.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { isAtOrBelow, newUid, parentOf, rootOf } from '#lib/uid.ts'
import {
  mostPlans,
  type Plan,
  type PlannedDeletion,
  planDays,
  planStates,
  retentionPlanType,
  toRetentionPlanResource,
} from './plans.model.ts'
import * as store from './plans.store.ts'
import { daysAfter } from './retention.model.ts'

/**
 * Creates a plan. Earlier plans of the same scope expire, unless they are in progress. Throws NOT_FOUND if the scope does not
 * exist.
 */
export async function planRetention(call: Call, scope: string): Promise<Plan> {
  const uid = newUid(scope)
  const isRuled = await hasRules(call, scope)
  const plan = await call.app.db.tx(async (tx) => {
    const [group, organization] = [await groupOf(tx, scope), rootOf(scope)]
    await store.supersede(tx, scope, call.now)
    const there = await store.countPlans(tx, organization, call.now)
    if (there >= mostPlans) throw limitReached('plans of retention at a time', mostPlans, there)
    const times = { createTime: call.now, expireTime: daysAfter(call.now, planDays) }
    const state = isRuled ? planStates.PLANNING : planStates.READY
    await store.insertPlan(
      tx,
      { organization, group },
      { uid, scopeUid: scope, state, actor: call.caller.uid, ...times },
    )
    const made = (await store.findPlan(tx, uid))!
    const about = { subject: uid, group, resource: toRetentionPlanResource(made) }
    if (!isRuled) await emit(tx, call, 'control.registry.retention.planned', about)
    return made
  })
  call.app.retention.notify()
  call.log.info('retention plan created', { uid })
  return plan
}

/** True if a retention rule is active in the scope. Otherwise the plan is empty. */
async function hasRules({ app }: Call, scope: string): Promise<boolean> {
  const { rules } = await app.contentRules.of(app.db, scope)
  return rules.some(({ scopeUid, says }) => {
    return says.mode !== 'OFF' && (isAtOrBelow(scope, scopeUid) || isAtOrBelow(scopeUid, scope))
  })
}

export async function getRetentionPlan(call: Call, uid: string): Promise<Plan> {
  return found(await store.findPlan(call.app.db, uid), retentionPlanType, uid)
}

export function listRetentionPlans(call: Call, page: Page, scope: string): Promise<Listed<Plan>> {
  return listBelow(call, page, scope, store.planList, {})
}

/** Planned deletion in a list. `position` is the position in the plan as text, for page tokens. */
export type ListedDeletion = Omit<PlannedDeletion, 'position'> & { uid: string; position: string }

export async function listDeletions(call: Call, uid: string, page: Page): Promise<Listed<ListedDeletion>> {
  const { id } = await getRetentionPlan(call, uid)
  const { db } = call.app
  const rows = await store.deletionPage(db, id, page)
  const listed = rows.map((row) => ({ ...row, uid: String(row.position), position: String(row.position) }))
  return toListed(call, page, listed, await store.countDeletions(db, id))
}

/** Starts the deletions of a plan. Throws FAILED_PRECONDITION if the plan is not ready, was applied before or has expired. */
export async function applyRetention(call: Call, uid: string): Promise<Plan> {
  const plan = await call.app.db.tx(async (tx) => {
    const before = found(await store.findPlan(tx, uid), retentionPlanType, uid)
    const problem = problemOf(before, call.now)
    if (problem) throw failedPrecondition({ type: 'PLAN_STATE', subject: uid, description: problem })
    const applied = { state: planStates.APPLYING, appliedBy: call.caller.uid, updateTime: call.now }
    const after: Plan = { ...before, ...applied, repo: '', digest: '' }
    await store.noteProgress(tx, before, after, call.now)
    return after
  })
  call.app.retention.notify()
  call.log.info('retention plan applied', { uid, scope: parentOf(uid) })
  return plan
}

function problemOf({ state, expireTime }: Plan, now: string): string | undefined {
  if (state === planStates.PLANNING) return 'the plan is not ready yet; wait until its state is READY'
  if (state !== planStates.READY) return 'the plan was already applied; create a new plan'
  return expireTime <= now ? `the plan expired at ${expireTime}; create a new plan` : undefined
}
