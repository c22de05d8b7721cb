// Exceptions from what holds pulls back: a digest passes with a reason, until a day or until somebody ends it.
import type { Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { isDigest } from '#lib/digest.ts'
import { type FieldViolation, found, refuseIfAny } from '#lib/errors.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { problemOfLength, problemOfUntil } from './endings.service.ts'
import { groupOf, groupOfRow, limitReached, listBelow, type PlacedList } from './places.service.ts'

export type DigestException = {
  uid: string
  scopeUid: string
  digest: string
  reason: string
  actor: string
  createTime: string
  expireTime: string
  /** Empty unless somebody has ended it. */
  revokeTime: string
  revokedBy: string
}

/** Only exceptions that hold at `now`, or all where it is undefined. */
export type Holding = { now: string | undefined }

export type NewException = Pick<DigestException, 'digest' | 'reason' | 'expireTime'>

type Tell = (tx: Tx, call: Call, told: { exception: DigestException; group: string }) => Promise<unknown>

/** What exceptions of one kind are called, how many there may be, where they are kept, and the events of them. */
export type ExceptionKind = {
  type: string
  field: string
  quota: string
  limits: { days: number; reason: number; live: number }
  store: {
    insertException(tx: Tx, group: string, exception: DigestException): Promise<void>
    findException(reader: Reader, uid: string): Promise<DigestException | undefined>
    endException(tx: Tx, uid: string, time: string, actor: string): Promise<void>
    exceptionList: PlacedList<DigestException, Holding>
  }
  created: Tell
  revoked: Tell
}

/** Throws NOT_FOUND for a place that is not there. */
export async function makeException(
  kind: ExceptionKind,
  call: Call,
  scope: string,
  input: NewException,
): Promise<DigestException> {
  refuseIfAny(problemsOf(kind, input, call.now))
  const exception: DigestException = {
    ...{ uid: newUid(scope), scopeUid: scope, ...input },
    ...{ actor: call.caller.uid, createTime: call.now, revokeTime: '', revokedBy: '' },
  }
  const most = kind.limits.live
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const live = await kind.store.exceptionList.below(tx, rootOf(scope), { now: call.now }, most)
    if (live.length >= most) throw limitReached(kind.quota, most, live.length)
    await kind.store.insertException(tx, group, exception)
    await kind.created(tx, call, { exception, group })
  })
  return exception
}

/** Ends it now; one that has ended stays as it is. */
export async function endExceptionNow(kind: ExceptionKind, call: Call, uid: string): Promise<DigestException> {
  return call.app.db.tx(async (tx) => {
    const exception = found(await kind.store.findException(tx, uid), kind.type, uid)
    if (exception.revokeTime !== '' || exception.expireTime <= call.now) return exception
    const revoked = { ...exception, revokeTime: call.now, revokedBy: call.caller.uid }
    await kind.store.endException(tx, uid, call.now, call.caller.uid)
    await kind.revoked(tx, call, { exception: revoked, group: await groupOfRow(tx, exception) })
    return revoked
  })
}

export async function getExceptionOf(
  { store, type }: ExceptionKind,
  call: Call,
  uid: string,
): Promise<DigestException> {
  return found(await store.findException(call.app.db, uid), type, uid)
}

export async function listExceptionsOf(
  { store }: ExceptionKind,
  call: Call,
  page: Page,
  { scope, withEnded }: { scope: string; withEnded: boolean },
): Promise<Listed<DigestException>> {
  return listBelow(call, page, scope, store.exceptionList, { now: withEnded ? undefined : call.now })
}

function problemsOf(
  { field, limits }: ExceptionKind,
  { digest, reason, expireTime }: NewException,
  now: string,
): FieldViolation[] {
  const problems: FieldViolation[] = []
  const add = (member: string, description: string | undefined) => {
    if (description) problems.push({ field: `${field}.${member}`, description })
  }
  add('digest', isDigest(digest) ? undefined : 'is not a digest')
  add('reason', reason.trim() === '' ? 'is required' : problemOfLength(reason, limits.reason))
  add('expire_time', problemOfUntil(expireTime, now, limits.days))
  return problems
}
