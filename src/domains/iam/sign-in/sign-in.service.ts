// Sign-in of a person whom a sign-in provider has authenticated. Finds or creates the account, adds the person to organizations,
// and applies the roles of external groups.
import type { App, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import { AppError } from '#lib/errors.ts'
import { newUid, parentOf, rootOf, top } from '#lib/uid.ts'
import { maskOf } from '../access/capabilities.ts'
import { setVouchedBy, vouchedBy } from '../identities/identities.store.ts'
import { personUid } from '../identities/people.ts'
import { mappingsOfGroups } from '../identity-providers/external-group-role-mappings.store.ts'
import { createAccount, emitRegistration, type Person, readProof, redeem } from '../invites/registration.service.ts'
import { joinOrganization } from '../roles/consent.service.ts'
import { isMember } from '../roles/pending-bindings.store.ts'
import { toBindingResource } from '../roles/role-bindings.model.ts'
import { findBinding, insertBinding } from '../roles/role-bindings.store.ts'
import { rolesByUid } from '../roles/roles.service.ts'
import { hasProvisioned, isActivePerson } from '../scim/scim-users.store.ts'
import {
  attemptSeconds,
  type GroupRole,
  type Profile,
  type Session,
  type SessionBound,
  type SessionKind,
} from '../sessions/sessions.model.ts'
import { after, beginSession, boundOf, type NewSession } from '../sessions/sessions.service.ts'
import * as store from '../sessions/sign-ins.store.ts'

export type { Profile, Session } from '../sessions/sessions.model.ts'
export type { Attempt } from '../sessions/sign-ins.store.ts'

const attemptPurpose = 'sign-in-attempt'

/** Values that the callback needs and that are stored encrypted. `invite` is the code of an invitation, the key of its link, or empty. */
export type AttemptSecrets = { nonce: string; verifier: string; invite: string }
export type NewAttempt = { state: string; browser: string; provider: string; callback: string; asked: object }

/** Stores a started sign-in for ten minutes. */
export async function noteAttempt(app: App, attempt: NewAttempt, secrets: AttemptSecrets): Promise<void> {
  const { state, browser, provider, callback, asked } = attempt
  const expireTime = after(app.clock().toISOString(), attemptSeconds)
  const sealed = app.cipher.encrypt(attemptPurpose, Buffer.from(JSON.stringify(secrets)))
  await app.db.tx((tx) =>
    store.insertAttempt(tx, {
      stateHash: hashOf(state),
      browserHash: hashOf(browser),
      provider,
      callback,
      sealed,
      asked: JSON.stringify(asked),
      expireTime,
    }),
  )
}

/**
 * Started sign-in with this state, if this browser started it. Each sign-in is returned only once. Undefined if there is none or
 * it has expired.
 */
export async function takeAttempt(
  app: App,
  state: string,
  browser: string,
): Promise<{ provider: string; callback: string; asked: unknown; secrets: AttemptSecrets } | undefined> {
  const taken = await app.db.tx((tx) => store.takeAttempt(tx, hashOf(state), hashOf(browser)))
  if (!taken || taken.expireTime <= app.clock().toISOString()) return undefined
  const secrets = app.cipher.decrypt(attemptPurpose, taken.sealed)
  if (!secrets) return undefined
  const { provider, callback, asked } = taken
  return { provider, callback, asked: JSON.parse(asked), secrets: JSON.parse(secrets.toString()) as AttemptSecrets }
}

/** Data about a person that the sign-in provider has confirmed. */
export type Proven = {
  /** Uid of an organization's provider, or name of a provider of the settings. */
  provider: string
  /** Organization of the provider. Empty for providers of the settings. */
  organization: string
  /** Role that a new person gets in the organization. Empty for none. */
  defaultRole: string
  person: Person
  profile: Profile
  audience: string
  /** External groups of the person. */
  groups: readonly string[]
  /** True if the provider did not send all groups. */
  groupsLeftOut: boolean
  upstreamSid: string
  /** External ID of the person, as in SCIM. Empty if the provider does not send the claim for it. */
  externalId: string
  authTime: number
  idToken: string
}

export type SignInOptions = {
  kind: SessionKind
  /** Secret in the session cookie of the browser. */
  cookie?: string
  /** True if the client requests a refresh token. */
  refresh: boolean
  /** Code of an invitation, or the key of its link. Empty for none. */
  invite: string
  /** True if an account may be created for a person without one. */
  register: boolean
  /** Limits of all tokens of the client. */
  bound?: SessionBound
}

/**
 * Signs a person in and starts a session. Throws NOT_FOUND if the person has no account and none may be created. Throws
 * INVALID_ARGUMENT or PERMISSION_DENIED if the invitation cannot be accepted.
 */
export async function signIn(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  proven: Proven,
  wish: SignInOptions,
): Promise<Session> {
  const { app } = work
  const { person, organization, provider, profile, audience } = proven
  const uid = personUid(person.issuer, person.subject)
  const act = { iss: person.issuer, sub: person.subject, aud: audience, ...(person.email && { email: person.email }) }
  const cause = { ...work.cause, actor: uid, act }
  const session = await app.db.tx(async (tx) => {
    const as = { app, cause }
    await admit(tx, as, uid, proven, wish)
    const roles = await mappedRoles(tx, proven)
    const isBrief = roles.granted.size > 0
    const lifetime = isBrief ? 'brief' : wish.kind === 'browser' ? 'browser' : wish.refresh ? 'refreshed' : 'brief'
    const { cookie, kind } = wish
    const { upstreamSid, externalId, authTime } = proven
    const idToken = kind === 'browser' ? app.cipher.encrypt('session-id-token', Buffer.from(proven.idToken)) : undefined
    const begun = { identityUid: uid, kind, provider, organization, upstreamSid, externalId, act, profile, authTime }
    const { groupsLeftOut } = proven
    const started: NewSession = {
      ...begun,
      ...roles,
      bound: wish.bound && boundOf(wish.bound),
      lifetime,
      cookie,
      idToken,
    }
    return beginSession(tx, as, started, { groupRoles: roles.groupRoles, groupsLeftOut })
  })
  if (proven.groupsLeftOut) {
    work.log.warn('provider did not send the groups of a user: too many', { uid, provider })
  }
  work.log.info('user signed in', { uid, session: session.uid, provider })
  return session
}

type EventWork = Pick<Work, 'app' | 'cause'>

/** Creates the account if needed. Adds the person to the organization of the provider, and to that of the invitation. */
async function admit(tx: Tx, work: EventWork, uid: string, proven: Proven, wish: SignInOptions): Promise<void> {
  const { person, organization, provider, externalId } = proven
  if (organization !== '') await requireNotBlocked(tx, work, provider, externalId)
  const proof = readProof(wish.invite)
  const voucher = await vouchedBy(tx, uid)
  const isKnown = organization === '' ? voucher === '' : voucher !== undefined
  const mayEnter = organization !== '' || proof !== undefined || work.app.config.allowSelfRegistration
  if (!isKnown && !(wish.register && mayEnter)) throw registrationRequired()
  if (voucher === undefined) {
    // An organization's provider can verify an address only for its own organization. So the new account has an unverified
    // address.
    await createAccount(tx, work, organization === '' ? person : { ...person, emailVerified: false })
    if (organization !== '') await setVouchedBy(tx, uid, organization)
  } else if (!isKnown) await setVouchedBy(tx, uid, '')

  if (organization !== '') await enterOrganization(tx, work, uid, proven)
  const joined = proof && (await redeem(tx, work, proof, person, organization || top))
  if (!isKnown || joined?.joined) await emitRegistration(tx, work, uid, joined?.group || organization)
}

/** Accepts the person's pending bindings in the organization of the provider. A new person gets the default role. */
async function enterOrganization(tx: Tx, work: EventWork, uid: string, proven: Proven): Promise<void> {
  const { organization, defaultRole } = proven
  const { now } = work.cause
  const wasMember = await isMember(tx, organization, uid)
  const isNew = await store.notePerson(tx, organization, uid, now)
  await joinOrganization(tx, work, organization, uid)
  if (!isNew || wasMember || defaultRole === '') return
  const binding = { uid: newUid(organization), identityUid: uid, roleUid: defaultRole }
  const made = { accepted: true, createdBy: uid, createTime: now, updateTime: now }
  if (!(await insertBinding(tx, { ...binding, ...made }))) return
  const resource = toBindingResource((await findBinding(tx, binding.uid))!)
  await emit(tx, work, 'iam.rolebindings.created', { subject: binding.uid, group: organization, resource, actor: uid })
}

/**
 * True if the person has an account and can sign in with a provider in the settings, not only with an organization's provider.
 */
export async function isKnownToSettings(reader: Reader, uid: string): Promise<boolean> {
  return (await vouchedBy(reader, uid)) === ''
}

/** Roles of the person's external groups, by the group mappings of the organization. */
async function mappedRoles(
  reader: Reader,
  { provider, organization, groups }: Proven,
): Promise<{ granted: Map<string, bigint>; groupRoles: GroupRole[] }> {
  const granted = new Map<string, bigint>()
  if (organization === '' || groups.length === 0) return { granted, groupRoles: [] }
  const mappings = await mappingsOfGroups(reader, provider, groups)
  const inside = mappings.filter(({ scope, uid }) => rootOf(scope) === organization && parentOf(uid) === provider)
  const roleUids = inside.map(({ roleUid }) => roleUid)
  const roles = await rolesByUid(reader, roleUids)
  for (const { scope, roleUid } of inside) {
    const mask = maskOf(roles.get(roleUid)?.capabilities ?? [])
    granted.set(scope, (granted.get(scope) ?? 0n) | mask)
  }
  const groupRoles = inside.map(({ scope, roleUid, externalGroupId }) => ({ scope, roleUid, externalGroupId }))
  return { granted, groupRoles }
}

/**
 * Throws PERMISSION_DENIED if the organization's provider has blocked the person over SCIM. A person without an external ID
 * cannot be blocked. So it is also thrown for such a person if the provider uses SCIM.
 */
export async function requireNotBlocked(
  reader: Reader,
  { app }: Pick<Work, 'app'>,
  provider: string,
  externalId: string,
): Promise<void> {
  if (externalId !== '') {
    if ((await isActivePerson(reader, provider, externalId)) === false) throw deprovisioned()
  } else if (await hasProvisioned(reader, provider)) {
    app.log.warn('sign-in without the claim that identifies the provisioned user', { provider })
    throw deprovisioned()
  }
}

function deprovisioned(): AppError {
  return new AppError(
    'PERMISSION_DENIED',
    'the identity provider has deactivated your account; ask its administrator',
    { reason: 'DEPROVISIONED' },
  )
}

function registrationRequired(): AppError {
  return new AppError(
    'NOT_FOUND',
    'you have no account on this server; ask a member of your organization for an invitation',
    {
      reason: 'REGISTRATION_REQUIRED',
    },
  )
}
