import type { App, Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { found, invalid, permissionDenied } from '#lib/errors.ts'
import { applyPatch, checkFields, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { newUid, parentOf, top } from '#lib/uid.ts'
import { capabilities } from '../access/capabilities.ts'
import { requireWholeToken } from '../access/requirements.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listNodes } from '../groups/list-nodes.ts'
import type { IdentityDeletion } from '../hooks.ts'
import {
  type Identity,
  identityFields,
  identityType,
  keyLife,
  type PersonProfile,
  profileFields,
  type Relationship,
  relationshipKind,
  toIdentityResource,
  toProfileResource,
} from './identities.model.ts'
import * as store from './identities.store.ts'
import { vouchedBy } from './identities.store.ts'
import { personUid } from './people.ts'
import { checkRelationship, keepLatest, storedPatternProblem, withDefaults } from './relationships.ts'

export type NewIdentity = Relationship & Pick<Identity, 'name' | 'description' | 'company'>

export async function getIdentity(call: Call, uid: string): Promise<Identity> {
  return found(await store.findIdentity(call.app.db, uid), identityType, uid)
}

export async function identityExists(reader: Reader, uid: string): Promise<boolean> {
  return (await store.findIdentity(reader, uid)) !== undefined
}

/** Logs a warning if a stored pattern of the identity exceeds the limits. Such a pattern was stored before the limits existed. */
export function logStoredPatterns({ log }: Pick<App, 'log'>, uid: string, identity: Relationship): void {
  const problem = storedPatternProblem(identity)
  if (problem) log.warn('pattern of an identity is above the limits', { identity: uid, problem })
}

const hourMs = 60 * 60 * 1000

/**
 * Returns a callback that logs a warning if a claim is too long for a pattern. For each identity, at most one warning is logged
 * per hour.
 */
export function logTooLongClaim({ log, tooLongClaims }: Pick<App, 'log' | 'tooLongClaims'>, uid: string, now: Date) {
  return (claim: string): void => {
    if (tooLongClaims.get(uid, now.getTime())) return
    tooLongClaims.set(uid, true, now.getTime() + hourMs)
    log.warn('claim is too long for the patterns of an identity', { identity: uid, claim })
  }
}

/** Identity for a token exchange. Permissions are not checked. */
export async function findIdentityForExchange(reader: Reader, uid: string): Promise<Identity | undefined> {
  return store.findIdentity(reader, uid)
}

export async function listIdentities(call: Call, query: ListQuery<store.IdentityFilter>): Promise<Listed<Identity>> {
  return listNodes(call, query, store.identityList)
}

/** Uid of the person with this issuer and subject. The uid is the same before and after the first sign-in. */
export function lookupIdentity(issuer: string, subject: string): string {
  if (issuer === '') throw invalid({ field: 'issuer', description: 'is required' })
  if (subject === '') throw invalid({ field: 'subject', description: 'is required' })
  // The uid is a hash of issuer, zero byte and subject. If the issuer contained a zero byte, two people could get the same uid.
  if (issuer.includes('\0')) throw invalid({ field: 'issuer', description: 'must not contain a NUL character' })
  return personUid(issuer, subject)
}

/**
 * Creates an identity. The issuer is not contacted before the first token exchange. `life` is the longest life of static keys, in
 * milliseconds.
 */
export async function createIdentity(
  call: Call,
  parent: string,
  input: NewIdentity,
  life: number = keyLife.v2,
): Promise<Identity> {
  const times = { lastSeenTime: call.now, createTime: call.now, updateTime: call.now }
  const addresses = { email: '', emailUnverified: '' }
  const identity = withDefaults<Identity>({ ...input, ...addresses, ...times, uid: newUid(parent) }, call.now, life)
  checkIdentity(identity, life)

  await call.app.db.tx(async (tx) => {
    await requireGroup(tx, parent)
    await store.insertIdentity(tx, identity)
    await emit(tx, call, 'iam.identity.created', { subject: identity.uid, resource: toIdentityResource(identity) })
  })
  call.log.info('identity created', { uid: identity.uid })
  return identity
}

/** Updates an identity. The relationship can be changed, but not into another kind. */
export async function updateIdentity(
  call: Call,
  uid: string,
  patch: Patch<Identity>,
  life: number = keyLife.v2,
): Promise<Identity> {
  const identity = await call.app.db.tx(async (tx) => {
    const before = found(await store.findIdentity(tx, uid), identityType, uid)
    const patched = keepLatest(before, applyPatch<Identity>(identityFields, before, patch))
    const kind = relationshipKind(before)
    if (kind && relationshipKind({ ...patched, [kind]: undefined })) {
      throw invalid({
        field: 'relationship',
        description: 'cannot be replaced by another kind; create another identity instead',
      })
    }
    const after = withDefaults({ ...patched, updateTime: call.now }, before.createTime, life)
    checkIdentity(after, life, before)
    if (kind && JSON.stringify(before[kind]) !== JSON.stringify(after[kind])) await checkTakeover(tx, call, uid)
    await store.patchIdentity(tx, before, after)
    await emit(tx, call, 'iam.identity.updated', { subject: uid, resource: toIdentityResource(after) })
    return after
  })
  call.log.info('identity updated', { uid, paths: patch.paths })
  return identity
}

/** Deletes an identity with its bindings and sessions. Access tokens of the identity have no permissions from then on. */
export async function deleteIdentity(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const identity = found(await store.findIdentity(tx, uid), identityType, uid)
    await removeIdentity(tx, call, { identity, cause: call.cause, toGroups: call.cause })
  })
  call.log.info('identity deleted', { uid })
}

