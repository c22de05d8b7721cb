// Consent of people to bindings that others create. A person who has accepted a binding of an organization is a member until the
// last binding is gone, and needs no consent for further bindings. Until then a binding has no effect, and does not show the
// person's data.
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

/** Tells whether a binding by the caller applies at once. Throws RESOURCE_EXHAUSTED if too many bindings wait for the person. */
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
 * Accepts all bindings of a person in an organization. The person has agreed to the membership before: by a method, an invite, or
 * a sign-in with the organization's provider. `actor` is the user who approves a request for access, otherwise the person.
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
    const event = { subject: uid, group: parentOf(uid), resource: toBindingResource(after), actor }
    await emit(tx, work, 'iam.rolebindings.updated', event)
    accepted.push(after)
  }
  return accepted
}

/** Bindings that wait for the caller; in a session of one organization, only those of the organization. */
export async function listPendingBindings(call: Call, query: ListQuery<object>): Promise<Listed<PendingBinding>> {
  requireWholeToken(call.caller, 'list pending role bindings')
  const { uid, session } = call.caller
  const place = { identity: uid, organization: session?.organization ?? '' }
  return listFrom(call, query, [place], pending.pendingList)
}

/** Accepts a binding and all others that wait for the caller in its organization. Returns the uids of the newly accepted ones. */
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

/** Deletes the binding. The event tells the organization nothing about the person's address or sign-in. */
export async function refusePendingBinding(call: Call, uid: string): Promise<void> {
  requireWholeToken(call.caller, answering)
  await call.app.db.tx(async (tx) => {
    const binding = await requireOwn(tx, call, uid)
    if (binding.accepted) throw notFound(roleBindingType, uid)
    await store.deleteBinding(tx, binding)
    const { app, cause } = call
    const listUnannounced = { app, cause: { ...cause, act: undefined, source: '', userAgent: '' } }
    await emitDeleted(tx, listUnannounced, 'iam.rolebindings.deleted', uid)
  })
  call.log.info('role binding declined', { uid })
}

/** Own binding of the caller. Throws the same NOT_FOUND for bindings of others and for unknown ones. */
async function requireOwn(tx: Tx, { caller }: Call, uid: string): Promise<HydratedBinding> {
  const binding = isUid(uid) ? await store.findBinding(tx, uid) : undefined
  const within = caller.session?.organization || top
  const isOwn = binding?.identityUid === caller.uid && isAtOrBelow(binding.uid, within)
  return found(isOwn ? binding : undefined, roleBindingType, uid)
}
