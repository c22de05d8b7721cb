// Rules, holds and quarantines as they are made, changed and ended; who may do that is decided before.
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { groupOf, groupOfRow, limitReached, listBelow } from '#domains/rules/places.service.ts'
import { found } from '#lib/errors.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { applyPatch, type Patch } from '#lib/fields.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
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
  type Placed,
  patternsOf,
  quarantineType,
  type Retention,
  type RetentionRule,
  retentionFields,
  retentionRuleType,
  type TagLaw,
  type TagRule,
  tagLawFields,
  tagRuleType,
} from './retention.model.ts'
import * as store from './retention.store.ts'
import { checkLaw, checkMark, checkRetention } from './retention-checks.ts'

/** What differs between the two kinds of rules. */
type RuleKind<K extends store.RuleTable> = {
  table: K
  type: string
  event: 'rule' | 'tag_rule'
  check(says: store.RuleTables[K]): void
  patched(says: store.RuleTables[K], patch: Patch<store.RuleTables[K]>): store.RuleTables[K]
  resource(rule: Placed<store.RuleTables[K]>): ReturnType<typeof aRetentionRule>
  /** What it said until now counts no more; `after` is what it says from now on, if anything. */
  end(
    tx: Tx,
    at: { group: string; now: string },
    before: Placed<store.RuleTables[K]>,
    after: store.RuleTables[K] | undefined,
  ): Promise<void>
}

const retention: RuleKind<'retention_rules'> = {
  table: 'retention_rules',
  type: retentionRuleType,
  event: 'rule',
  check: checkRetention,
  patched: (says, patch) => applyPatch<Retention>(retentionFields, says, patch),
  resource: aRetentionRule,
  end: keepFormer,
}

const tagLaw: RuleKind<'tag_rules'> = {
  table: 'tag_rules',
  type: tagRuleType,
  event: 'tag_rule',
  check: checkLaw,
  patched: (says, patch) => applyPatch<TagLaw>(tagLawFields, says, patch),
  resource: aTagRule,
  end: async () => {},
}

export const createRetentionRule = (call: Call, scope: string, says: Retention): Promise<RetentionRule> =>
  createRule(call, retention, scope, says)
export const updateRetentionRule = (call: Call, uid: string, patch: Patch<Retention>): Promise<RetentionRule> =>
  updateRule(call, retention, uid, patch)
export const deleteRetentionRule = (call: Call, uid: string): Promise<void> => deleteRule(call, retention, uid)
export const getRetentionRule = (call: Call, uid: string): Promise<RetentionRule> => getRule(call, retention, uid)
export const listRetentionRules = (call: Call, page: Page, scope: string): Promise<Listed<RetentionRule>> =>
  listRules(call, retention, page, scope)

export const createTagRule = (call: Call, scope: string, says: TagLaw): Promise<TagRule> =>
  createRule(call, tagLaw, scope, says)
export const updateTagRule = (call: Call, uid: string, patch: Patch<TagLaw>): Promise<TagRule> =>
  updateRule(call, tagLaw, uid, patch)
export const deleteTagRule = (call: Call, uid: string): Promise<void> => deleteRule(call, tagLaw, uid)
export const getTagRule = (call: Call, uid: string): Promise<TagRule> => getRule(call, tagLaw, uid)
export const listTagRules = (call: Call, page: Page, scope: string): Promise<Listed<TagRule>> =>
  listRules(call, tagLaw, page, scope)

/** Throws NOT_FOUND for a place that is not there. */
async function createRule<K extends store.RuleTable>(
  call: Call,
  kind: RuleKind<K>,
  scope: string,
  says: store.RuleTables[K],
): Promise<Placed<store.RuleTables[K]>> {
  kind.check(says)
  const rule = { uid: newUid(scope), scopeUid: scope, says, createTime: call.now, updateTime: call.now }
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const there = await store.ruleLists[kind.table].below(tx, rootOf(scope), {}, mostRules)
    if (there.length >= mostRules) throw limitReached('rules of this kind', mostRules, there.length)
    await store.insertRule(tx, kind.table, group, rule)
    await lawChanged(tx, scope)
    const about = { subject: rule.uid, group, resource: kind.resource(rule) }
    await emit(tx, call, `control.registry.retention.${kind.event}.created`, about)
  })
  call.log.info('retention rule created', { uid: rule.uid, kind: kind.event })
  return rule
}

async function updateRule<K extends store.RuleTable>(
  call: Call,
  kind: RuleKind<K>,
  uid: string,
  patch: Patch<store.RuleTables[K]>,
): Promise<Placed<store.RuleTables[K]>> {
  const rule = await call.app.db.tx(async (tx) => {
    const before = found(await store.findRule(tx, kind.table, uid), kind.type, uid)
    const after = { ...before, says: kind.patched(before.says, patch), updateTime: call.now }
    kind.check(after.says)
    const group = await groupOfRow(tx, before)
    await store.patchRule(tx, kind.table, after)
    await kind.end(tx, { group, now: call.now }, before, after.says)
    await lawChanged(tx, uid)
    const about = { subject: uid, group, resource: kind.resource(after) }
    await emit(tx, call, `control.registry.retention.${kind.event}.updated`, about)
    return after
  })
  call.log.info('retention rule updated', { uid, kind: kind.event, paths: patch.paths })
  return rule
}

