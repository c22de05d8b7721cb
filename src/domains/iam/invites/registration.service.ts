import type { Call, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { AppError, invalid, type Reason } from '#lib/errors.ts'
import { kindOf } from '#lib/events/event-body.ts'
import { isAtOrBelow, newUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { capabilityNumber } from '../access/capabilities.ts'
import { insertIdentity, setVouchedBy, vouchedBy } from '../identities/identities.store.ts'
import { personUid } from '../identities/people.ts'
import { joinOrganization } from '../roles/consent.service.ts'
import { holdsByBindings } from '../roles/grants.ts'
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
 * repetition changes nothing. INVALID_ARGUMENT for a malformed code, PERMISSION_DENIED for one that cannot be redeemed, and
 * for a new person without one, unless the settings let everybody in.
 */
export async function registerPerson(call: Call, person: Person, codeText: string): Promise<Registration> {
  const code = readCode(codeText)
  const uid = personUid(person.issuer, person.subject)
  const group = await call.app.db.tx(async (tx) => {
    const by = await vouchedBy(tx, uid)
    if (by !== '' && !code && !call.app.config.openSignIn) {
      throw refused('INVITE_REQUIRED', 'a new person needs an invite on this server')
    }
    const isNew = by === undefined ? await createAccount(tx, call, person) : by !== ''
    // Whoever the settings trust vouches for the person now.
    if (by) await setVouchedBy(tx, uid, '')
    const { group, joined } = code ? await redeem(tx, call, code, person) : nowhere
    if (isNew || joined) await tellRegistered(tx, call, uid, group)
    return group
  })
  call.log.info('person registered', { uid, group })
  return { identity: uid, group }
}

const nowhere = { group: '', joined: false }

/** What the text of a code says; nothing for an empty one. Throws INVALID_ARGUMENT for what is no code. */
export function readCode(text: string): InviteCode | undefined {
  const code = text === '' ? undefined : readInviteCode(text)
  if (text !== '' && !code) throw invalid({ field: 'code', description: 'is not the code of an invite' })
  return code
}

/** Without a group nobody is told but the operator. */
export async function tellRegistered(tx: Tx, work: EventWork, identity: string, group: string): Promise<void> {
  const resource = aRegistration({ identity, group })
  await emit(tx, work, 'auth.registered', { subject: identity, group: group || top, resource, actor: identity })
}

type EventWork = Pick<Work, 'app' | 'cause'>

/**
 * Joins the group of the invite, if it may be redeemed. `within` is the organisation that it has to be of, where somebody is
 * vouched for there only. `joined` is false for somebody who had the role already.
 */
export async function redeem(
  tx: Tx,
  work: EventWork,
  code: InviteCode,
  person: Person,
  within: string = top,
): Promise<{ group: string; joined: boolean }> {
  const invite = await requireInvite(tx, work.cause.now, code, person, within)
  const joined = await join(tx, work, personUid(person.issuer, person.subject), invite)
  return { group: parentOf(invite.uid), joined }
}

/** The group and the name of the role that a code offers, also when it cannot be redeemed now; the name is empty for none. */
export async function findOffer(
  reader: Reader,
  codeText: string,
): Promise<{ group: string; role: string } | undefined> {
  const code = readInviteCode(codeText)
  const found = code && (await findInviteByKey(reader, code.kid))
  if (!found || !isSignedBy(code, found.publicKey)) return undefined
  return { group: parentOf(found.invite.uid), role: found.invite.role?.name ?? '' }
}

/** It matches the provider's tokens by its literal issuer and subject; which audience counts is a setting. */
export async function createAccount(tx: Tx, { cause: { now } }: EventWork, person: Person): Promise<boolean> {
  const { issuer, subject, name, email, emailVerified } = person
  return insertIdentity(tx, {
    uid: personUid(issuer, subject),
    name,
    description: '',
    company: '',
    email: emailVerified ? email : '',
    emailUnverified: emailVerified ? '' : email,
    claimMatch: { issuer, subject },
    lastSeenTime: now,
    createTime: now,
    updateTime: now,
  })
}

/** A forged code, one of an invite that is gone and one whose maker may not invite any more get the same answer. */
async function requireInvite(
  tx: Tx,
  now: string,
  code: InviteCode,
  person: Person,
  within: string,
): Promise<HydratedInvite> {
  const found = await findInviteByKey(tx, code.kid)
  const isThere = found && isSignedBy(code, found.publicKey) && isAtOrBelow(found.invite.uid, within)
  if (!isThere || !(await isGood(tx, found.invite))) {
    throw refused('INVITE_INVALID', 'the invite was used or withdrawn, or never existed')
  }
  const { invite } = found
  if (invite.expirationTime <= now) throw refused('INVITE_EXPIRED', 'the invite has expired')
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
  return holdsByBindings(tx, createdBy, parentOf(uid), [...inviting, ...role.capabilities])
}

/**
 * Accepts all that the organisation has bound the person to. `false` for somebody who had the role there already; then
 * the invite is not used up.
 */
async function join(tx: Tx, work: EventWork, identityUid: string, invite: HydratedInvite): Promise<boolean> {
  const group = parentOf(invite.uid)
  const { roleUid } = invite
  const waited = await joinOrganization(tx, work, rootOf(group), identityUid)
  const { now } = work.cause
  const made = { accepted: true, createdBy: identityUid, createTime: now, updateTime: now }
  const joined =
    (await insertBinding(tx, { uid: newUid(group), identityUid, roleUid, ...made })) ||
    waited.some((binding) => parentOf(binding.uid) === group && binding.roleUid === roleUid)
  if (joined && invite.singleUse) await deleteInvite(tx, invite)
  return joined
}

function refused(reason: Reason, message: string): AppError {
  return new AppError('PERMISSION_DENIED', message, { reason })
}
