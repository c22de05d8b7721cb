import type { Work } from '#app.ts'
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
import { type InviteProof, isProvenBy, readInviteProof } from './invite-code.ts'

/** New account and the group that the person joined. `group` is empty for none. */
export type Registration = { identity: string; group: string }
export const toRegistrationResource = kindOf<Registration>('registration')

/** Data about a person from a sign-in provider that is trusted. */
export type Person = {
  issuer: string
  subject: string
  name: string
  /** Email address. `emailVerified` is true if the provider has verified it. */
  email: string
  emailVerified: boolean
}

/**
 * Creates an account if the person has none, and accepts the invitation of a code. Both are in one transaction, and a repetition
 * changes nothing. Throws INVALID_ARGUMENT for a malformed code. Throws PERMISSION_DENIED if the invitation cannot be accepted.
 * Throws PERMISSION_DENIED for a new person without a code, unless the settings have open sign-in.
 */
export async function registerPerson(call: LoggedWork, person: Person, codeText: string): Promise<Registration> {
  const proof = readProof(codeText)
  const uid = personUid(person.issuer, person.subject)
  const group = await call.app.db.tx(async (tx) => {
    const by = await vouchedBy(tx, uid)
    if (by !== '' && !proof && !call.app.config.allowSelfRegistration) {
      throw refusedInvite(
        'INVITE_REQUIRED',
        'new users of this server need an invitation; ask a member of your organization for one',
      )
    }
    const isNew = by === undefined ? await createAccount(tx, call, person) : by !== ''
    // Until now, only an organization's provider vouched for the person. From now on, a provider in the settings does too.
    if (by) await setVouchedBy(tx, uid, '')
    const { group, joined } = proof ? await redeem(tx, call, proof, person) : nowhere
    if (isNew || joined) await emitRegistration(tx, call, uid, group)
    return group
  })
  call.log.info('user registered', { uid, group })
  return { identity: uid, group }
}

const nowhere = { group: '', joined: false }

/**
 * Parses the code of an invitation, or the key of its link. Undefined for an empty text. Throws INVALID_ARGUMENT for any other text.
 */
export function readProof(text: string): InviteProof | undefined {
  const proof = text === '' ? undefined : readInviteProof(text)
  if (text !== '' && !proof) throw invalid({ field: 'code', description: 'is not a valid invitation code' })
  return proof
}

/** Emits the event of a registration. If the person joined no group, only the operator receives the event. */
export async function emitRegistration(tx: Tx, work: EventWork, identity: string, group: string): Promise<void> {
  const resource = toRegistrationResource({ identity, group })
  await emit(tx, work, 'auth.registered', { subject: identity, group: group || top, resource, actor: identity })
}

type EventWork = Pick<Work, 'app' | 'cause'>
type LoggedWork = Pick<Work, 'app' | 'cause' | 'log'>

/**
 * Accepts an invitation for a person. The invitation must be for a group of `within`, the organization to which the sign-in is
 * limited. `joined` is false if the person had the role already.
 */
export async function redeem(
  tx: Tx,
  work: EventWork,
  proof: InviteProof,
  person: Person,
  within: string = top,
): Promise<{ group: string; joined: boolean }> {
  const invite = await requireInvite(tx, work.cause.now, proof, person, within)
  const joined = await addBinding(tx, work, personUid(person.issuer, person.subject), invite)
  if (joined && isUsedUp(invite, proof)) await deleteInvite(tx, invite)
  return { group: parentOf(invite.uid), joined }
}

/** True if a second person cannot use the invitation. The link of an invitation for an email address works once. */
function isUsedUp({ singleUse, email }: HydratedInvite, { code }: InviteProof): boolean {
  return singleUse || (code === undefined && email !== '')
}

/** Invitation as its receiver sees it. */
export type Offer = {
  group: string
  /** Name of the role. Empty if the role was deleted. */
  role: string
  email: string
  expirationTime: string
  /** Uid of the creator. Empty for the operator. */
  createdBy: string
  /** True if only one person can accept it. */
  isOnce: boolean
  /** False if the role was deleted, or if the creator is no longer allowed to invite. Then nobody can accept it. */
  isValid: boolean
}

/** Invitation of a code or of the key of a link, even if it has expired. Undefined if there is none. */
export async function findOffer(reader: Reader, text: string): Promise<Offer | undefined> {
  const proof = readInviteProof(text)
  const found = proof && (await findInviteByKey(reader, proof.kid))
  if (!found || !isProvenBy(proof, found.publicKey)) return undefined
  const { uid, role, email, expirationTime, createdBy } = found.invite
  const [isOnce, isValid] = [isUsedUp(found.invite, proof), await isStillValid(reader, found.invite)]
  return { group: parentOf(uid), role: role?.name ?? '', email, expirationTime, createdBy, isOnce, isValid }
}

/**
 * Creates the account of a person. It matches tokens with this issuer and subject; the settings define the audience. Returns
 * false if the account exists.
 */
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

/**
 * Invitation of a code. Throws the same error for a forged code, for a deleted invitation, and if the creator is no longer
 * allowed to invite.
 */
async function requireInvite(
  tx: Tx,
  now: string,
  proof: InviteProof,
  person: Person,
  within: string,
): Promise<HydratedInvite> {
  const found = await findInviteByKey(tx, proof.kid)
  const isThere = found && isProvenBy(proof, found.publicKey) && isAtOrBelow(found.invite.uid, within)
  if (!isThere || !(await isStillValid(tx, found.invite))) {
    throw refusedInvite('INVITE_INVALID', 'the invitation does not exist, was used or was withdrawn; ask for a new one')
  }
  const { invite } = found
  if (invite.expirationTime <= now)
    throw refusedInvite('INVITE_EXPIRED', 'the invitation has expired; ask for a new one')
  if (invite.email !== '' && !(person.emailVerified && sameAddress(invite.email, person.email))) {
    throw refusedInvite(
      'INVITE_EMAIL_MISMATCH',
      'the invitation is for another email address; sign in with a verified account of this address',
    )
  }
  return invite
}

const inviting = [capabilityNumber('group_invites.create'), capabilityNumber('role_bindings.create')]

/** True if the role still exists and the bindings of the creator still allow this invitation. */
async function isStillValid(reader: Reader, { uid, role, createdBy }: HydratedInvite): Promise<boolean> {
  if (!role) return false
  if (createdBy === '') return true
  return holdsByBindings(reader, createdBy, parentOf(uid), [...inviting, ...role.capabilities])
}

/**
 * Accepts all pending bindings of the person in the organization, and adds the binding of the invitation. Returns false if the
 * person had the role already. Then a single-use invitation stays valid.
 */
async function addBinding(tx: Tx, work: EventWork, identityUid: string, invite: HydratedInvite): Promise<boolean> {
  const group = parentOf(invite.uid)
  const { roleUid } = invite
  const waited = await joinOrganization(tx, work, rootOf(group), identityUid)
  const { now } = work.cause
  const made = { accepted: true, createdBy: identityUid, createTime: now, updateTime: now }
  return (
    (await insertBinding(tx, { uid: newUid(group), identityUid, roleUid, ...made })) ||
    waited.some((binding) => parentOf(binding.uid) === group && binding.roleUid === roleUid)
  )
}

function refusedInvite(reason: Reason, message: string): AppError {
  return new AppError('PERMISSION_DENIED', message, { reason })
}
