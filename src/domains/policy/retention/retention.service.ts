// Retention rules, tag rules, holds and quarantines. Callers must have checked permissions before.

import type { Tx } from '#db/sql.ts'
import { type EndingKind, limitHolding, problemOfReason } from '#domains/rules/endings.service.ts'
import { maxPatterns } from '#domains/rules/patterns.model.ts'
import type { RuleKind } from '#domains/rules/rules.service.ts'
import { limitReached } from '#domains/rules/scopes.service.ts'
import { isDigest } from '#lib/digest.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import type { Kind } from '#lib/events/event-body.ts'
import { checkFields, type Fields } from '#lib/fields.ts'
import { isUid, rootOf } from '#lib/uid.ts'
import {
  type FormerRule,
  holdType,
  isAtLeastAsLong,
  lastDateOf,
  type Mark,
  maxDays,
  maxExceptions,
  maxLast,
  maxMovers,
  mostFormer,
  mostFormerPatterns,
  mostMarks,
  mostPatterns,
  mostRules,
  type NewMark,
  patternsOf,
  quarantineType,
  type Retention,
  type RetentionRule,
  retentionFields,
  retentionRuleType,
  type Scoped,
  type TagRuleSettings,
  tagRuleSettingsFields,
  tagRuleType,
  toHoldResource,
  toQuarantineResource,
  toRetentionRuleResource,
  toTagRuleResource,
} from './retention.model.ts'
import * as store from './retention.store.ts'

/** Common parts of retention rules and tag rules. */
function scopedKind<T extends Retention | TagRuleSettings>(
  kind: Pick<RuleKind<Scoped<T>, T>, 'type' | 'event' | 'table' | 'changed'> & { resource: Kind<Scoped<T>> },
  fields: Fields<T>,
  check: (says: T) => void,
): RuleKind<Scoped<T>, T> {
  return {
    ...{ ...kind, fields, quota: { name: 'rules of this kind', most: mostRules } },
    textOf: ({ says }) => says,
    read(says) {
      check(says)
      return { says }
    },
    async changed(tx, at, change) {
      await kind.changed?.(tx, at, change)
      const { uid } = change.after ?? change.before!
      if (change.after) await rulesChanged(tx, uid)
      else await store.raiseRulesVersion(tx, rootOf(uid))
    },
  }
}

export const retentionRuleKind = scopedKind<Retention>(
  {
    type: retentionRuleType,
    event: 'control.registry.retention.rule',
    resource: toRetentionRuleResource,
    table: store.retentionRuleTable,
    async changed(tx, at, { before, after }) {
      if (before) await keepFormer(tx, at, before, after?.says)
    },
  },
  retentionFields,
  checkRetention,
)

export const tagRuleKind = scopedKind<TagRuleSettings>(
  {
    type: tagRuleType,
    event: 'control.registry.retention.tag_rule',
    resource: toTagRuleResource,
    table: store.tagRuleTable,
  },
  tagRuleSettingsFields,
  checkTagRule,
)

/**
 * Makes caches read the rules of the organization again. Throws RESOURCE_EXHAUSTED if the organization now has too many patterns.
 */
async function rulesChanged(tx: Tx, scope: string): Promise<void> {
  const organization = rootOf(scope)
  await store.raiseRulesVersion(tx, organization)
  const { rules, tagRules, holds } = await store.readContentRules(tx, organization)
  const ofRules = [...rules, ...tagRules].map(({ says }) => patternsOf(says))
  const ofHolds = holds.map(({ tags }) => tags.length)
  const used = [...ofRules, ...ofHolds].reduce((sum, count) => sum + count, 0)
  if (used > mostPatterns) throw limitReached('patterns of tags in rules and holds', mostPatterns, used)
}

function markKind(
  event: 'hold' | 'quarantine',
  kind: Pick<EndingKind<Mark, NewMark>, 'type' | 'table'> & { resource: Kind<Mark> },
): EndingKind<Mark, NewMark> {
  const name = `control.registry.retention.${event}` as const
  return {
    ...{ ...kind, events: { created: `${name}.created`, ended: `${name}.released` } },
    limit: limitHolding(kind.table, `${event}s`, mostMarks),
    read(_call, _scope, mark) {
      checkMark(mark, event)
      return mark
    },
    async changed(tx, { uid, endTime }) {
      if (endTime === '') await rulesChanged(tx, uid)
      else await store.raiseRulesVersion(tx, rootOf(uid))
    },
  }
}

export const holdKind = markKind('hold', { type: holdType, table: store.holdTable, resource: toHoldResource })

/** A quarantine refuses all pulls of a digest in its scope. */
export const quarantineKind = markKind('quarantine', {
  ...{ type: quarantineType, table: store.quarantineTable, resource: toQuarantineResource },
})

