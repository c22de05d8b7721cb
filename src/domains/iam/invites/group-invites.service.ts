import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { type FieldViolation, found, invalid, permissionDenied } from '#lib/errors.ts'
import { checkFields } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isUid, newUid, top } from '#lib/uid.ts'
import { capabilities, capabilityNumber } from '../access/capabilities.ts'
import { addGroup, checkNewGroup, requireGroup } from '../groups/groups.service.ts'
import { listNodes } from '../groups/list-nodes.ts'
import { requireLasting } from '../roles/grants.ts'
import { requireGrantableRole } from '../roles/roles.service.ts'
import {
  type GroupInvite,
  groupInviteFields,
  groupInviteType,
  type HydratedInvite,
  maxInviteLife,
  toInviteResource,
} from './group-invites.model.ts'
import * as store from './group-invites.store.ts'
import { writeInviteCode } from './invite-code.ts'

/** Values of a new invitation. `life` is the time until it expires, in milliseconds. */
export type NewInvite = Pick<GroupInvite, 'roleUid' | 'email' | 'singleUse'> & { life: number | undefined }

/** Capabilities that are needed to invite to a group. */
const invites = ['group_invites.create', 'role_bindings.create'].map(capabilityNumber)

/** Milliseconds for which an expired invitation stays in lists. */
const keptAfter = 7 * 24 * 60 * 60 * 1000

export async function getGroupInvite(call: Call, uid: string): Promise<HydratedInvite> {
  const invite = found(await store.findInvite(call.app.db, uid), groupInviteType, uid)
  return withoutUnknown(invite)
}

export async function listGroupInvites(
  call: Call,
  query: ListQuery<store.InviteFilter>,
): Promise<Listed<HydratedInvite>> {
  const listed = await listNodes(call, query, store.inviteList)
  return { ...listed, items: listed.items.map(withoutUnknown) }
}

/** Invitation with its code and the key of its link. Both are not stored and not part of events. */
export type Offer = { invite: HydratedInvite; code: string; linkKey: string }

/** Creates an invitation. Throws PERMISSION_DENIED unless the caller holds all capabilities of the role. */
export async function createGroupInvite(call: Call, parent: string, input: NewInvite): Promise<Offer> {
  checkInput(input)
  const offer = await call.app.db.tx((tx) => addInvite(tx, call, parent, input))
  call.log.info('group invite created', { uid: offer.invite.uid })
  return offer
}

/**
 * Creates a group and an invitation to it, in one transaction. `path` is the name of an organization, or for a folder the uid of
 * its parent, a slash and its name. On the parent, the caller needs the capabilities to create groups and invitations. The caller
 * does not become the owner.
 */
export async function createGroupWithInvite(call: Call, path: string, input: NewInvite): Promise<Offer> {
  const slash = path.lastIndexOf('/')
  const [parent, name] = slash < 0 ? [top, path] : [path.slice(0, slash), path.slice(slash + 1)]
  if (parent !== top && !isUid(parent))
    throw invalid({
      field: 'group',
      description: 'must be the name of a new organization, or UID/NAME for a new folder',
    })
  if (!call.caller.rights.holds(parent, invites)) throw permissionDenied()
  const group = { name, description: '', verified: false, kind: 0 }
  await checkNewGroup(call, parent, group)
  checkInput(input)
  const offer = await call.app.db.tx(async (tx) => {
    const { uid } = await addGroup(tx, call, parent, group)
    return addInvite(tx, call, uid, input)
  })
  call.log.info('group and invite created', { uid: offer.invite.uid })
  return offer
}

async function addInvite(tx: Tx, call: Call, parent: string, input: NewInvite): Promise<Offer> {
  const { roleUid, email, singleUse } = input
  const uid = newUid(parent)
  const expires = Date.parse(call.now) + (input.life ?? 0)
  const jti = uid.slice(uid.lastIndexOf('/') + 1)
  const says = { grp: parent, role: roleUid, exp: Math.ceil(expires / 1000), jti }
  const { code, linkKey, keyId, publicKey } = writeInviteCode(says)
  const expirationTime = new Date(expires).toISOString()
  const made = { createdBy: call.caller.operator ? '' : call.caller.uid, createTime: call.now }
  const created: GroupInvite = { uid, roleUid, email, expirationTime, singleUse, keyId, ...made }

  await requireGroup(tx, parent)
  const role = await requireGrantableRole(tx, call, roleUid, parent)
  await requireLasting(tx, call.caller, parent, [...invites, ...role.capabilities], 'to invite, you need them')
  await store.sweepInvites(tx, parent, new Date(Date.parse(call.now) - keptAfter).toISOString())
  await store.insertInvite(tx, created, publicKey)
  await emit(tx, call, 'iam.group_invite.created', { subject: uid, resource: toInviteResource(created) })
  return { invite: withoutUnknown((await store.findInvite(tx, uid))!), code, linkKey }
}

/** Deletes an invitation. Its code is invalid from then on. */
export async function deleteGroupInvite(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const invite = found(await store.findInvite(tx, uid), groupInviteType, uid)
    await store.deleteInvite(tx, invite)
    await emitDeleted(tx, call, 'iam.group_invite.deleted', uid)
  })
  call.log.info('group invite deleted', { uid })
}

function checkInput(input: NewInvite): void {
  const { roleUid, life } = input
  const problems: FieldViolation[] = []
  if (roleUid !== '' && !isUid(roleUid)) problems.push({ field: 'role_uid', description: 'is not a uid' })
  if (life === undefined) problems.push({ field: 'ttl', description: 'is required' })
  else if (life <= 0 || life > maxInviteLife) {
    problems.push({ field: 'ttl', description: `must be more than 0s and at most ${maxInviteLife / 1000}s` })
  }
  const { roleUid: role, email } = groupInviteFields
  checkFields<NewInvite>({ roleUid: role, email }, input, problems)
}

/** Leaves out capabilities that this version does not have, because a newer version has added them. */
function withoutUnknown<T extends HydratedInvite>(invite: T): T {
  const { role } = invite
  if (!role) return invite
  return { ...invite, role: { ...role, capabilities: role.capabilities.filter((number) => capabilities.has(number)) } }
}
