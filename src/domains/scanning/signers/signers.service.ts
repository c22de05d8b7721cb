// Who is believed what they say of vulnerabilities in a place: keys that somebody trusts there, until a day or until they do no
// longer. What was signed counts from when it is looked at, and no more from the moment that the trust ends.
import type { App, Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/events/outbox/emit.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { ownCause } from '#lib/cause.ts'
import { publicKeyOf } from '#lib/crypto/public-keys.ts'
import { AppError, type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { newUid, parentOf } from '#lib/uid.ts'
import { placesFor } from '../images/seek-images.service.ts'
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
  add('reason', tooLong(reason))
  const latest = new Date(Date.parse(now) + maxDays * 86_400_000).toISOString()
  if (expireTime === '') add('expire_time', 'is required')
  else if (expireTime <= now) add('expire_time', 'must be in the future')
  else if (expireTime > latest) add('expire_time', `must be at most ${maxDays} days ahead`)
  return problems
}

const tooLong = (reason: string): string | undefined =>
  reason.length > maxReason ? `must be at most ${maxReason} characters long` : undefined

/** The group that the event is for. */
async function groupOf(tx: Tx, scope: string): Promise<string> {
  if (await findRepoByUid(tx, scope)) return parentOf(scope)
  return (await requireGroup(tx, scope)).uid
}

export async function getSigner(call: Call, uid: string): Promise<Signer> {
  return found(await store.findSigner(call.app.db, uid), signerType, uid)
}

/** Ends the trust now: what was hidden by it counts again. One that has ended stays as it is. */
export async function revokeSigner(call: Call, uid: string, reason: string): Promise<Signer> {
  const description = tooLong(reason)
  refuseIfAny(description ? [{ field: 'reason', description }] : [])
  return call.app.db.tx(async (tx) => {
    const signer = found(await store.findSigner(tx, uid), signerType, uid)
    if (signer.endTime !== '' || signer.expireTime <= call.now) return signer
    const end = { endTime: call.now, endActor: call.caller.uid, endReason: reason }
    await store.endSigner(tx, uid, end)
    const revoked = { ...signer, ...end }
    const event = { subject: uid, group: await groupOfSigner(tx, signer), resource: aSigner(revoked) }
    await emit(tx, call, 'control.scanning.signer.revoked', event)
    return revoked
  })
}

/** That of a repo may outlive it. */
async function groupOfSigner(tx: Tx, { scopeUid }: Signer): Promise<string> {
  return (await store.groupOfScope(tx, scopeUid)) ?? parentOf(scopeUid)
}

/** A page of those at and below the places. */
export async function listSigners(
  call: Call,
  page: Page,
  { scope, withEnded }: { scope: string; withEnded: boolean },
): Promise<Listed<Signer>> {
  const places = [...(await placesFor(call, scope))].sort()
  const rows: Signer[] = []
  for (const place of places) {
    if (rows.length > page.size) break
    const most = page.size + 1 - rows.length
    rows.push(...(await store.signersBelow(call.app.db, place, { after: page.after?.uid ?? '', most, withEnded })))
  }
  return toListed(call, page, rows, 0)
}

/** In a transaction: ends some of those whose time has come, and tells of it; answers with how many. */
export async function expireSigners(tx: Tx, app: App, now: string, most: number): Promise<number> {
  const due = await store.dueSigners(tx, now, most)
  for (const signer of due) {
    const ended = { ...signer, endTime: signer.expireTime }
    await store.endSigner(tx, signer.uid, ended)
    const event = { subject: signer.uid, group: await groupOfSigner(tx, signer), resource: anExpiredSigner(ended) }
    await emit(tx, { app, cause: ownCause(app.clock) }, 'control.scanning.signer.expired', event)
  }
  return due.length
}