/**
 * Stores the former settings of a rule if they gave dates that the new settings do not give. `after` is undefined for a deleted
 * rule. Throws RESOURCE_EXHAUSTED if the organization has too many former rules or patterns.
 */
async function keepFormer(
  tx: Tx,
  at: { group: string; now: string },
  { uid, scopeUid, says }: RetentionRule,
  after: Retention | undefined,
): Promise<void> {
  const former: FormerRule = { uid, scopeUid, says, endTime: at.now }
  if (says.mode !== 'ENFORCE' || lastDateOf(former) === '') return
  if (after?.mode === 'ENFORCE' && isAtLeastAsLong(after, says)) return
  const all = await store.formerRules(tx, rootOf(scopeUid))
  const isOver = (one: FormerRule): boolean => {
    return lastDateOf(one) <= at.now || (one.scopeUid === scopeUid && isAtLeastAsLong(says, one.says))
  }
  const kept = all.filter((one) => !isOver(one))
  const patterns = [...kept, former].reduce((sum, one) => sum + patternsOf(one.says), 0)
  if (kept.length >= mostFormer) throw limitReached('former rules whose dates are to come', mostFormer, kept.length)
  if (patterns > mostFormerPatterns) {
    throw limitReached('patterns of tags in former rules whose dates are to come', mostFormerPatterns, patterns)
  }
  for (const { id } of all.filter(isOver)) await store.deleteFormerRule(tx, id)
  await store.insertFormerRule(tx, at.group, former)
}

/** Throws INVALID_ARGUMENT and names every invalid field of a retention rule. */
function checkRetention(says: Retention): void {
  const { keepDaysAfter, keepLast, untaggedDays, forever, mode } = says
  const problems = problemsOfTags(says)
  const check = (field: string, value: number, most: number) => {
    if (value < 0 || value > most) problems.push({ field, description: `must be from 0 to ${most}` })
  }
  check('keep_days_after', keepDaysAfter, maxDays)
  check('keep_last', keepLast, maxLast)
  check('untagged_days', untaggedDays, maxDays)
  if (keepDaysAfter === 0 && keepLast === 0 && untaggedDays === 0 && !forever) {
    const description = 'is required, unless keep_last, untagged_days or forever is set'
    problems.push({ field: 'keep_days_after', description })
  }
  if (mode === '') problems.push({ field: 'mode', description: 'is required' })
  checkFields(retentionFields, { ...says, mode: mode || 'OFF' }, problems)
}

/** Throws INVALID_ARGUMENT and names every invalid field of a tag rule. */
function checkTagRule(says: TagRuleSettings): void {
  const { immutable, movers, keepListed = false } = says
  const problems = problemsOfTags(says)
  if (movers.length > maxMovers)
    problems.push({ field: 'movers', description: `must have at most ${maxMovers} entries` })
  else if (!movers.every((uid) => isUid(uid))) {
    problems.push({ field: 'movers', description: 'must be uids of identities' })
  }
  if (!immutable && movers.length === 0 && !keepListed) {
    problems.push({ field: 'immutable', description: 'is required, unless movers or keep_listed is set' })
  }
  checkFields(tagRuleSettingsFields, says, problems)
}

function problemsOfTags({ tags, exceptTags }: Pick<Retention, 'tags' | 'exceptTags'>): FieldViolation[] {
  const problems: FieldViolation[] = []
  if (tags.length > maxPatterns)
    problems.push({ field: 'tags', description: `must have at most ${maxPatterns} entries` })
  if (exceptTags.length > maxExceptions) {
    problems.push({ field: 'except_tags', description: `must have at most ${maxExceptions} entries` })
  }
  return problems
}

/** Throws INVALID_ARGUMENT and names every invalid field of a hold or quarantine. Only holds can have tags. */
function checkMark(mark: { digest: string; tags: string[]; reason: string }, what: 'hold' | 'quarantine'): void {
  const { digest, tags } = mark
  const problems = problemsOfTags({ tags, exceptTags: [] })
  const member = (name: string): string => (what === 'hold' ? `hold.${name}` : name)
  if (what === 'hold' && digest === '' && tags.length === 0) {
    problems.push({ field: member('digest'), description: 'is required, unless tags is set' })
  } else if (digest !== '' && tags.length > 0) {
    problems.push({ field: member('tags'), description: 'cannot be combined with digest' })
  } else if ((digest !== '' || what === 'quarantine') && !isDigest(digest)) {
    problems.push({ field: member('digest'), description: 'is not a digest' })
  }
  if (tags.some((tag) => !retentionFields.tags.pattern.test(tag))) {
    problems.push({ field: member('tags'), description: `tags must match "${retentionFields.tags.pattern.source}"` })
  }
  problems.push(...problemsOfReason(mark.reason, member('reason')))
  refuseIfAny(problems)
}

export function problemsOfReason(reason: string, field: string): FieldViolation[] {
  const description = problemOfReason(reason)
  return description === undefined ? [] : [{ field, description }]
}
