// A person is bound by others only as far as they agree. Whoever has accepted a binding of an organisation belongs to it
// until the last one is gone, and is asked nothing about its further bindings. Until then a binding gives nothing, and
// tells nobody who it is for.
import type { Call, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { AppError, found, notFound } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isAtOrBelow, isUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { requireWholeToken } from '../access/requirements.ts'
import { listFrom } from '../groups/list-nodes.ts'
import { maxPending, type PendingBinding } from './pending-bindings.model.ts'
import * as pending from './pending-bindings.store.ts'
import { aBinding, type HydratedBinding, type RoleBinding, roleBindingType } from './role-bindings.model.ts'
import * as store from './role-bindings.store.ts'

const answering = 'answer for the person'

type Consent = Pick<RoleBinding, 'accepted' | 'createdBy'>

/** Whether a binding that the caller makes counts at once. Throws RESOURCE_EXHAUSTED when too many wait for the person. */
export async function consentFor(tx: Tx, { caller }: Call, group: string, identity: string): Promise<Consent> {
  const organization = rootOf(group)
  const unasked = parentOf(identity) !== top || caller.operator || identity === caller.uid
  const accepted = unasked || (await pending.isMember(tx, organization, identity))
  if (!accepted && (await pending.pendingIn(tx, organization, identity)).length >= maxPending) {
    throw new AppError(
      'RESOURCE_EXHAUSTED',
      `${maxPending} bindings of the organisation wait for this person already`,
      {
        reason: 'TOO_MANY_PENDING_BINDINGS',
      },
    )
  }
  return { accepted, createdBy: caller.uid }
}

/**
 * Makes all that an organisation has bound a person to count, when they have agreed to belong to it: by a method, by
 * redeeming an invite, or by signing in where the organisation does. `actor` is who did it where that is somebody else: whoever
 * lets them in, as they have asked.
 */
export async function joinOrganization(
  tx: Tx,
  work: Pick<Work, 'app' | 'cause'>,
  organization: string,
  identity: string,
  actor: string = identity,
): Promise<HydratedBinding[]> {
  const accepted: HydratedBinding[] = []
  for (const uid of await pending.pendingIn(tx, organization, identity)) {
    const before = (await store.findBinding(tx, uid))!
    await store.patchBinding(tx, before, { ...before, accepted: true, updateTime: work.cause.now })
    const after = (await store.findBinding(tx, uid))!
    const event = { subject: uid, group: parentOf(uid), resource: aBinding(after), actor }
    await emit(tx, work, 'iam.rolebindings.updated', event)
    accepted.push(after)
  }
  return accepted
}

/** What waits for the caller; in a session that reaches one organisation only, what waits there. */
export async function listPendingBindings(call: Call, query: ListQuery<object>): Promise<Listed<PendingBinding>> {
  requireWholeToken(call.caller, 'ask what waits for the person')
  const { uid, session } = call.caller
  const place = { identity: uid, organization: session?.organization ?? '' }
  return listFrom(call, query, [place], pending.pendingList)
}

/** With it all that waits for the caller in its organisation; their uids. What was accepted before stays so. */
export async function acceptPendingBinding(call: Call, uid: string): Promise<string[]> {
  requireWholeToken(call.caller, answering)
  const accepted = await call.app.db.tx(async (tx) => {
    await requireOwn(tx, call, uid)
    return joinOrganization(tx, call, rootOf(uid), call.caller.uid)
  })
  const uids = accepted.map((binding) => binding.uid)
  if (uids.length > 0) call.log.info('role bindings accepted', { uids })
  return uids
}

/** Deletes it. The organisation is told that, and nothing about where the person is or how they sign in. */
export async function refusePendingBinding(call: Call, uid: string): Promise<void> {
  requireWholeToken(call.caller, answering)
  await call.app.db.tx(async (tx) => {
    const binding = await requireOwn(tx, call, uid)
    if (binding.accepted) throw notFound(roleBindingType, uid)
    await store.deleteBinding(tx, binding)
    const { app, cause } = call
    const untold = { app, cause: { ...cause, act: undefined, source: '', userAgent: '' } }
    await emitDeleted(tx, untold, 'iam.rolebindings.deleted', uid)
  })
  call.log.info('role binding refused', { uid })
}

/** Bindings of others, and those that are not there, get the same answer. */
async function requireOwn(tx: Tx, { caller }: Call, uid: string): Promise<HydratedBinding> {
  const binding = isUid(uid) ? await store.findBinding(tx, uid) : undefined
  const within = caller.session?.organization || top
  const isOwn = binding?.identityUid === caller.uid && isAtOrBelow(binding.uid, within)
  return found(isOwn ? binding : undefined, roleBindingType, uid)
}
