// What somebody says of a place until a day: it ends by itself or is revoked, and never changes otherwise.
import type { App, Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { ownCause } from '#lib/cause.ts'
import { found, refuseIfAny } from '#lib/errors.ts'
import { groupOfRow } from './places.service.ts'

/** `endTime` is empty while it holds, `endActor` where it has ended by itself. */
export type Ending = {
  uid: string
  scopeUid: string
  expireTime: string
  endTime: string
  endActor: string
  endReason: string
}
export type End = Pick<Ending, 'endTime' | 'endActor' | 'endReason'>

/** What one kind is called, where it is kept, and the events of its end. */
export type EndingKind<T extends Ending> = {
  type: string
  maxReason: number
  store: {
    find(reader: Reader, uid: string): Promise<T | undefined>
    end(tx: Tx, uid: string, end: End): Promise<unknown>
    /** Those that should have ended by themselves. */
    due(reader: Reader, now: string, most: number): Promise<T[]>
  }
  revoked(tx: Tx, call: Call, told: { one: T; group: string }): Promise<unknown>
  expired(
    tx: Tx,
    by: { app: App; cause: ReturnType<typeof ownCause> },
    told: { one: T; group: string },
  ): Promise<unknown>
}

/** As it is at a moment: what is over by then has ended, also while nobody has noted that yet. */
export const asOf = <T extends Ending>(one: T, now: string): T =>
  one.endTime === '' && one.expireTime <= now ? { ...one, endTime: one.expireTime } : one

/** Ends it now; one that has ended stays as it is. */
export async function revokeNow<T extends Ending>(
  { type, maxReason, store, revoked }: EndingKind<T>,
  call: Call,
  uid: string,
  reason: string,
): Promise<T> {
  const description = problemOfLength(reason, maxReason)
  refuseIfAny(description ? [{ field: 'reason', description }] : [])
  return call.app.db.tx(async (tx) => {
    const one = asOf(found(await store.find(tx, uid), type, uid), call.now)
    if (one.endTime !== '') return one
    const end: End = { endTime: call.now, endActor: call.caller.uid, endReason: reason }
    await store.end(tx, uid, end)
    const ended = { ...one, ...end }
    await revoked(tx, call, { one: ended, group: await groupOfRow(tx, one) })
    return ended
  })
}

/** In a transaction: ends some of those whose time has come, and tells of it; answers with how many. */
export async function expireDue<T extends Ending>(
  { store, expired }: EndingKind<T>,
  tx: Tx,
  app: App,
  { now, most }: { now: string; most: number },
): Promise<number> {
  const due = await store.due(tx, now, most)
  for (const one of due) {
    const ended = asOf(one, now)
    await store.end(tx, one.uid, ended)
    await expired(tx, { app, cause: ownCause(app.clock) }, { one: ended, group: await groupOfRow(tx, one) })
  }
  return due.length
}

/** What is wrong with a time until which something is to hold, for so many days at most. */
export function problemOfUntil(time: string, now: string, days: number): string | undefined {
  const latest = new Date(Date.parse(now) + days * 86_400_000).toISOString()
  if (time === '') return 'is required'
  if (time <= now) return 'must be in the future'
  return time > latest ? `must be at most ${days} days ahead` : undefined
}

export const problemOfLength = (text: string, most: number): string | undefined =>
  text.length > most ? `must be at most ${most} characters long` : undefined
