// Consent of people to bindings that other users create. A pending binding has no effect, and the person's data is not shown,
// until the person accepts it. By accepting, the person becomes a member of the organization. Further bindings of a member need
// no consent, until the last binding is deleted.
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
import { type HydratedBinding, type RoleBinding, roleBindingType, toBindingResource } from './role-bindings.model.ts'
import * as store from './role-bindings.store.ts'

const answering = 'accept or decline role bindings'

type Consent = Pick<RoleBinding, 'accepted' | 'createdBy'>

/**
 * Decides if a new binding by the caller is effective at once. Otherwise it is pending. Throws RESOURCE_EXHAUSTED if the person
 * has too many pending bindings in the organization.
 */
export async function consentFor(tx: Tx, { caller }: Call, group: string, identity: string): Promise<Consent> {
  const organization = rootOf(group)
  const unasked = parentOf(identity) !== top || caller.operator || identity === caller.uid
  const accepted = unasked || (await pending.isMember(tx, organization, identity))
  if (!accepted && (await pending.pendingIn(tx, organization, identity)).length >= maxPending) {
    throw new AppError(
      'RESOURCE_EXHAUSTED',
      `the user has ${maxPending} pending role bindings of the organization; the user has to accept or decline some first`,
      {
        reason: 'TOO_MANY_PENDING_BINDINGS',
      },
    )
  }
  return { accepted, createdBy: caller.uid }
}

/**
 * Accepts all pending bindings of a person in an organization. Called after the person has agreed: by a method, an invitation, or
 * a sign-in with the organization's provider. `actor` is the user in the events: the approver of an access request, or else the
 * person.
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
    const event = { subject: uid, resource: toBindingResource(after), actor }
    await emit(tx, work, 'iam.rolebindings.updated', event)
    accepted.push(after)
  }
  return accepted
}

/** Pending bindings of the caller. If the session is limited to an organization, only those of this organization. */
export async function listPendingBindings(call: Call, query: ListQuery<object>): Promise<Listed<PendingBinding>> {
  requireWholeToken(call.caller, 'list pending role bindings')
  const { uid, session } = call.caller
  const scope = { identity: uid, organization: session?.organization ?? '' }
  return listFrom(call, query, [scope], pending.pendingList)
}

/**
 * Accepts a pending binding of the caller, together with all others in the same organization. Returns the uids of the accepted
 * bindings.
 */
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

/**
 * Declines a pending binding, which deletes it. The event for the organization leaves out the person's name, IP address
 * and sign-in.
 */
export async function refusePendingBinding(call: Call, uid: string): Promise<void> {
  requireWholeToken(call.caller, answering)
  await call.app.db.tx(async (tx) => {
    const binding = await requireOwn(tx, call, uid)
    if (binding.accepted) throw notFound(roleBindingType, uid)
    await store.deleteBinding(tx, binding)
    const { app, cause } = call
    const listUnannounced = { app, cause: { ...cause, act: undefined, source: '', userAgent: '', hidesActor: true } }
    await emitDeleted(tx, listUnannounced, 'iam.rolebindings.deleted', uid)
  })
  call.log.info('role binding declined', { uid })
}

/** Binding of the caller. Throws NOT_FOUND for a binding of another identity, as for a missing one. */
async function requireOwn(tx: Tx, { caller }: Call, uid: string): Promise<HydratedBinding> {
  const binding = isUid(uid) ? await store.findBinding(tx, uid) : undefined
  const within = caller.session?.organization || top
  const isOwn = binding?.identityUid === caller.uid && isAtOrBelow(binding.uid, within)
  return found(isOwn ? binding : undefined, roleBindingType, uid)
}
