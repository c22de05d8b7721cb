import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/events/outbox/emit.ts'
import { AppError, invalid, type Reason } from '#lib/errors.ts'
import { kindOf } from '#lib/events/event-body.ts'
import { newUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { capabilityNumber } from '../access/capabilities.ts'
import { loadGrants } from '../access/grants.ts'
import { createRights, noRights } from '../access/rights.ts'
import { findIdentity, insertIdentity } from '../identities/identities.store.ts'
import { personUid } from '../identities/people.ts'
import { joinOrganization } from '../roles/consent.service.ts'
import { insertBinding } from '../roles/role-bindings.store.ts'
import { type HydratedInvite, sameAddress } from './group-invites.model.ts'
import { deleteInvite, findInviteByKey } from './group-invites.store.ts'
import { type InviteCode, isSignedBy, readInviteCode } from './invite-code.ts'

/** Who has an account now, and in which group; `group` is empty for none. */
export type Registration = { identity: string; group: string }
export const aRegistration = kindOf<Registration>('registration')

/** Somebody whom a trusted provider vouches for. */
export type Person = {
  issuer: string
  subject: string
  name: string
  /** The address, and whether the provider has verified it. */
  email: string
  emailVerified: boolean
}

/**
 * Creates the account of a person who has none, and joins the group of an invite when there is a code. Both or neither; a
 * repetition changes nothing. INVALID_ARGUMENT for a malformed code, PERMISSION_DENIED for one that cannot be redeemed.
 */
export async function registerPerson(call: Call, person: Person, codeText: string): Promise<Registration> {
  const code = codeText === '' ? undefined : readInviteCode(codeText)
  if (codeText !== '' && !code) throw invalid({ field: 'code', description: 'is not the code of an invite' })
  const uid = personUid(person.issuer, person.subject)

  const group = await call.app.db.tx(async (tx) => {
    const created = !(await findIdentity(tx, uid)) && (await createAccount(tx, call, uid, person))
    const invite = code && (await requireInvite(tx, call, code, person))
    const joined = invite !== undefined && (await join(tx, call, uid, invite))
    const group = invite ? parentOf(invite.uid) : ''
    if (created || joined) {
      // Without a group nobody is told but the operator.
      const resource = aRegistration({ identity: uid, group })
      await emit(tx, call, 'auth.registered', { subject: uid, group: group || top, resource, actor: uid })
    }
    return group
  })
  call.log.info('person registered', { uid, group })
  return { identity: uid, group }
}

/** It matches the provider's tokens by its literal issuer and subject; which audience counts is a setting. */
async function createAccount(tx: Tx, call: Call, uid: string, person: Person): Promise<boolean> {
  const { issuer, subject, name, email, emailVerified } = person
  return insertIdentity(tx, {
    uid,
    name,
    description: '',
    company: '',
    email: emailVerified ? email : '',
    emailUnverified: emailVerified ? '' : email,
    claimMatch: { issuer, subject },
    lastSeenTime: call.now,
    createTime: call.now,
    updateTime: call.now,
  })
}

/** A forged code, one of an invite that is gone and one whose maker may not invite any more get the same answer. */
async function requireInvite(tx: Tx, call: Call, code: InviteCode, person: Person): Promise<HydratedInvite> {
  const found = await findInviteByKey(tx, code.kid)
  if (!found || !isSignedBy(code, found.publicKey) || !(await isGood(tx, found.invite))) {
    throw refused('INVITE_INVALID', 'the invite was used or withdrawn, or never existed')
  }
  const { invite } = found
  if (invite.expirationTime <= call.now) throw refused('INVITE_EXPIRED', 'the invite has expired')
  if (invite.email !== '' && !(person.emailVerified && sameAddress(invite.email, person.email))) {
    throw refused('INVITE_EMAIL_MISMATCH', 'the invite is for another verified address')
  }
  return invite
}

const inviting = [capabilityNumber('group_invites.create'), capabilityNumber('role_bindings.create')]

/** Whether its role is there, and whoever made it could make it now. */
async function isGood(tx: Tx, { uid, role, createdBy }: HydratedInvite): Promise<boolean> {
  if (!role) return false
  if (createdBy === '') return true
  const grants = await loadGrants(tx, createdBy)
  const rights = grants ? createRights({ identity: createdBy, grants }) : noRights
  return rights.holds(parentOf(uid), [...inviting, ...role.capabilities])
}

/**
 * Accepts all that the organisation has bound the person to. `false` for somebody who had the role there already; then
 * the invite is not used up.
 */
async function join(tx: Tx, call: Call, identityUid: string, invite: HydratedInvite): Promise<boolean> {
  const group = parentOf(invite.uid)
  const { roleUid } = invite
  const waited = await joinOrganization(tx, call, rootOf(group), identityUid)
  const made = { accepted: true, createdBy: identityUid, createTime: call.now, updateTime: call.now }
  const joined =
    (await insertBinding(tx, { uid: newUid(group), identityUid, roleUid, ...made })) ||
    waited.some((binding) => parentOf(binding.uid) === group && binding.roleUid === roleUid)
  if (joined && invite.singleUse) await deleteInvite(tx, invite)
  return joined
}

function refused(reason: Reason, message: string): AppError {
  return new AppError('PERMISSION_DENIED', message, { reason })
}
