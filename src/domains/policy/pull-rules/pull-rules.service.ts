// Rules of how old what is pulled has to be, and exceptions from them: who may make them is decided before.
import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import {
  type ExceptionKind,
  endExceptionNow,
  getExceptionOf,
  listExceptionsOf,
  makeException,
  type NewException,
} from '#domains/rules/exceptions.service.ts'
import { maxPatterns } from '#domains/rules/patterns.model.ts'
import { groupOf, groupOfRow, limitReached, listBelow } from '#domains/rules/places.service.ts'
import { type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { applyPatch, type Patch, violationsOf } from '#lib/fields.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { isUid, newUid, rootOf } from '#lib/uid.ts'
import { defaultHold, durationText, maxAge, maxHold, readDuration } from '../views/views.model.ts'
import {
  aPullRule,
  aPullRuleException,
  maxExceptionDays,
  maxIdentities,
  maxReason,
  mostExceptions,
  mostRules,
  type PullRule,
  type PullRuleException,
  type PullRuleText,
  pullRuleExceptionType,
  pullRuleFields,
  pullRuleType,
} from './pull-rules.model.ts'
import * as store from './pull-rules.store.ts'

/** Throws NOT_FOUND for a place that is not there. */
export async function createRule(call: Call, scope: string, text: PullRuleText): Promise<PullRule> {
  const times = { createTime: call.now, updateTime: call.now }
  const rule: PullRule = { uid: newUid(scope), scopeUid: scope, ...times, ...readRule(scope, text) }
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const there = await store.ruleList.below(tx, rootOf(scope), {}, mostRules)
    if (there.length >= mostRules) throw limitReached('rules of pulls', mostRules, there.length)
    await store.insertRule(tx, group, rule)
    await emit(tx, call, 'control.registry.pull_rule.created', { subject: rule.uid, group, resource: aPullRule(rule) })
  })
  call.log.info('pull rule created', { uid: rule.uid })
  return rule
}

export async function updateRule(call: Call, uid: string, patch: Patch<PullRuleText>): Promise<PullRule> {
  const rule = await call.app.db.tx(async (tx) => {
    const before = found(await store.findRule(tx, uid), pullRuleType, uid)
    const text = applyPatch<PullRuleText>(pullRuleFields, textOf(before), patch)
    const after: PullRule = { ...before, ...readRule(before.scopeUid, text), updateTime: call.now }
    await store.patchRule(tx, after)
    const group = await groupOfRow(tx, before)
    await emit(tx, call, 'control.registry.pull_rule.updated', { subject: uid, group, resource: aPullRule(after) })
    return after
  })
  call.log.info('pull rule updated', { uid, paths: patch.paths })
  return rule
}

export async function deleteRule(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const rule = found(await store.findRule(tx, uid), pullRuleType, uid)
    await store.deleteRule(tx, uid)
    const group = await groupOfRow(tx, rule)
    const resource = aDeletion({ uid })
    await emit(tx, call, 'control.registry.pull_rule.deleted', { subject: uid, group, resource })
  })
  call.log.info('pull rule deleted', { uid })
}

export async function getRule(call: Call, uid: string): Promise<PullRule> {
  return found(await store.findRule(call.app.db, uid), pullRuleType, uid)
}

/** A page of those at and below the place, or all places that the caller may look at. */
export async function listRules(call: Call, page: Page, scope: string): Promise<Listed<PullRule>> {
  return listBelow(call, page, scope, store.ruleList, {})
}

const exceptions: ExceptionKind = {
  type: pullRuleExceptionType,
  field: 'pull_rule_exception',
  quota: 'exceptions from rules of pulls',
  limits: { days: maxExceptionDays, reason: maxReason, live: mostExceptions },
  store,
  created: (tx, call, { exception, group }) =>
    emit(tx, call, 'control.registry.pull_rule.exception.created', {
      ...{ subject: exception.uid, group },
      resource: aPullRuleException(exception),
    }),
  revoked: (tx, call, { exception, group }) =>
    emit(tx, call, 'control.registry.pull_rule.exception.revoked', {
      ...{ subject: exception.uid, group },
      resource: aPullRuleException(exception),
    }),
}

/** Throws NOT_FOUND for a place that is not there. */
export async function createException(call: Call, scope: string, input: NewException): Promise<PullRuleException> {
  const exception = await makeException(exceptions, call, scope, input)
  call.log.info('pull rule exception created', { uid: exception.uid })
  return exception
}

/** Ends it now; one that has ended stays as it is. */
export async function revokeException(call: Call, uid: string): Promise<PullRuleException> {
  return endExceptionNow(exceptions, call, uid)
}

export async function getException(call: Call, uid: string): Promise<PullRuleException> {
  return getExceptionOf(exceptions, call, uid)
}

export async function listExceptions(
  call: Call,
  page: Page,
  wanted: { scope: string; withEnded: boolean },
): Promise<Listed<PullRuleException>> {
  return listExceptionsOf(exceptions, call, page, wanted)
}

/** A rule as it is written. */
export function textOf({ name, tags, exceptTags, identities, belowGroup, age, mode }: PullRule): PullRuleText {
  const spans = { minAge: durationText(age.ms), hold: durationText(age.hold), countFrom: age.countFrom }
  return { name, tags, exceptTags, identities, belowGroup, ...spans, mode }
}

function readRule(scope: string, text: PullRuleText): Pick<PullRule, (keyof PullRuleText & keyof PullRule) | 'age'> {
  const problems: FieldViolation[] = violationsOf(pullRuleFields, text)
  const say = (field: string, description: string | undefined) => {
    if (description !== undefined) problems.push({ field, description })
  }
  const { name, tags, exceptTags, identities, belowGroup, countFrom, mode } = text
  const [ms, hold] = [readDuration(text.minAge), text.hold === '' ? defaultHold : readDuration(text.hold)]
  if (text.minAge !== '') say('min_age', problemOfSpan(ms, maxAge))
  say('hold', problemOfSpan(hold, maxHold))
  say('tags', tooLong(tags, maxPatterns))
  say('except_tags', tooLong(exceptTags, maxPatterns))
  say('identities', tooLong(identities, maxIdentities) ?? problemOfIdentities(identities, belowGroup))
  if (belowGroup !== '' && !isUid(belowGroup)) say('below_group', 'is not a uid')
  else if (belowGroup !== '' && rootOf(belowGroup) !== rootOf(scope)) say('below_group', 'is in another organisation')
  refuseIfAny(problems)
  if (mode === '') throw invalid({ field: 'mode', description: 'is required' })
  return { name, tags, exceptTags, identities, belowGroup, age: { ms: ms!, hold: hold!, countFrom }, mode }
}

function problemOfSpan(ms: number | undefined, most: number): string | undefined {
  if (ms === undefined) return 'must be a time span such as 12h, 7d or 2w'
  return ms > most ? `must be at most ${durationText(most)}` : undefined
}

const tooLong = (list: readonly string[], most: number): string | undefined =>
  list.length > most ? `must hold at most ${most} entries` : undefined

function problemOfIdentities(identities: readonly string[], belowGroup: string): string | undefined {
  if (identities.length > 0 === (belowGroup !== '')) return 'is required, or below_group is, and not both'
  return identities.every((uid) => isUid(uid)) ? undefined : 'must hold uids of identities'
}
