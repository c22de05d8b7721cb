// Cooldown policies: validation, and their cache. Callers must have checked permissions before.
import { exceptionKind } from '#domains/rules/exceptions.service.ts'
import { maxPatterns } from '#domains/rules/patterns.model.ts'
import { createRuleCache, type RuleSource } from '#domains/rules/rule-cache.service.ts'
import type { Rule, RuleCache } from '#domains/rules/rules.model.ts'
import type { RuleKind } from '#domains/rules/rules.service.ts'
import { type FieldViolation, invalid, refuseIfAny } from '#lib/errors.ts'
import { violationsOf } from '#lib/fields.ts'
import { isUid, rootOf } from '#lib/uid.ts'
import { defaultHold, durationText, maxAge, maxHold, readDuration } from '../views/views.model.ts'
import {
  maxExceptionDays,
  maxIdentities,
  mostRules,
  type PullRule,
  type PullRuleText,
  pullRuleExceptionType,
  pullRuleFields,
  pullRuleType,
  toPullRuleExceptionResource,
  toPullRuleResource,
} from './pull-rules.model.ts'
import { pullRuleExceptionTable, pullRuleTable } from './pull-rules.store.ts'

export const pullRuleKind: RuleKind<PullRule, PullRuleText> = {
  type: pullRuleType,
  event: 'control.registry.pull_rule',
  resource: toPullRuleResource,
  table: pullRuleTable,
  quota: { name: 'rules of pulls', most: mostRules },
  fields: pullRuleFields,
  textOf,
  read: (text, scope) => readRule(scope, text),
}

export const pullRuleExceptionKind = exceptionKind(
  {
    type: pullRuleExceptionType,
    events: {
      created: 'control.registry.pull_rule.exception.created',
      ended: 'control.registry.pull_rule.exception.revoked',
    },
    resource: toPullRuleExceptionResource,
    table: pullRuleExceptionTable,
  },
  { field: 'pull_rule_exception', quota: 'exceptions from rules of pulls', days: maxExceptionDays },
)

export function createPullRuleCache(source: RuleSource): RuleCache<PullRule> {
  return createRuleCache(source, { rules: pullRuleTable, exceptions: pullRuleExceptionTable }, { most: mostRules })
}

/** Settings of a policy in the format of requests. */
export function textOf({ name, tags, exceptTags, identities, belowGroup, age, mode }: PullRule): PullRuleText {
  const spans = { minAge: durationText(age.ms), hold: durationText(age.hold), countFrom: age.countFrom }
  return { name, tags, exceptTags, identities, belowGroup, ...spans, mode }
}

function readRule(scope: string, text: PullRuleText): Omit<PullRule, keyof Rule> {
  const problems: FieldViolation[] = violationsOf(pullRuleFields, text)
  const say = (field: string, description: string | undefined) => {
    if (description !== undefined) problems.push({ field, description })
  }
  const { name, tags, exceptTags, identities, belowGroup, countFrom, mode } = text
  const [ms, hold] = [readDuration(text.minAge), text.hold === '' ? defaultHold : readDuration(text.hold)]
  if (text.minAge !== '') say('min_age', problemOfSpan(ms, maxAge))
  say('hold', problemOfSpan(hold, maxHold))
  say('tags', problemOfLength(tags, maxPatterns))
  say('except_tags', problemOfLength(exceptTags, maxPatterns))
  say('identities', problemOfLength(identities, maxIdentities) ?? problemOfIdentities(identities, belowGroup))
  if (belowGroup !== '' && !isUid(belowGroup)) say('below_group', 'is not a uid')
  else if (belowGroup !== '' && rootOf(belowGroup) !== rootOf(scope))
    say('below_group', 'must be in the organization of the policy')
  refuseIfAny(problems)
  if (mode === '') throw invalid({ field: 'mode', description: 'is required' })
  return { name, tags, exceptTags, identities, belowGroup, age: { ms: ms!, hold: hold!, countFrom }, mode }
}

function problemOfSpan(ms: number | undefined, most: number): string | undefined {
  if (ms === undefined) return 'must be a duration such as 12h, 7d or 2w'
  return ms > most ? `must be at most ${durationText(most)}` : undefined
}

const problemOfLength = (list: readonly string[], most: number): string | undefined =>
  list.length > most ? `must have at most ${most} entries` : undefined

function problemOfIdentities(identities: readonly string[], belowGroup: string): string | undefined {
  if (identities.length > 0 === (belowGroup !== '')) return 'either identities or below_group is required, but not both'
  return identities.every((uid) => isUid(uid)) ? undefined : 'must be uids of identities'
}
