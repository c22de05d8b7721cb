// Owners of organizations. Each organization that had an owner keeps at least one.
import type { Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emitDeleted } from '#domains/outbox/emit.ts'
import { failedPrecondition } from '#lib/errors.ts'
import { newUid, parentOf, rootOf } from '#lib/uid.ts'
import { ownerRole } from '../access/built-in-roles.ts'
import type { RoleBinding } from './role-bindings.model.ts'
import * as store from './role-bindings.store.ts'

/** Grants the caller the owner role on a group that was created in the same transaction. */
export async function bindOwner(
  tx: Tx,
  { caller, cause }: Pick<Work, 'caller' | 'cause'>,
  group: string,
): Promise<void> {
  await store.insertBinding(tx, {
    uid: newUid(group),
    identityUid: caller.uid,
    roleUid: ownerRole.uid,
    accepted: true,
    createdBy: caller.uid,
    createTime: cause.now,
    updateTime: cause.now,
  })
}

/** Throws FAILED_PRECONDITION if the organization would lose its last owner with this binding. */
export async function keepAnOwner(reader: Reader, binding: RoleBinding): Promise<void> {
  const group = parentOf(binding.uid)
  if (!binding.accepted || binding.roleUid !== ownerRole.uid || group !== rootOf(group)) return
  if (await store.hasOtherBinding(reader, group, ownerRole.uid, binding.identityUid)) return
  throw failedPrecondition({
    type: 'LAST_OWNER',
    subject: group,
    description: 'the last owner of an organization cannot be removed; grant the owner role to another member first',
  })
}

/** Number of identities with the owner role on the organization itself. Counting stops at `upTo`. */
export async function ownersOf(reader: Reader, organization: string, upTo: number): Promise<number> {
  return store.countBound(reader, organization, ownerRole.uid, upTo)
}

/** Deletes all bindings on a group that is being deleted. */
export async function unbindGroup(tx: Tx, group: string): Promise<void> {
  for (const binding of await store.bindingsOfGroup(tx, group)) await store.deleteBinding(tx, binding)
}

/**
 * Deletes all bindings of an identity that is being deleted, with an event for each binding. Throws FAILED_PRECONDITION for the
 * last owner of an organization.
 */
export async function unbindIdentity(tx: Tx, work: Pick<Work, 'app' | 'cause'>, identity: string): Promise<void> {
  const bindings = await store.bindingsOfIdentity(tx, identity)
  for (const binding of bindings) {
    await keepAnOwner(tx, binding)
    await store.deleteBinding(tx, binding)
  }
  for (const { uid } of bindings) {
    await emitDeleted(tx, work, 'iam.rolebindings.deleted', uid)
  }
}
