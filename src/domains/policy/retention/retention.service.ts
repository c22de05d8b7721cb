// Retention rules, tag rules, holds and quarantines. Permission is decided before.
import type { Tx } from '#db/sql.ts'
import { type EndingKind, limitHolding } from '#domains/rules/endings.service.ts'
import { limitReached } from '#domains/rules/places.service.ts'
import type { RuleKind } from '#domains/rules/rules.service.ts'
import type { Kind } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { rootOf } from '#lib/uid.ts'
import { keepFormer } from './former-rules.service.ts'
import {
  aHold,
  aQuarantine,
  aRetentionRule,
  aTagRule,
  holdType,
  type Mark,
  mostMarks,
  mostPatterns,
  mostRules,
  type NewMark,
  type Placed,
  patternsOf,
  quarantineType,
  type Retention,
  retentionFields,
  retentionRuleType,
  type TagLaw,
  tagLawFields,
  tagRuleType,
} from './retention.model.ts'
import * as store from './retention.store.ts'
import { checkLaw, checkMark, checkRetention } from './retention-checks.ts'

/** What both kinds of rules have in common. */
function placedKind<T extends Retention | TagLaw>(
  kind: Pick<RuleKind<Placed<T>, T>, 'type' | 'event' | 'table' | 'changed'> & { resource: Kind<Placed<T>> },
  fields: Fields<T>,
  check: (says: T) => void,
): RuleKind<Placed<T>, T> {
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
      if (change.after) await lawChanged(tx, uid)
      else await store.raiseLaw(tx, rootOf(uid))
    },
  }
}

export const retentionRuleKind = placedKind<Retention>(
  {
    type: retentionRuleType,
    event: 'control.registry.retention.rule',
    resource: aRetentionRule,
    table: store.retentionRuleTable,
    async changed(tx, at, { before, after }) {
      if (before) await keepFormer(tx, at, before, after?.says)
    },
  },
  retentionFields,
  checkRetention,
)

export const tagRuleKind = placedKind<TagLaw>(
  {
    type: tagRuleType,
    event: 'control.registry.retention.tag_rule',
    resource: aTagRule,
    table: store.tagRuleTable,
  },
  tagLawFields,
  checkLaw,
)

/** Caches read the rules again. Throws RESOURCE_EXHAUSTED if the organization now has too many patterns. */
async function lawChanged(tx: Tx, place: string): Promise<void> {
  const organization = rootOf(place)
  await store.raiseLaw(tx, organization)
  const { rules, tagRules, holds } = await store.readLaw(tx, organization)
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
      if (endTime === '') await lawChanged(tx, uid)
      else await store.raiseLaw(tx, rootOf(uid))
    },
  }
}

export const holdKind = markKind('hold', { type: holdType, table: store.holdTable, resource: aHold })

/** A quarantine refuses all pulls of a digest at its scope. */
export const quarantineKind = markKind('quarantine', {
  ...{ type: quarantineType, table: store.quarantineTable, resource: aQuarantine },
})
