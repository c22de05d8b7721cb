// Records at a scope that apply until they end. All kinds are created, ended, listed and expire in the same way.
import type { App, Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { type EventName, emit } from '#domains/outbox/emit.ts'
import type { Job } from '#job.ts'
import { ownCause } from '#lib/cause.ts'
import { found, refuseIfAny } from '#lib/errors.ts'
import type { Kind } from '#lib/events/event-body.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { type Ending, maxReason } from './rules.model.ts'
import type { EndingTable } from './rules.store.ts'
import { groupOf, groupOfRow, limitReached, listBelow } from './scopes.service.ts'

/** Members that `createEnding` sets. */
type Set = 'uid' | 'scopeUid' | 'actor' | 'createTime' | 'endTime' | 'endActor' | 'endReason'

/** One kind of records that end. `Input` is a record in a request. */
export type EndingKind<T extends Ending, Input> = {
  type: string
  resource: Kind<T>
  events: { created: EventName; ended: EventName }
  /** Event of an expiry. Only for kinds whose records expire. */
  expired?: { event: EventName; resource: Kind<T> }
  table: EndingTable<T>
  /** Throws INVALID_ARGUMENT and names every invalid field. */
  read(call: Call, scope: string, input: Input): Omit<T, Set> | Promise<Omit<T, Set>>
  /** Throws RESOURCE_EXHAUSTED if the limit on records is reached. */
  limit(tx: Tx, one: T): Promise<void>
  /** Runs after each change, in its transaction. */
  changed?(tx: Tx, one: T): Promise<void>
}

/** The record as of a time. A record after its expiry has ended, even if the background job has not marked it yet. */
function asOf<T extends Ending>({ expired }: Pick<EndingKind<T, never>, 'expired'>, one: T, now: string): T {
  return expired && isOver(one, now) ? { ...one, endTime: one.endTime || one.expireTime } : one
}

const isOver = ({ endTime, expireTime }: Ending, now: string): boolean =>
  endTime !== '' || (expireTime !== undefined && expireTime <= now)

/** Creates a record. Throws NOT_FOUND if the scope does not exist. */
export async function createEnding<T extends Ending, Input>(
  kind: EndingKind<T, Input>,
  call: Call,
  scope: string,
  input: Input,
): Promise<T> {
  const { caller, now } = call
  const made = { uid: newUid(scope), scopeUid: scope, actor: caller.uid, createTime: now }
  const one = { ...made, ...(await kind.read(call, scope, input)), endTime: '', endActor: '', endReason: '' } as T
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    await kind.limit(tx, one)
    await kind.table.insert(tx, group, one)
    await kind.changed?.(tx, one)
    await emit(tx, call, kind.events.created, { subject: one.uid, group, resource: kind.resource(one) })
  })
  call.log.info('record created', { uid: one.uid, type: kind.type })
  return one
}

/** Ends a record now. Does nothing if the record has ended already. */
export async function endNow<T extends Ending>(
  kind: EndingKind<T, never>,
  call: Call,
  uid: string,
  reason = '',
): Promise<T> {
  const description = problemOfLength(reason, maxReason)
  refuseIfAny(description ? [{ field: 'reason', description }] : [])
  return call.app.db.tx(async (tx) => {
    const one = asOf(kind, found(await kind.table.find(tx, uid), kind.type, uid), call.now)
    if (isOver(one, call.now)) return one
    const ended: T = { ...one, endTime: call.now, endActor: call.caller.uid, endReason: reason }
    await kind.table.end(tx, ended)
    await kind.changed?.(tx, ended)
    const about = { subject: uid, group: await groupOfRow(tx, one), resource: kind.resource(ended) }
    await emit(tx, call, kind.events.ended, about)
    return ended
  })
}

export async function getEnding<T extends Ending>(kind: EndingKind<T, never>, call: Call, uid: string): Promise<T> {
  return asOf(kind, found(await kind.table.find(call.app.db, uid), kind.type, uid), call.now)
}

/** One page of the records in the scope, or of all records that the caller has access to. */
export async function listEndings<T extends Ending>(
  kind: EndingKind<T, never>,
  call: Call,
  page: Page,
  { scope, withEnded }: { scope: string; withEnded: boolean },
): Promise<Listed<T>> {
  const listed = await listBelow(call, page, scope, kind.table.list, { now: withEnded ? undefined : call.now })
  return { ...listed, items: listed.items.map((one) => asOf(kind, one, call.now)) }
}

/** Most records that one transaction ends. */
const mostExpired = 100

/** Background job that ends expired records of one kind and emits their events. */
export const expiryJob = <T extends Ending>(name: string, kind: EndingKind<T, never>): Job => ({
  name,
  // The job runs twice in the 30 s within which an expiry must take effect.
  everyMs: 15_000,
  runsOn: 'one node',
  async run(app, lease) {
    const now = app.clock().toISOString()
    return { expired: await lease.inBatches((tx) => expireDue(kind, tx, app, now)) }
  },
})

async function expireDue<T extends Ending>(kind: EndingKind<T, never>, tx: Tx, app: App, now: string): Promise<number> {
  const due = await kind.table.due(tx, now, mostExpired)
  for (const one of due) {
    const ended = asOf(kind, one, now)
    await kind.table.end(tx, ended)
    await kind.changed?.(tx, ended)
    const about = { subject: one.uid, group: await groupOfRow(tx, one), resource: kind.expired!.resource(ended) }
    await emit(tx, { app, cause: ownCause(app.clock) }, kind.expired!.event, about)
  }
  return due.length
}

/** Limit on the records of an organization that have not ended. */
export function limitHolding<T extends Ending>({ list }: EndingTable<T>, quota: string, most: number) {
  return async (tx: Tx, { scopeUid, createTime }: T): Promise<void> => {
    const there = await list.below(tx, rootOf(scopeUid), { now: createTime }, most)
    if (there.length >= most) throw limitReached(quota, most, there.length)
  }
}

/** Problem of an end time, which must be at most `days` days ahead. Returns undefined if the time is valid. */
export function problemOfUntil(time: string, now: string, days: number): string | undefined {
  const latest = new Date(Date.parse(now) + days * 86_400_000).toISOString()
  if (time === '') return 'is required'
  if (time <= now) return 'must be in the future'
  return time > latest ? `must be at most ${days} days ahead` : undefined
}

export const problemOfLength = (text: string, most: number): string | undefined =>
  text.length > most ? `must be at most ${most} characters long` : undefined

/** Problem of a required reason. Returns undefined if the reason is valid. */
export const problemOfReason = (reason: string): string | undefined =>
  reason.trim() === '' ? 'is required' : problemOfLength(reason, maxReason)