async function deleteRule<K extends store.RuleTable>(call: Call, kind: RuleKind<K>, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const rule = found(await store.findRule(tx, kind.table, uid), kind.type, uid)
    const group = await groupOfRow(tx, rule)
    await store.deleteRule(tx, kind.table, uid)
    await kind.end(tx, { group, now: call.now }, rule, undefined)
    await store.raiseLaw(tx, rootOf(uid))
    const about = { subject: uid, group, resource: aDeletion({ uid }) }
    await emit(tx, call, `control.registry.retention.${kind.event}.deleted`, about)
  })
  call.log.info('retention rule deleted', { uid, kind: kind.event })
}

async function getRule<K extends store.RuleTable>(
  call: Call,
  { table, type }: RuleKind<K>,
  uid: string,
): Promise<Placed<store.RuleTables[K]>> {
  return found(await store.findRule(call.app.db, table, uid), type, uid)
}

function listRules<K extends store.RuleTable>(
  call: Call,
  { table }: RuleKind<K>,
  page: Page,
  scope: string,
): Promise<Listed<Placed<store.RuleTables[K]>>> {
  return listBelow(call, page, scope, store.ruleLists[table], {})
}

/** Whoever remembers what was said reads it again. Throws when the organisation now has too many patterns. */
async function lawChanged(tx: Tx, place: string): Promise<void> {
  const organization = rootOf(place)
  await store.raiseLaw(tx, organization)
  const { rules, tagRules, holds } = await store.readLaw(tx, organization)
  const ofRules = [...rules, ...tagRules].map(({ says }) => patternsOf(says))
  const ofHolds = holds.map(({ tags }) => tags.length)
  const used = [...ofRules, ...ofHolds].reduce((sum, count) => sum + count, 0)
  if (used > mostPatterns) throw limitReached('patterns of tags in rules and holds', mostPatterns, used)
}

export type NewMark = Pick<Mark, 'digest' | 'tags' | 'reason'>
type MarkKind = { table: store.MarkTable; type: string; event: 'hold' | 'quarantine'; resource: typeof aHold }

const hold: MarkKind = { table: 'holds', type: holdType, event: 'hold', resource: aHold }
const quarantine: MarkKind = {
  table: 'quarantined',
  type: quarantineType,
  event: 'quarantine',
  resource: aQuarantine,
}

export const createHold = (call: Call, scope: string, input: NewMark): Promise<Mark> =>
  createMark(call, hold, scope, input)
export const releaseHold = (call: Call, uid: string): Promise<Mark> => releaseMark(call, hold, uid)
export const getHold = (call: Call, uid: string): Promise<Mark> => getMark(call, hold, uid)
export const listHolds = (call: Call, page: Page, which: Which): Promise<Listed<Mark>> =>
  listMarks(call, hold, page, which)

/** Refuses all pulls of a digest in a place. */
export const createQuarantine = (call: Call, scope: string, input: Omit<NewMark, 'tags'>): Promise<Mark> =>
  createMark(call, quarantine, scope, { ...input, tags: [] })
export const releaseQuarantine = (call: Call, uid: string): Promise<Mark> => releaseMark(call, quarantine, uid)
export const getQuarantined = (call: Call, uid: string): Promise<Mark> => getMark(call, quarantine, uid)
export const listQuarantined = (call: Call, page: Page, which: Which): Promise<Listed<Mark>> =>
  listMarks(call, quarantine, page, which)

/** Throws NOT_FOUND for a place that is not there. */
async function createMark(call: Call, kind: MarkKind, scope: string, input: NewMark): Promise<Mark> {
  checkMark(input, kind.event)
  const made = { actor: call.caller.uid, createTime: call.now, releaseTime: '', releasedBy: '' }
  const mark: Mark = { uid: newUid(scope), scopeUid: scope, ...input, ...made }
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const there = await store.markLists[kind.table].below(tx, rootOf(scope), { live: true }, mostMarks)
    if (there.length >= mostMarks) throw limitReached(`${kind.event}s`, mostMarks, there.length)
    await store.insertMark(tx, kind.table, group, mark)
    await lawChanged(tx, scope)
    const about = { subject: mark.uid, group, resource: kind.resource(mark) }
    await emit(tx, call, `control.registry.retention.${kind.event}.created`, about)
  })
  call.log.info('retention mark created', { uid: mark.uid, kind: kind.event })
  return mark
}

/** Ends it now; one that has ended stays as it is. */
async function releaseMark(call: Call, kind: MarkKind, uid: string): Promise<Mark> {
  return call.app.db.tx(async (tx) => {
    const mark = found(await store.findMark(tx, kind.table, uid), kind.type, uid)
    if (mark.releaseTime !== '') return mark
    const released = { ...mark, releaseTime: call.now, releasedBy: call.caller.uid }
    await store.releaseMark(tx, kind.table, released)
    await store.raiseLaw(tx, rootOf(uid))
    const about = { subject: uid, group: await groupOfRow(tx, mark), resource: kind.resource(released) }
    await emit(tx, call, `control.registry.retention.${kind.event}.released`, about)
    return released
  })
}

export type Which = { scope: string; withEnded: boolean }

function listMarks(call: Call, { table }: MarkKind, page: Page, { scope, withEnded }: Which): Promise<Listed<Mark>> {
  return listBelow(call, page, scope, store.markLists[table], { live: !withEnded })
}

async function getMark(call: Call, { table, type }: MarkKind, uid: string): Promise<Mark> {
  return found(await store.findMark(call.app.db, table, uid), type, uid)
}
