import { aboutTags, tagPatterns } from '#domains/rules/patterns.model.ts'
import type { DigestException, Rule } from '#domains/rules/rules.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import type { Age } from '../views/views.model.ts'

/**
 * Effect of a policy on a pull of an image that is too young. SERVE_OLDER: an older image is served. DENY: the pull is refused.
 * OBSERVE: the pull is only reported.
 */
export type Mode = 'SERVE_OLDER' | 'DENY' | 'OBSERVE'

/** A cooldown policy: the minimum age of images that the given identities pull. */
export type PullRule = Rule & {
  name: string
  /** Patterns of tags. An empty list covers all tags. */
  tags: string[]
  exceptTags: string[]
  /** Uids of identities. Empty if `belowGroup` names the group of the identities instead. */
  identities: string[]
  belowGroup: string
  age: Age
  mode: Mode
}

/** Settings of a policy in a request. The age and the hold are texts such as `7d`. */
export type PullRuleText = Omit<PullRule, keyof Rule | 'age' | 'mode'> & {
  minAge: string
  hold: string
  countFrom: Age['countFrom']
  /** Empty if the request named no mode. */
  mode: Mode | ''
}

export const toPullRuleResource = kindOf<PullRule>('pull-rule')
export const toPullRuleExceptionResource = kindOf<DigestException>('pull-rule-exception')

export const pullRuleType = 'registry.pinfold.dev/PullRule'
export const pullRuleExceptionType = 'registry.pinfold.dev/PullRuleException'

/** Fields that a client can set and change. */
export const pullRuleFields = {
  name: { column: 'name', update: true, pattern: /^[\S ]{0,100}$/u },
  tags: { column: 'tags', update: true, pattern: tagPatterns },
  exceptTags: { column: 'except_tags', update: true, pattern: tagPatterns },
  identities: { column: 'identities', update: true },
  belowGroup: { column: 'below_group', update: true },
  minAge: { column: 'age_ms', update: true, required: true },
  hold: { column: 'hold_ms', update: true },
  countFrom: { column: 'count_from', update: true },
  mode: { column: 'mode', update: true, required: true },
} as const satisfies Fields<PullRuleText>

export const maxIdentities = 100
export const maxExceptionDays = 30
/** Most cooldown policies of an organization. */
export const mostRules = 200

/** Cooldown policy for a tag with the largest age. If two have the same age, the stricter mode wins. */
export function strictest(rules: readonly PullRule[], tag: string): PullRule | undefined {
  const strength: Record<Mode, number> = { DENY: 2, SERVE_OLDER: 1, OBSERVE: 0 }
  return rules
    .filter((rule) => aboutTags(rule)(tag))
    .toSorted((a, b) => b.age.ms - a.age.ms || strength[b.mode] - strength[a.mode] || b.age.hold - a.age.hold)[0]
}
