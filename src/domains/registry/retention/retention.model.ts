import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { aboutTags, askedOnce, type IsAbout, type TagPatterns, tagPatterns } from '../rules/patterns.model.ts'

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

/** Which tags never move, and who may move others. */
export type TagLaw = {
  name: string
  tags: string[]
  exceptTags: string[]
  immutable: boolean
  /** Uids of identities; none for anybody who may otherwise. */
  movers: string[]
}

/** A rule with the place in which it holds: a group, for all below it, or a repo. */
export type Placed<T> = { uid: string; scopeUid: string; says: T; createTime: string; updateTime: string }
export type RetentionRule = Placed<Retention>
export type TagRule = Placed<TagLaw>

/** A hold or a quarantine, until somebody releases it. */
export type Mark = {
  uid: string
  scopeUid: string
  /** Empty where `tags` say what it is about. */
  digest: string
  tags: string[]
  reason: string
  actor: string
  createTime: string
  /** Empty as long as it holds. */
  releaseTime: string
  releasedBy: string
}

/** A rule as it is asked of tags. */
export type Asked<T> = T & { isAbout: IsAbout }

/** What an organisation has said of what is kept. */
export type Law = {
  rules: readonly Asked<RetentionRule>[]
  tagRules: readonly Asked<TagRule>[]
  holds: readonly Asked<Mark>[]
  quarantined: readonly Mark[]
}

export const noLaw: Law = { rules: [], tagRules: [], holds: [], quarantined: [] }

/** What is stored, with its patterns read. A hold of a digest is about no tag. */
export function lawFrom(stored: {
  rules: readonly RetentionRule[]
  tagRules: readonly TagRule[]
  holds: readonly Mark[]
  quarantined: readonly Mark[]
}): Law {
  const ofRule = <T extends Placed<TagPatterns>>(rule: T): Asked<T> => ({ ...rule, isAbout: aboutTags(rule.says) })
  return {
    rules: stored.rules.map(ofRule),
    tagRules: stored.tagRules.map(ofRule),
    holds: stored.holds.map((hold) => {
      return { ...hold, isAbout: hold.tags.length === 0 ? () => false : aboutTags({ ...hold, exceptTags: [] }) }
    }),
    quarantined: stored.quarantined,
  }
}

/** How much memory it takes, in rules and patterns. */
export function sizeOf({ rules, tagRules, holds, quarantined }: Law): number {
  const patterns = [...rules, ...tagRules].reduce((sum, { says }) => sum + patternsOf(says), 0)
  const ofHolds = holds.reduce((sum, { tags }) => sum + tags.length, 0)
  return 1 + rules.length + tagRules.length + holds.length + quarantined.length + patterns + ofHolds
}

export const patternsOf = ({ tags, exceptTags }: TagPatterns): number => tags.length + exceptTags.length

export type KeptBy = 'PROMISED' | 'HELD' | 'IMMUTABLE' | 'LAST' | 'UNDECIDED'

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
} as const satisfies Fields<TagLaw>

/** What lists are ordered by: always this. */
export const uidFields = { uid: { column: 'uid', sort: true } } as const satisfies Fields<{ uid: string }>

export const maxExceptions = 1000
export const maxMovers = 100
export const maxReason = 2000
export const maxDays = 36_500
export const maxLast = 1000
/** How many an organisation may have, of each. */
export const mostRules = 200
export const mostMarks = 1000
/** And how many patterns of tags, in all of its rules and holds together. */
export const mostPatterns = 5000

/** So many rows of a ledger, or tags of a manifest, are looked at; what has more is kept. */
export const mostMoves = 10_000
export const mostTagsNamed = 20

/** What is kept for good. */
export const noEnd = '9999-12-31T23:59:59.999Z'

/** Those of the organisation that hold in a repo, for one look: of each tag a rule is asked once. */
export function lawAt({ rules, tagRules, holds, quarantined }: Law, repo: string): Law {
  const isHere = ({ scopeUid }: { scopeUid: string }) => isAtOrBelow(repo, scopeUid)
  const here = <T extends { scopeUid: string; isAbout: IsAbout }>(all: readonly T[]): T[] =>
    all.filter(isHere).map((one) => ({ ...one, isAbout: askedOnce(one.isAbout) }))
  return {
    rules: here(rules),
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
export function untilAfter({ says }: RetentionRule, time: string): string {
  if (says.forever) return noEnd
  return says.keepDaysAfter === 0 ? '' : daysAfter(time, says.keepDaysAfter)
}

/** Until when a rule keeps what came at `time` and never was a tag; empty where it gives no date. */
export function untaggedUntil({ uid, says }: RetentionRule, time: string): Dated {
  return { until: says.untaggedDays === 0 ? '' : daysAfter(time, says.untaggedDays), rule: uid }
}

/** A date, and the rule that gave it. */
export type Dated = { until: string; rule: string }

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
