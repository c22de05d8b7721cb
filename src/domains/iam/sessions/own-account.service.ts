// Deletion of a person's own account.
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { invalid, permissionDenied } from '#lib/errors.ts'
import { isAtOrBelow, isUid, parentOf, top } from '#lib/uid.ts'
import { requireWholeToken } from '../access/requirements.ts'
import { removeIdentity } from '../identities/identities.service.ts'
import { findIdentity, vouchedBy } from '../identities/identities.store.ts'
import { bindingsOfIdentity } from '../roles/role-bindings.store.ts'
import { hasSignedInElsewhere } from './sign-ins.store.ts'

/**
 * Deletes the caller's account with its bindings and sessions. Throws PERMISSION_DENIED for another account and for a workload.
 * Throws PERMISSION_DENIED in a session that is limited to one organization, if the account is used elsewhere too. Throws
 * FAILED_PRECONDITION for the last owner of an organization.
 */
export async function deleteOwnAccount(call: Call, id: string): Promise<void> {
  const { caller } = call
  if (!isUid(id)) throw invalid({ field: 'id', description: 'is not a uid' })
  if (id !== caller.uid || parentOf(id) !== top || caller.operator)
    throw permissionDenied('you can delete only your own account')
  requireWholeToken(caller, 'delete the account')
  await call.app.db.tx(async (tx) => {
    const identity = await findIdentity(tx, id)
    if (!identity) throw permissionDenied('you can delete only your own account')
    await requireReach(tx, id, caller.session?.organization ?? '')
    // Organizations get events about the bindings that they lose. These events leave out the person's IP address and sign-in.
    const listUnannounced = { ...call.cause, act: undefined, source: '', userAgent: '' }
    await removeIdentity(tx, call, { identity, cause: call.cause, toGroups: listUnannounced })
  })
  call.log.info('account deleted by its owner', { uid: id })
}

/** Throws PERMISSION_DENIED if the session is limited to one organization and the account is used outside of it. */
async function requireReach(tx: Tx, id: string, organization: string): Promise<void> {
  if (organization === '') return
  // A binding that the person has not accepted is no use of the account.
  const bindings = (await bindingsOfIdentity(tx, id)).filter(({ accepted }) => accepted)
  const isInside = bindings.every(({ uid }) => isAtOrBelow(uid, organization))
  if (isInside && (await vouchedBy(tx, id)) === organization && !(await hasSignedInElsewhere(tx, id, organization)))
    return
  throw permissionDenied(
    'the account is also used outside of this organization; sign in with a provider of the server to delete it',
  )
}
