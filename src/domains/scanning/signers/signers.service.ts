// Who is believed what they say of vulnerabilities in a place: keys that somebody trusts there, until a day or until they do no
// longer. What was signed counts from when it is looked at, and no more from the moment that the trust ends.
import type { App, Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import {
  asOf,
  type EndingKind,
  expireDue,
  problemOfLength,
  problemOfUntil,
  revokeNow,
} from '#domains/rules/endings.service.ts'
import { groupOf, listBelow } from '#domains/rules/places.service.ts'
import { publicKeyOf } from '#lib/crypto/public-keys.ts'
import { AppError, type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid } from '#lib/uid.ts'
import {
  anExpiredSigner,
  aSigner,
  maxDays,
  maxName,
  maxReason,
  most,
  type Signer,
  signerType,
} from './signers.model.ts'
import * as store from './signers.store.ts'

export type NewSigner = Pick<Signer, 'name' | 'publicKey' | 'reason' | 'expireTime'>

/** Trusts whoever signs with a key, in a group or a repo. Throws NOT_FOUND for a place that is not there. */
export async function trustSigner(call: Call, scope: string, given: NewSigner): Promise<Signer> {
  const key = publicKeyOf(given.publicKey)
  refuseIfAny([
    ...(typeof key === 'string' ? [{ field: 'vex_signer.public_key', description: key }] : []),
    ...problemsOf(given, call.now),
  ])
  if (typeof key === 'string') throw invalid({ field: 'vex_signer.public_key', description: key })
  const { name, reason, expireTime } = given
  const signer: Signer = {
    ...{ uid: newUid(scope), scopeUid: scope, name, publicKey: key.pem, fingerprint: key.fingerprint, reason },
    ...{ actor: call.caller.uid, createTime: call.now, expireTime, endTime: '', endActor: '', endReason: '' },
  }
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const { there, all } = await store.countLive(tx, scope, most.organization)
    if (there >= most.place) throw tooMany(`${most.place} signers are trusted there already`)
    if (all >= most.organization) throw tooMany(`the organisation trusts ${most.organization} signers already`)
    await store.insertSigner(tx, group, signer)
    const event = { subject: signer.uid, group, resource: aSigner(signer) }
    await emit(tx, call, 'control.scanning.signer.trusted', event)
  })
  call.app.scanning.reported.notify()
  call.log.info('signer trusted', { uid: signer.uid, fingerprint: signer.fingerprint })
  return signer
}

const tooMany = (message: string): AppError =>
  new AppError('RESOURCE_EXHAUSTED', message, { reason: 'RESOURCE_LIMIT_EXCEEDED' })

function problemsOf({ name, reason, expireTime }: NewSigner, now: string): FieldViolation[] {
  const problems: FieldViolation[] = []
  const add = (member: string, description: string | undefined) => {
    if (description) problems.push({ field: `vex_signer.${member}`, description })
  }
  if (name.trim() === '') add('name', 'is required')
  else if (name.length > maxName) add('name', `must be at most ${maxName} characters long`)
  else if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name)) add('name', 'must be one line')
  add('reason', problemOfLength(reason, maxReason))
  add('expire_time', problemOfUntil(expireTime, now, maxDays))
  return problems
}

export async function getSigner(call: Call, uid: string): Promise<Signer> {
  return asOf(found(await store.findSigner(call.app.db, uid), signerType, uid), call.now)
}

const kind: EndingKind<Signer> = {
  type: signerType,
  maxReason,
  store: { find: store.findSigner, end: store.endSigner, due: store.dueSigners },
  revoked: (tx, call, { one, group }) =>
    emit(tx, call, 'control.scanning.signer.revoked', { subject: one.uid, group, resource: aSigner(one) }),
  expired: (tx, by, { one, group }) =>
    emit(tx, by, 'control.scanning.signer.expired', { subject: one.uid, group, resource: anExpiredSigner(one) }),
}

/** Ends the trust now: what was hidden by it counts again. One that has ended stays as it is. */
export const revokeSigner = (call: Call, uid: string, reason: string): Promise<Signer> =>
  revokeNow(kind, call, uid, reason)

/** A page of those at and below the places. */
export async function listSigners(
  call: Call,
  page: Page,
  { scope, withEnded }: { scope: string; withEnded: boolean },
): Promise<Listed<Signer>> {
  const listed = await listBelow(call, page, scope, store.signerList, { now: withEnded ? undefined : call.now })
  return { ...listed, items: listed.items.map((one) => asOf(one, call.now)) }
}

/** In a transaction: ends some of those whose time has come, and tells of it; answers with how many. */
export const expireSigners = (tx: Tx, app: App, now: string, most: number): Promise<number> =>
  expireDue(kind, tx, app, { now, most })
