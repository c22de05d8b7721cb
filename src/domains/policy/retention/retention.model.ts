import { aboutTags, cacheMatches, type IsAbout, type TagPatterns, tagPatterns } from '#domains/rules/patterns.model.ts'
import type { Ending, Rule } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { isAtOrBelow } from '#lib/uid.ts'

export type RetentionMode = 'OFF' | 'DRY_RUN' | 'ENFORCE'

/** Settings of a retention rule. A setting of 0 has no effect. */
export type Retention = {
  name: string
  /** Patterns of tags. An empty list covers all tags. */
  tags: string[]
  exceptTags: string[]
  /** Days of protection after a matching tag was assigned to another digest or deleted. */
  keepDaysAfter: number
  /** Number of digests that are protected: the newest ones of matching tags in a repository. */
  keepLast: number
  forever: boolean
  /** Days of protection for manifests that never had a tag. */
  untaggedDays: number
  /** Empty if the request named no mode. */
  mode: RetentionMode | ''
}

/** Settings of a tag rule. It can make tags immutable, restrict who moves them, and protect the manifests that indexes list. */
export type TagRuleSettings = {
  name: string
  tags: string[]
  exceptTags: string[]
  immutable: boolean
  /** Uids of identities that may move the tags, also with their push tokens. If empty, no further permission is needed. */
  movers: string[]
  /** Missing in rules of earlier versions. */
  keepListed?: boolean
}

/** A rule with its settings. */
export type Scoped<T> = Rule & { says: T }
export type RetentionRule = Scoped<Retention>
export type TagRule = Scoped<TagRuleSettings>

/** Former settings of an enforced rule that was changed or deleted. Retention dates that these settings gave remain valid. */
export type FormerRule = Pick<RetentionRule, 'uid' | 'scopeUid' | 'says'> & { endTime: string }

/** A hold or a quarantine. It applies until a member releases it. */
export type Mark = Ending & {
  /** Empty if the hold is on `tags`. */
  digest: string
  tags: string[]
}
export type NewMark = Pick<Mark, 'digest' | 'tags' | 'reason'>

/** A rule with a function that matches its tag patterns. */
export type WithPatterns<T> = T & { isAbout: IsAbout }

/** Retention rules, tag rules, holds and quarantines of an organization. */
export type ContentRules = {
  rules: readonly WithPatterns<RetentionRule>[]
  former: readonly WithPatterns<FormerRule>[]
  tagRules: readonly WithPatterns<TagRule>[]
  holds: readonly WithPatterns<Mark>[]
  quarantined: readonly Mark[]
}

export const noRules: ContentRules = { rules: [], former: [], tagRules: [], holds: [], quarantined: [] }

/** Compiles the tag patterns of stored rules. A hold on a digest matches no tag. */
export function toContentRules(stored: {
  rules: readonly RetentionRule[]
  former?: readonly FormerRule[]
  tagRules: readonly TagRule[]
  holds: readonly Mark[]
  quarantined: readonly Mark[]
}): ContentRules {
  const ofRule = <T extends { says: TagPatterns }>(rule: T): WithPatterns<T> => ({
    ...rule,
    isAbout: aboutTags(rule.says),
  })
  return {
    rules: stored.rules.map(ofRule),
    former: (stored.former ?? []).map(ofRule),
    tagRules: stored.tagRules.map(ofRule),
    holds: stored.holds.map((hold) => {
      return { ...hold, isAbout: hold.tags.length === 0 ? () => false : aboutTags({ ...hold, exceptTags: [] }) }
    }),
    quarantined: stored.quarantined,
  }
}

/** Size of the rules in memory, counted in rules and patterns. */
export function sizeOf({ rules, former, tagRules, holds, quarantined }: ContentRules): number {
  const asked = [...rules, ...former, ...tagRules]
  const patterns = asked.reduce((sum, { says }) => sum + patternsOf(says), 0)
  const ofHolds = holds.reduce((sum, { tags }) => sum + tags.length, 0)
  return 1 + asked.length + holds.length + quarantined.length + patterns + ofHolds
}

