import { aboutTags, askedOnce, type IsAbout, type TagPatterns, tagPatterns } from '#domains/rules/patterns.model.ts'
import type { Ending, Rule } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { isAtOrBelow } from '#lib/uid.ts'

export type RetentionMode = 'OFF' | 'DRY_RUN' | 'ENFORCE'

/** What a rule says of what is kept; 0 says nothing. */
export type Retention = {
  name: string
  /** Patterns of tags; none for all. */
  tags: string[]
  exceptTags: string[]
  /** After such a tag has left a digest. */
  keepDaysAfter: number
  /** Of the digests that such tags of a repo have had. */
  keepLast: number
  forever: boolean
  /** For manifests that never were a tag. */
  untaggedDays: number
  /** Empty where none was named. */
  mode: RetentionMode | ''
}

/** Rule on tags: which never move, who may move others, and whether what their indexes list can be deleted. */
export type TagLaw = {
  name: string
  tags: string[]
  exceptTags: string[]
  immutable: boolean
  /** Uids of identities; none for anybody who may otherwise. */
  movers: string[]
  /** Rules of earlier versions have none. */
  keepListed?: boolean
}

/** A rule with what it says. */
export type Placed<T> = Rule & { says: T }
export type RetentionRule = Placed<Retention>
export type TagRule = Placed<TagLaw>

/** What a rule in force said until it was changed or deleted: the dates that it had given by then stay. */
export type FormerRule = Pick<RetentionRule, 'uid' | 'scopeUid' | 'says'> & { endTime: string }

/** A hold or a quarantine, until a member releases it. */
export type Mark = Ending & {
  /** Empty if it is about `tags`. */
  digest: string
  tags: string[]
}
export type NewMark = Pick<Mark, 'digest' | 'tags' | 'reason'>

/** A rule as it is asked of tags. */
export type Asked<T> = T & { isAbout: IsAbout }

/** What an organisation has said of what is kept. */
export type Law = {
  rules: readonly Asked<RetentionRule>[]
  former: readonly Asked<FormerRule>[]
  tagRules: readonly Asked<TagRule>[]
  holds: readonly Asked<Mark>[]
  quarantined: readonly Mark[]
}

export const noLaw: Law = { rules: [], former: [], tagRules: [], holds: [], quarantined: [] }

