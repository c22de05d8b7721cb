// How a person takes their own account away.
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/events/outbox/emit.ts'
import { AppError, invalid, permissionDenied } from '#lib/errors.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { isAtOrBelow, isUid, parentOf, top } from '#lib/uid.ts'
import { unbindIdentity } from '../groups/owners.service.ts'
import { deleteIdentity, findIdentity } from '../identities/identities.store.ts'
import { bindingsOfIdentity } from '../roles/role-bindings.store.ts'
import { end } from './sessions.service.ts'
import { sessionsOfIdentity } from './sessions.store.ts'
import { forgetPerson, isKnownElsewhere, vouchedBy } from './sign-ins.store.ts'

/**
 * Deletes the account of the caller with its bindings and sessions. PERMISSION_DENIED for any other account, for a workload, and
 * where an organisation's provider vouches for somebody who belongs elsewhere too; FAILED_PRECONDITION for the last owner of an
 * organisation.
 */
export async function deleteOwnAccount(call: Call, id: string): Promise<void> {
  const { caller } = call
  if (!isUid(id)) throw invalid({ field: 'id', description: 'is not a uid' })
  if (id !== caller.uid || parentOf(id) !== top || caller.operator)
    throw permissionDenied('the account is not your own')
  if (caller.token?.narrowed) {
    throw new AppError('PERMISSION_DENIED', 'a token narrowed by scopes or capabilities may not delete the account', {
      reason: 'NARROWED_TOKEN',
    })
  }
  await call.app.db.tx(async (tx) => {
    const identity = await findIdentity(tx, id)
    if (!identity) throw permissionDenied('the account is not your own')
    await requireReach(tx, id, caller.session?.organization ?? '')
    await unbind(tx, call, id)
    await endAll(tx, call, id)
    await forgetPerson(tx, id)
    await deleteIdentity(tx, identity)
    await emit(tx, call, 'iam.identity.deleted', { subject: id, group: top, resource: aDeletion({ uid: id }) })
  })
  call.log.info('account deleted by its owner', { uid: id })
}

/** Each organisation is told what it loses, and nothing about where the person is or how they sign in. */
async function unbind(tx: Tx, { app, cause }: Call, id: string): Promise<void> {
  const untold = { app, cause: { ...cause, act: undefined, source: '', userAgent: '' } }
  for (const { uid } of await unbindIdentity(tx, id)) {
    const event = { subject: uid, group: parentOf(uid), resource: aDeletion({ uid }) }
    await emit(tx, untold, 'iam.rolebindings.deleted', event)
  }
}

/** What an organisation's provider vouches for counts in the organisation, so it takes nothing away elsewhere. */
async function requireReach(tx: Tx, id: string, organization: string): Promise<void> {
  if (organization === '') return
  // What nobody has asked them about does not make them belong there.
  const bindings = (await bindingsOfIdentity(tx, id)).filter(({ accepted }) => accepted)
  const isInside = bindings.every(({ uid }) => isAtOrBelow(uid, organization))
  if (isInside && (await vouchedBy(tx, id)) === organization && !(await isKnownElsewhere(tx, id, organization))) return
  throw permissionDenied('the account belongs elsewhere too; sign in with a provider of the server to delete it')
}

const atOnce = 200

/** The uid of a person is always the same, so what is left of them would be theirs again. */
async function endAll(tx: Tx, call: Call, id: string): Promise<void> {
  for (;;) {
    const sessions = await sessionsOfIdentity(tx, id, atOnce)
    for (const session of sessions) await end(tx, call, session, 'deleted')
    if (sessions.length < atOnce) return
  }
}