/**
 * Deletes an identity and everything that belongs to it, with an event for each deleted resource. Throws FAILED_PRECONDITION for
 * the last owner of an organization.
 */
export async function removeIdentity(tx: Tx, { app }: Pick<Call, 'app'>, deletion: IdentityDeletion): Promise<void> {
  const { identity, cause } = deletion
  const { uid } = identity
  for (const hook of app.hooks.identityDeleting) await hook(tx, deletion)
  await store.deleteIdentity(tx, identity)
  await emitDeleted(tx, { app, cause }, 'iam.identity.deleted', uid)
}

function checkIdentity(identity: Identity, life: number, before?: Identity): void {
  const { name, description, company } = identityFields
  checkFields<Identity>({ name, description, company }, identity, checkRelationship(identity, life, before))
}

/**
 * Throws PERMISSION_DENIED unless the caller holds all capabilities of the identity. By changing the conditions, the caller could
 * act as the identity.
 */
async function checkTakeover(tx: Tx, call: Call, uid: string): Promise<void> {
  for (const grant of (await store.listGrants(tx, uid)) ?? []) {
    const numbers = (JSON.parse(grant.capabilities) as number[]).filter((number) => capabilities.has(number))
    if (!call.caller.rights.holds(grant.scope, numbers)) {
      throw permissionDenied(
        'the identity has capabilities that the caller does not have; ask an owner of the organization to change it',
      )
    }
  }
}

/** Updates the profile of the caller. Throws PERMISSION_DENIED unless the caller is a person. */
export async function updateProfile(call: Call, patch: Patch<PersonProfile>): Promise<PersonProfile> {
  const { caller, now } = call
  const { uid } = caller
  if (caller.operator || parentOf(uid) !== top)
    throw permissionDenied('only users have a profile; service accounts and the operator have none')
  requireWholeToken(caller, 'change the profile')
  const profile = await call.app.db.tx(async (tx) => {
    await requireVouchedProfile(tx, call)
    const identity = found(await store.findIdentity(tx, uid), identityType, uid)
    const { name, company } = identity
    const jobTitle = await store.findJobTitle(tx, uid)
    const before: PersonProfile = { uid, name, givenName: '', familyName: '', company, jobTitle }
    const after = applyPatch<PersonProfile>(profileFields, before, patch)
    checkFields<PersonProfile>(profileFields, after)
    await store.patchProfile(tx, identity, { ...identity, company: after.company, updateTime: now }, after.jobTitle)
    await emit(tx, call, 'iam.identity.metadata.updated', {
      subject: uid,
      group: top,
      resource: toProfileResource(after),
    })
    return after
  })
  call.log.info('profile updated', { paths: patch.paths })
  return profile
}

/** Throws PERMISSION_DENIED if the session is limited to one organization and the person is also known outside of it. */
async function requireVouchedProfile(reader: Reader, { caller: { uid, session } }: Call): Promise<void> {
  const organization = session?.organization ?? ''
  if (organization === '' || (await vouchedBy(reader, uid)) === organization) return
  throw permissionDenied(
    'your sign-in is limited to one organization, but others see the profile too; sign in with a provider of the server',
  )
}