/** What is stored, with its patterns read. A hold of a digest is about no tag. */
export function lawFrom(stored: {
  rules: readonly RetentionRule[]
  former?: readonly FormerRule[]
  tagRules: readonly TagRule[]
  holds: readonly Mark[]
  quarantined: readonly Mark[]
}): Law {
  const ofRule = <T extends { says: TagPatterns }>(rule: T): Asked<T> => ({ ...rule, isAbout: aboutTags(rule.says) })
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

/** How much memory it takes, in rules and patterns. */
export function sizeOf({ rules, former, tagRules, holds, quarantined }: Law): number {
  const asked = [...rules, ...former, ...tagRules]
  const patterns = asked.reduce((sum, { says }) => sum + patternsOf(says), 0)
  const ofHolds = holds.reduce((sum, { tags }) => sum + tags.length, 0)
  return 1 + asked.length + holds.length + quarantined.length + patterns + ofHolds
}

export const patternsOf = ({ tags, exceptTags }: TagPatterns): number => tags.length + exceptTags.length

export type KeptBy = 'PROMISED' | 'HELD' | 'IMMUTABLE' | 'LAST' | 'UNDECIDED' | 'LISTED'

/** What keeps a manifest. */
export type Kept = {
  by: KeptBy
  /** ISO time; empty without an end. */
  until: string
  /** The uid of the rule or the hold. */
  rule: string
  tags: string[]
  /** The manifest that is kept itself: that which was asked about, or one that it belongs to. */
  with: string
}

/** What was deleted although something kept it, or might have. */
export type BrokenPromise = { repo: string; digest: string; reason: string; until: string; rule: string }

export const aRetentionRule = kindOf<RetentionRule>('retention-rule')
export const aTagRule = kindOf<TagRule>('tag-rule')
export const aHold = kindOf<Mark>('hold')
export const aQuarantine = kindOf<Mark>('quarantine')
export const aBrokenPromise = kindOf<BrokenPromise>('broken-promise')

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

export const tagLawFields = {
  name: { column: 'name', update: true, pattern: namePattern },
  tags: { column: 'tags', update: true, pattern: tagPatterns },
  exceptTags: { column: 'except_tags', update: true, pattern: tagPatterns },
  immutable: { column: 'immutable', update: true },
  movers: { column: 'movers', update: true },
  keepListed: { column: 'keep_listed', update: true },
} as const satisfies Fields<TagLaw>

export const maxExceptions = 1000
export const maxMovers = 100
export const maxDays = 36_500
export const maxLast = 1000
/** How many an organisation may have, of each. */
export const mostRules = 200
export const mostMarks = 1000
/** And how many patterns of tags, in all of its rules and holds together. */
export const mostPatterns = 5000
/** Of what rules have said before and what still gives dates, and how many patterns in these. */
export const mostFormer = 500
export const mostFormerPatterns = 20_000

/** So many rows of a ledger, or tags of a manifest, are looked at; what has more is kept. */
export const mostMoves = 10_000
export const mostTagsNamed = 20

/** What is kept for good. */
export const noEnd = '9999-12-31T23:59:59.999Z'

/** Those of the organisation that hold in a repo, for one look: of each tag a rule is asked once. */
export function lawAt({ rules, former, tagRules, holds, quarantined }: Law, repo: string): Law {
  const isHere = ({ scopeUid }: { scopeUid: string }) => isAtOrBelow(repo, scopeUid)
  const here = <T extends { scopeUid: string; isAbout: IsAbout }>(all: readonly T[]): T[] =>
    all.filter(isHere).map((one) => ({ ...one, isAbout: askedOnce(one.isAbout) }))
  return {
    rules: here(rules),
    former: here(former),
    tagRules: here(tagRules),
    holds: here(holds),
    quarantined: quarantined.filter(isHere),
  }
}

/** Of the rules that hold in a repo, those in force. */
export function enforced({ rules }: Law): Asked<RetentionRule>[] {
  return rules.filter(({ says }) => says.mode === 'ENFORCE')
}

/** Until when a rule keeps what such a tag left at `time`; empty where it gives no date. */
export function untilAfter({ says }: Pick<RetentionRule, 'says'>, time: string): string {
  if (says.forever) return noEnd
  return says.keepDaysAfter === 0 ? '' : daysAfter(time, says.keepDaysAfter)
}

/** Until when a rule keeps what came at `time` and never was a tag; empty where it gives no date. */
export function untaggedUntil({ uid, says }: Pick<RetentionRule, 'uid' | 'says'>, time: string): Dated {
  return { until: says.untaggedDays === 0 ? '' : daysAfter(time, says.untaggedDays), rule: uid }
}

/** A date, and the rule that gave it. */
export type Dated = { until: string; rule: string }

/** A stay of a digest under a tag; `left` is empty while it lasts. */
export type TagStay = { tag: string; came: string; left: string }

/** What is known of a manifest: `untaggedSince` when it came, unless a tag has ever pointed to it. */
export type Past = { stays: readonly TagStay[]; untaggedSince: string | undefined }

/** The dates that rules in force give a manifest, and those that others had given it by the end of what they said. */
export function datesOf(
  { rules, former }: { rules: readonly Asked<RetentionRule>[]; former: readonly Asked<FormerRule>[] },
  { stays, untaggedSince }: Past,
  now: string,
): Dated[] {
  const dates: Dated[] = []
  for (const rule of rules) {
    for (const { tag, left } of stays) {
      if (rule.isAbout(tag)) dates.push({ until: untilAfter(rule, left || now), rule: rule.uid })
    }
    if (untaggedSince !== undefined) dates.push(untaggedUntil(rule, untaggedSince))
  }
  for (const rule of former) {
    const { uid, endTime } = rule
    for (const { tag, came, left } of stays) {
      if (came > endTime || !rule.isAbout(tag)) continue
      // What it still pointed to when the rule ended was kept for as long from then on at least.
      dates.push({ until: untilAfter(rule, left === '' || left > endTime ? endTime : left), rule: uid })
    }
    if (untaggedSince !== undefined && untaggedSince <= endTime) dates.push(untaggedUntil(rule, untaggedSince))
  }
  return dates
}

/** Whether a rule that says this gives each date that one which said the other gave. */
export function givesAllOf(says: Retention, other: Retention): boolean {
  const isForever = says.forever || !other.forever
  const isAsLong = says.forever || says.keepDaysAfter >= other.keepDaysAfter
  const isSame = (one: readonly string[], another: readonly string[]) => {
    return JSON.stringify(one.toSorted()) === JSON.stringify(another.toSorted())
  }
  const isAboutAll = isSame(says.tags, other.tags) && isSame(says.exceptTags, other.exceptTags)
  return isForever && isAsLong && says.untaggedDays >= other.untaggedDays && isAboutAll
}

/** The last date that a former rule can have given; empty when it has given none. */
export function lastDateOf(rule: FormerRule): string {
  return latestOf([{ until: untilAfter(rule, rule.endTime), rule: '' }, untaggedUntil(rule, rule.endTime)])?.until ?? ''
}

export function latestOf(dates: readonly Dated[]): Dated | undefined {
  return dates.filter(({ until }) => until !== '').toSorted((a, b) => (a.until < b.until ? 1 : -1))[0]
}

export function daysAfter(time: string, days: number): string {
  const at = new Date(Date.parse(time) + days * 86_400_000).toISOString()
  // Years of more digits would not be in order as texts.
  return at.startsWith('+') ? noEnd : at
}

/** The quarantine that keeps the digest from being pulled in the repo, if there is one: what is not clean is not served. */
export function quarantineOf(law: Law, repo: string, digest: string): Mark | undefined {
  return law.quarantined.find((one) => one.digest === digest && isAtOrBelow(repo, one.scopeUid))
}