export const patternsOf = ({ tags, exceptTags }: TagPatterns): number => tags.length + exceptTags.length

export type ProtectionKind = 'PROMISED' | 'HELD' | 'IMMUTABLE' | 'LAST' | 'UNDECIDED' | 'LISTED'

/** Protection of a manifest by a rule or a hold. */
export type Kept = {
  by: ProtectionKind
  /** ISO time. Empty if the protection has no end. */
  until: string
  /** The uid of the rule or the hold. */
  rule: string
  tags: string[]
  /** Digest of the manifest that is protected directly: the requested manifest, or one of its parents. */
  with: string
}

/** Record of protected content that was deleted with a reason. */
export type BrokenPromise = { repo: string; digest: string; reason: string; until: string; rule: string }

export const toRetentionRuleResource = kindOf<RetentionRule>('retention-rule')
export const toTagRuleResource = kindOf<TagRule>('tag-rule')
export const toHoldResource = kindOf<Mark>('hold')
export const toQuarantineResource = kindOf<Mark>('quarantine')
export const toBrokenPromiseResource = kindOf<BrokenPromise>('broken-promise')

export const retentionRuleType = 'registry.pinfold.dev/RetentionRule'
export const tagRuleType = 'registry.pinfold.dev/TagRule'
export const holdType = 'registry.pinfold.dev/Hold'
export const quarantineType = 'registry.pinfold.dev/Quarantine'

const namePattern = /^[\S ]{0,100}$/u

export const retentionFields = {
  name: { column: 'name', update: true, pattern: namePattern },
  tags: { column: 'tags', update: true, pattern: tagPatterns },
  exceptTags: { column: 'except_tags', update: true, pattern: tagPatterns },
  keepDaysAfter: { column: 'keep_days_after', update: true },
  keepLast: { column: 'keep_last', update: true },
  forever: { column: 'forever', update: true },
  untaggedDays: { column: 'untagged_days', update: true },
  mode: { column: 'mode', update: true, required: true },
} as const satisfies Fields<Retention>

export const tagRuleSettingsFields = {
  name: { column: 'name', update: true, pattern: namePattern },
  tags: { column: 'tags', update: true, pattern: tagPatterns },
  exceptTags: { column: 'except_tags', update: true, pattern: tagPatterns },
  immutable: { column: 'immutable', update: true },
  movers: { column: 'movers', update: true },
  keepListed: { column: 'keep_listed', update: true },
} as const satisfies Fields<TagRuleSettings>

export const maxExceptions = 1000
export const maxMovers = 100
export const maxDays = 36_500
export const maxLast = 1000
/** Most rules of each kind in an organization. */
export const mostRules = 200
export const mostMarks = 1000
/** Most tag patterns in all rules and holds of an organization. */
export const mostPatterns = 5000
/** Most former rules of an organization that still give dates, and most patterns in them. */
export const mostFormer = 500
export const mostFormerPatterns = 20_000

/** Most rows of the tag history, or tags of a manifest, that one search reads. Content with more of them counts as protected. */
export const mostMoves = 10_000
export const mostTagsNamed = 20

/** End time of content that is protected forever. */
export const noEnd = '9999-12-31T23:59:59.999Z'

/** Rules that apply in a repository. Each rule caches whether it matches a tag. */
export function contentRulesAt(
  { rules, former, tagRules, holds, quarantined }: ContentRules,
  repo: string,
): ContentRules {
  const isHere = ({ scopeUid }: { scopeUid: string }) => isAtOrBelow(repo, scopeUid)
  const here = <T extends { scopeUid: string; isAbout: IsAbout }>(all: readonly T[]): T[] =>
    all.filter(isHere).map((one) => ({ ...one, isAbout: cacheMatches(one.isAbout) }))
  return {
    rules: here(rules),
    former: here(former),
    tagRules: here(tagRules),
    holds: here(holds),
    quarantined: quarantined.filter(isHere),
  }
}

/** Retention rules in mode ENFORCE. */
export function enforced({ rules }: ContentRules): WithPatterns<RetentionRule>[] {
  return rules.filter(({ says }) => says.mode === 'ENFORCE')
}

