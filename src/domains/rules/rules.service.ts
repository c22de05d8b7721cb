// Rules of any kind in a scope. All kinds are created, changed, deleted and listed in the same way.
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { type EventName, emit } from '#domains/outbox/emit.ts'
import { found } from '#lib/errors.ts'
import { type Kind, toDeletionResource } from '#lib/events/event-body.ts'
import { applyPatch, type Fields, type Patch } from '#lib/fields.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import type { Rule } from './rules.model.ts'
import type { RuleTable } from './rules.store.ts'
import { groupOf, groupOfRow, limitReached, listBelow } from './scopes.service.ts'

type Before<V extends string, N = EventName> = N extends `${infer B}.${V}` ? B : never

/** One kind of rules. `Text` is a rule in a request. */
export type RuleKind<T extends Rule, Text extends object> = {
  type: string
  /** Name of the events of this kind, without the verb. */
  event: Before<'created'> & Before<'updated'> & Before<'deleted'>
  resource: Kind<T>
  table: RuleTable<T>
  /** Most rules of an organization. */
  quota: { name: string; most: number }
  fields: Fields<Text>
  /** Rule in the format of requests, to which a patch is applied. */
  textOf(rule: T, patch: Patch<Text>): Text
  /** Throws INVALID_ARGUMENT and names every invalid field. `before` is the rule that an update changes. */
  read(text: Text, scope: string, before?: T): Omit<T, keyof Rule>
  /** Runs after each change, in the same transaction. `before` is missing for a new rule, `after` for a deleted one. */
  changed?(tx: Tx, at: { group: string; now: string }, change: { before?: T; after?: T }): Promise<void>
}

/** Creates a rule. Throws NOT_FOUND if the scope does not exist. */
export async function createRule<T extends Rule, Text extends object>(
  kind: RuleKind<T, Text>,
  call: Call,
  scope: string,
  text: Text,
): Promise<T> {
  const { type, quota, table } = kind
  const { now } = call
  const made: Rule = { uid: newUid(scope), scopeUid: scope, createTime: now, updateTime: now }
  const after = { ...made, ...kind.read(text, scope) } as T
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const there = await table.list.below(tx, rootOf(scope), {}, quota.most)
    if (there.length >= quota.most) throw limitReached(quota.name, quota.most, there.length)
    await table.insert(tx, group, after)
    await kind.changed?.(tx, { group, now }, { after })
    await emit(tx, call, `${kind.event}.created`, { subject: after.uid, group, resource: kind.resource(after) })
  })
  call.log.info('rule created', { uid: after.uid, type })
  return after
}

export async function updateRule<T extends Rule, Text extends object>(
  kind: RuleKind<T, Text>,
  call: Call,
  uid: string,
  patch: Patch<Text>,
): Promise<T> {
  const { type, table } = kind
  const { now } = call
  const rule = await call.app.db.tx(async (tx) => {
    const before = found(await table.find(tx, uid), type, uid)
    const text = applyPatch<Text>(kind.fields, kind.textOf(before, patch), patch)
    const after: T = { ...before, ...kind.read(text, before.scopeUid, before), updateTime: now }
    const group = await groupOfRow(tx, before)
    await table.patch(tx, after)
    await kind.changed?.(tx, { group, now }, { before, after })
    await emit(tx, call, `${kind.event}.updated`, { subject: uid, group, resource: kind.resource(after) })
    return after
  })
  call.log.info('rule updated', { uid, type, paths: patch.paths })
  return rule
}

export async function deleteRule<T extends Rule, Text extends object>(
  kind: RuleKind<T, Text>,
  call: Call,
  uid: string,
): Promise<void> {
  const { type, table } = kind
  await call.app.db.tx(async (tx) => {
    const before = found(await table.find(tx, uid), type, uid)
    const group = await groupOfRow(tx, before)
    await table.delete(tx, uid)
    await kind.changed?.(tx, { group, now: call.now }, { before })
    await emit(tx, call, `${kind.event}.deleted`, { subject: uid, group, resource: toDeletionResource({ uid }) })
  })
  call.log.info('rule deleted', { uid, type })
}

export async function getRule<T extends Rule>(
  { table, type }: { table: RuleTable<T>; type: string },
  call: Call,
  uid: string,
): Promise<T> {
  return found(await table.find(call.app.db, uid), type, uid)
}

/** One page of the rules in the scope, or of all rules that the caller has access to. */
export async function listRules<T extends Rule>(
  { table }: { table: RuleTable<T> },
  call: Call,
  page: Page,
  scope: string,
): Promise<Listed<T>> {
  return listBelow(call, page, scope, table.list, {})
}
