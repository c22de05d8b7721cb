// What passes gates until a day, by its digest.
import type { Call } from '#app.ts'
import { emit } from '#domains/events/outbox/emit.ts'
import { groupOf, groupOfRow, limitReached, listBelow } from '#domains/registry/rules/places.service.ts'
import { isDigest } from '#lib/digest.ts'
import { type FieldViolation, found, refuseIfAny } from '#lib/errors.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import {
  aGateException,
  type GateException,
  gateExceptionType,
  maxExceptionDays,
  maxReason,
  mostExceptions,
} from './gates.model.ts'
import * as store from './gates.store.ts'

export type NewException = Pick<GateException, 'digest' | 'reason' | 'expireTime'>

/** Throws NOT_FOUND for a place that is not there. */
export async function createException(call: Call, scope: string, input: NewException): Promise<GateException> {
  refuseIfAny(problemsOf(input, call.now))
  const exception: GateException = {
    ...{ uid: newUid(scope), scopeUid: scope, ...input },
    ...{ actor: call.caller.uid, createTime: call.now, revokeTime: '', revokedBy: '' },
  }
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const wanted = { after: '', most: mostExceptions, now: call.now }
    const live = await store.exceptionsBelow(tx, rootOf(scope), wanted)
    if (live.length >= mostExceptions) throw limitReached('exceptions from gates', mostExceptions, live.length)
    await store.insertException(tx, group, exception)
    const resource = aGateException(exception)
    await emit(tx, call, 'control.scanning.gate.exception.created', { subject: exception.uid, group, resource })
  })
  call.log.info('gate exception created', { uid: exception.uid })
  return exception
}

/** Ends it now; one that has ended stays as it is. */
export async function revokeException(call: Call, uid: string): Promise<GateException> {
  return call.app.db.tx(async (tx) => {
    const exception = found(await store.findException(tx, uid), gateExceptionType, uid)
    if (exception.revokeTime !== '' || exception.expireTime <= call.now) return exception
    const revoked = { ...exception, revokeTime: call.now, revokedBy: call.caller.uid }
    await store.endException(tx, uid, call.now, call.caller.uid)
    const group = await groupOfRow(tx, exception)
    const resource = aGateException(revoked)
    await emit(tx, call, 'control.scanning.gate.exception.revoked', { subject: uid, group, resource })
    return revoked
  })
}

export async function listExceptions(
  call: Call,
  page: Page,
  { scope, withEnded }: { scope: string; withEnded: boolean },
): Promise<Listed<GateException>> {
  const now = withEnded ? undefined : call.now
  return listBelow(call, page, scope, (place, after, most) =>
    store.exceptionsBelow(call.app.db, place, { after, most, now }),
  )
}

function problemsOf({ digest, reason, expireTime }: NewException, now: string): FieldViolation[] {
  const problems: FieldViolation[] = []
  const say = (member: string, description: string) => problems.push({ field: `gate_exception.${member}`, description })
  if (!isDigest(digest)) say('digest', 'is not a digest')
  if (reason.trim() === '') say('reason', 'is required')
  else if (reason.length > maxReason) say('reason', `must be at most ${maxReason} characters long`)
  const latest = new Date(Date.parse(now) + maxExceptionDays * 86_400_000).toISOString()
  if (expireTime === '') say('expire_time', 'is required')
  else if (expireTime <= now) say('expire_time', 'must be in the future')
  else if (expireTime > latest) say('expire_time', `must be at most ${maxExceptionDays} days ahead`)
  return problems
}
