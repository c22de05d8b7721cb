// What a rule, a hold or a quarantine may say.

import { problemOfReason } from '#domains/rules/endings.service.ts'
import { maxPatterns } from '#domains/rules/patterns.model.ts'
import { isDigest } from '#lib/digest.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import { checkFields } from '#lib/fields.ts'
import { isUid } from '#lib/uid.ts'
import {
  maxDays,
  maxExceptions,
  maxLast,
  maxMovers,
  type Retention,
  retentionFields,
  type TagLaw,
  tagLawFields,
} from './retention.model.ts'

/** Throws INVALID_ARGUMENT that names every field which is wrong. */
export function checkRetention(says: Retention): void {
  const { keepDaysAfter, keepLast, untaggedDays, forever, mode } = says
  const problems = problemsOfTags(says)
  const check = (field: string, value: number, most: number) => {
    if (value < 0 || value > most) problems.push({ field, description: `must be from 0 to ${most}` })
  }
  check('keep_days_after', keepDaysAfter, maxDays)
  check('keep_last', keepLast, maxLast)
  check('untagged_days', untaggedDays, maxDays)
  if (keepDaysAfter === 0 && keepLast === 0 && untaggedDays === 0 && !forever) {
    const description = 'is required, or keep_last, untagged_days or forever is'
    problems.push({ field: 'keep_days_after', description })
  }
  if (mode === '') problems.push({ field: 'mode', description: 'is required' })
  checkFields(retentionFields, { ...says, mode: mode || 'OFF' }, problems)
}

/** Throws INVALID_ARGUMENT that names every field which is wrong. */
export function checkLaw(says: TagLaw): void {
  const { immutable, movers, keepListed = false } = says
  const problems = problemsOfTags(says)
  if (movers.length > maxMovers)
    problems.push({ field: 'movers', description: `must hold at most ${maxMovers} entries` })
  else if (!movers.every((uid) => isUid(uid))) {
    problems.push({ field: 'movers', description: 'must hold uids of identities' })
  }
  if (!immutable && movers.length === 0 && !keepListed) {
    problems.push({ field: 'immutable', description: 'is required, or movers or keep_listed is' })
  }
  checkFields(tagLawFields, says, problems)
}

function problemsOfTags({ tags, exceptTags }: Pick<Retention, 'tags' | 'exceptTags'>): FieldViolation[] {
  const problems: FieldViolation[] = []
  if (tags.length > maxPatterns)
    problems.push({ field: 'tags', description: `must hold at most ${maxPatterns} entries` })
  if (exceptTags.length > maxExceptions) {
    problems.push({ field: 'except_tags', description: `must hold at most ${maxExceptions} entries` })
  }
  return problems
}

/** Throws INVALID_ARGUMENT that names every field which is wrong; only a hold may be about tags. */
export function checkMark(mark: { digest: string; tags: string[]; reason: string }, what: 'hold' | 'quarantine'): void {
  const { digest, tags } = mark
  const problems = problemsOfTags({ tags, exceptTags: [] })
  const member = (name: string): string => (what === 'hold' ? `hold.${name}` : name)
  if (what === 'hold' && digest === '' && tags.length === 0) {
    problems.push({ field: member('digest'), description: 'is required, or tags is' })
  } else if (digest !== '' && tags.length > 0) {
    problems.push({ field: member('tags'), description: 'cannot be given with a digest' })
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