/** End of the protection of a digest if a matching tag stopped pointing to it at `time`. Empty if the rule gives no date. */
export function untilAfter({ says }: Pick<RetentionRule, 'says'>, time: string): string {
  if (says.forever) return noEnd
  return says.keepDaysAfter === 0 ? '' : daysAfter(time, says.keepDaysAfter)
}

/** End of the protection of a manifest that was pushed at `time` and never had a tag. Empty if the rule gives no date. */
export function untaggedUntil({ uid, says }: Pick<RetentionRule, 'uid' | 'says'>, time: string): Dated {
  return { until: says.untaggedDays === 0 ? '' : daysAfter(time, says.untaggedDays), rule: uid }
}

/** A retention date, and the rule that gave it. */
export type Dated = { until: string; rule: string }

/** Period in which a tag points to a digest. `left` is empty while the tag points to it. */
export type TagAssignment = { tag: string; came: string; left: string }

/** History of a manifest. `untaggedSince` is its creation time if it never had a tag, and undefined otherwise. */
export type ManifestHistory = { assignments: readonly TagAssignment[]; untaggedSince: string | undefined }

/** Retention dates of a manifest. Former rules give dates only for the time until they ended. */
export function datesOf(
  { rules, former }: { rules: readonly WithPatterns<RetentionRule>[]; former: readonly WithPatterns<FormerRule>[] },
  { assignments, untaggedSince }: ManifestHistory,
  now: string,
): Dated[] {
  const dates: Dated[] = []
  for (const rule of rules) {
    for (const { tag, left } of assignments) {
      if (rule.isAbout(tag)) dates.push({ until: untilAfter(rule, left || now), rule: rule.uid })
    }
    if (untaggedSince !== undefined) dates.push(untaggedUntil(rule, untaggedSince))
  }
  for (const rule of former) {
    const { uid, endTime } = rule
    for (const { tag, came, left } of assignments) {
      if (came > endTime || !rule.isAbout(tag)) continue
      // If the tag still pointed to the digest when the rule ended, the days of protection begin at that end.
      dates.push({ until: untilAfter(rule, left === '' || left > endTime ? endTime : left), rule: uid })
    }
    if (untaggedSince !== undefined && untaggedSince <= endTime) dates.push(untaggedUntil(rule, untaggedSince))
  }
  return dates
}

/** True if a rule with the settings `says` gives at least the dates that a rule with the settings `other` gives. */
export function isAtLeastAsLong(says: Retention, other: Retention): boolean {
  const isForever = says.forever || !other.forever
  const isAsLong = says.forever || says.keepDaysAfter >= other.keepDaysAfter
  const isSame = (one: readonly string[], another: readonly string[]) => {
    return JSON.stringify(one.toSorted()) === JSON.stringify(another.toSorted())
  }
  const isAboutAll = isSame(says.tags, other.tags) && isSame(says.exceptTags, other.exceptTags)
  return isForever && isAsLong && says.untaggedDays >= other.untaggedDays && isAboutAll
}

/** The latest date that a former rule can have given. Empty if the rule gave none. */
export function lastDateOf(rule: FormerRule): string {
  return latestOf([{ until: untilAfter(rule, rule.endTime), rule: '' }, untaggedUntil(rule, rule.endTime)])?.until ?? ''
}

export function latestOf(dates: readonly Dated[]): Dated | undefined {
  return dates.filter(({ until }) => until !== '').toSorted((a, b) => (a.until < b.until ? 1 : -1))[0]
}

export function daysAfter(time: string, days: number): string {
  const at = new Date(Date.parse(time) + days * 86_400_000).toISOString()
  // Years with more than four digits cannot be compared as text.
  return at.startsWith('+') ? noEnd : at
}

/** Quarantine of exactly this digest in the repository. Returns undefined if there is none. */
export function quarantineOf(contentRules: ContentRules, repo: string, digest: string): Mark | undefined {
  return contentRules.quarantined.find((one) => one.digest === digest && isAtOrBelow(repo, one.scopeUid))
}
