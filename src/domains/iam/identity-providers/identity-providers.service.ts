import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { emit, emitDeleted } from '#domains/outbox/emit.ts'
import { AppError, alreadyExists, type FieldViolation, found, invalid, limitExceeded } from '#lib/errors.ts'
import { applyPatch, checkFields, maxNameLength, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isUid, newUid, parentOf, rootOf } from '#lib/uid.ts'
import { requireRecentSignIn } from '../access/requirements.ts'
import { organizationOfDomain } from '../email-domains/email-domains.service.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listNodes } from '../groups/list-nodes.ts'
import { isIssuerUrl } from '../identities/relationships.ts'
import { endPushTokensOfProvider } from '../push-tokens/push-token-use.service.ts'
import { requireGrantableRole } from '../roles/roles.service.ts'
import { endAllOfProvider } from '../sessions/sessions.service.ts'
import { deleteSessionsOfProvider } from '../sessions/sessions.store.ts'
import { deleteMapping, mappingsOfProvider } from './external-group-role-mappings.store.ts'
import {
  type Discovery,
  emptyOidc,
  type IdentityProvider,
  identityProviderFields,
  identityProviderType,
  type Oidc,
  type ProviderInput,
  problemOfGroupsClaim,
  providerLimits,
  scopePattern,
  subjectRule,
  toProviderResource,
} from './identity-providers.model.ts'
import * as store from './identity-providers.store.ts'
import { checkDiscovery } from './provider-discovery.ts'

const secretPurpose = 'identity-provider-secret'

export async function getIdentityProvider(call: Call, uid: string): Promise<IdentityProvider> {
  return requireProvider(call.app.db, uid)
}

/**
 * Provider with this uid. Throws NOT_FOUND if there is none. Must be called in the transaction that adds a resource to the
 * provider.
 */
export async function requireProvider(reader: Reader, uid: string): Promise<IdentityProvider> {
  return found(await store.findProvider(reader, uid), identityProviderType, uid)
}

/** Provider with its client secret, for a sign-in. Undefined if the provider does not exist. */
export async function findForSignIn(
  { db, cipher }: Pick<Call['app'], 'db' | 'cipher'>,
  uid: string,
): Promise<{ provider: IdentityProvider; secret: string; externalIdClaim: 'sub' | 'oid' } | undefined> {
  const provider = await store.findProvider(db, uid)
  if (!provider) return undefined
  const sealed = await store.encryptedSecretOf(db, uid)
  const secret = sealed.length === 0 ? undefined : cipher.decrypt(secretPurpose, sealed)
  const externalIdClaim = provider.oidc.correlationRule === subjectRule ? 'sub' : 'oid'
  return { provider, secret: secret?.toString() ?? '', externalIdClaim }
}

/** Providers of an organization. */
export async function providersOf(reader: Reader, organization: string): Promise<store.NamedProvider[]> {
  return store.providersOf(reader, organization)
}

/**
 * Providers of the organization that a person names: by its name, by an email address, or by a verified email domain. Empty if
 * there is no such organization, or if it has no provider. Anybody can create an organization whose name is the domain of another
 * company. So an email address never counts as a name. A verified domain means the organization that has verified it, even if it
 * is also a name. Only an organization whose name the operator has verified comes first.
 */
export async function providersOfNamed(reader: Reader, text: string): Promise<store.NamedProvider[]> {
  const domain = text.slice(text.lastIndexOf('@') + 1)
  const byName = domain === text && text.length <= maxNameLength ? await store.providersOfNamed(reader, text) : []
  if (byName.some(({ verified }) => verified === 1)) return byName
  const organization = await organizationOfDomain(reader, domain)
  const byDomain = organization === undefined ? [] : await store.providersOf(reader, organization)
  return byDomain.length > 0 ? byDomain : byName
}

/** Uid of the provider of the verified organization with this name. If there are several, it is the oldest one. */
export async function findProviderOfVerified(reader: Reader, name: string): Promise<string | undefined> {
  return name.length > maxNameLength ? undefined : store.providerOfVerified(reader, name)
}

export async function listIdentityProviders(
  call: Call,
  query: ListQuery<store.ProviderFilter>,
): Promise<Listed<IdentityProvider>> {
  return listNodes(call, query, store.providerList)
}

/** Rule that a provider must have a default role, or may have none. Without a default role, new people have no role after the first sign-in. */
export type ProviderRules = { defaultRole: 'required' | 'optional' }
const roleRequired: ProviderRules = { defaultRole: 'required' }
const roleOptional: ProviderRules = { defaultRole: 'optional' }

/** Creates a provider. Its discovery document is read and checked first. */
export async function createIdentityProvider(
  call: Call,
  parent: string,
  input: ProviderInput,
  rules: ProviderRules = roleRequired,
): Promise<IdentityProvider> {
  if (parent !== rootOf(parent)) throw invalid({ field: 'parent', description: 'must be an organization' })
  requireRecentSignIn(call)
  const { oidc, secret } = readOidc(input.oidc, undefined, [])
  const { name, description, defaultRole } = input
  const times = { createTime: call.now, updateTime: call.now }
  const bare = { uid: newUid(parent), name, description, defaultRole, oidc, discovery: undefined, ...times }
  checkProvider(bare, secret ?? '', rules)
  const checkParent = async (reader: Reader) => {
    await checkLimit(reader, parent)
    if (defaultRole !== '') await requireGrantableRole(reader, call, defaultRole, parent)
  }
  await checkParent(call.app.db)
  const provider: IdentityProvider = { ...bare, discovery: await discover(call, oidc) }

  const sealed = seal(call, secret ?? '')
  await call.app.db.tx(async (tx) => {
    await checkParent(tx)
    if (!(await store.insertProvider(tx, provider, sealed))) throw nameTaken(name)
    const resource = toProviderResource(provider)
    await emit(tx, call, 'iam.identity_providers.created', { subject: provider.uid, resource })
  })
  call.log.info('identity provider created', { uid: provider.uid })
  return provider
}

/**
 * Updates a provider. Reads the discovery document if the issuer changes, if PKCE is turned on, or if the document could not be
 * read before.
 */
export async function updateIdentityProvider(
  call: Call,
  uid: string,
  patch: Patch<ProviderInput>,
  rules: ProviderRules = roleRequired,
): Promise<IdentityProvider> {
  requireRecentSignIn(call)
  // A transaction must not wait for the network. So discovery runs first, and the transaction checks that the settings are still
  // the same.
  const planned = await planUpdate(call, call.app.db, uid, patch, rules)
  const discovery = planned.asks ? await discover(call, planned.after.oidc) : undefined

  const provider = await call.app.db.tx(async (tx) => {
    const { before, after: settled, sealed, asks } = await planUpdate(call, tx, uid, patch, rules)
    const after: IdentityProvider = asks ? { ...settled, discovery } : settled
    if (asks && asks !== planned.asks) {
      throw new AppError('ABORTED', 'the identity provider was changed by another request; try again')
    }
    if (!(await store.patchProvider(tx, before, after, sealed))) throw nameTaken(after.name)
    const isAnother = before.oidc.issuer !== after.oidc.issuer || before.oidc.clientId !== after.oidc.clientId
    if (isAnother) {
      await endAllOfProvider(tx, call, uid, {}, 'ended')
      await endPushTokensOfProvider(tx, call, uid)
    }
    const resource = toProviderResource(after)
    await emit(tx, call, 'iam.identity_providers.updated', { subject: uid, resource })
    return after
  })
  call.log.info('identity provider updated', { uid, paths: patch.paths })
  return provider
}

/** Shortest time between two attempts to read a discovery document when a provider is shown, in milliseconds. */
const askAgainMs = 10_000

/**
 * Problem with the discovery document of a provider. Undefined if there is none. If the document could not be read before, it is
 * read again, at most once in `askAgainMs`.
 */
export async function getDiscovery(call: Call, uid: string): Promise<Discovery | undefined> {
  const provider = await requireProvider(call.app.db, uid)
  const { discovery, oidc } = provider
  if (!discovery || Date.parse(call.now) - Date.parse(discovery.checkTime) < askAgainMs) return discovery
  const now = await discover(call, oidc).catch((error: unknown): Discovery => {
    // Either the document can be read now but does not fit the sign-in or the settings, or this server never requests its address.
    if (error instanceof AppError) return { problem: error.message, checkTime: call.now }
    throw error
  })
  await call.app.db.tx((tx) => store.setDiscovery(tx, provider, now))
  return now
}

async function discover({ app, now }: Call, { issuer, pkceEnabled }: Oidc): Promise<Discovery | undefined> {
  const problem = await checkDiscovery(app.outgoing, issuer, pkceEnabled)
  return problem === '' ? undefined : { problem, checkTime: now }
}

/**
 * Deletes a provider with its group mappings and sessions. The accounts of its people stay, but they cannot sign in with this
 * provider any more.
 */
export async function deleteIdentityProvider(call: Call, uid: string): Promise<void> {
  requireRecentSignIn(call)
  await call.app.db.tx(async (tx) => {
    const provider = await requireProvider(tx, uid)
    for (const mapping of await mappingsOfProvider(tx, uid)) await deleteMapping(tx, mapping)
    await deleteSessionsOfProvider(tx, uid)
    await endPushTokensOfProvider(tx, call, uid)
    for (const hook of call.app.hooks.providerDeleting) await hook(tx, uid)
    await store.deleteProvider(tx, provider)
    await emitDeleted(tx, call, 'iam.identity_providers.deleted', uid)
  })
  call.log.info('identity provider deleted', { uid })
}

type Planned = {
  before: IdentityProvider
  after: IdentityProvider
  sealed: Uint8Array
  /** Settings for which discovery is needed, as text. Undefined if no discovery is needed. */
  asks: string | undefined
}

/** Computes and checks the updated provider. Discovery is not part of this check. */
async function planUpdate(
  call: Call,
  reader: Reader,
  uid: string,
  patch: Patch<ProviderInput>,
  rules: ProviderRules,
): Promise<Planned> {
  const before = await requireProvider(reader, uid)
  const patched = applyPatch<ProviderInput>(identityProviderFields, before, patch)
  const { oidc, secret } = readOidc(patched.oidc, before.oidc, patch.paths)
  const { name, description, defaultRole } = patched
  const after: IdentityProvider = { ...before, name, description, defaultRole, oidc, updateTime: call.now }
  const stored = await store.encryptedSecretOf(reader, uid)
  const sealed = secret === undefined ? stored : seal(call, secret)
  // If a provider has no default role, an update does not need to add one.
  checkProvider(
    after,
    secret ?? (stored.length > 0 ? 'kept' : ''),
    before.defaultRole === '' ? roleOptional : rules,
    before.oidc,
  )
  // Otherwise a user who can update the provider could choose an issuer that receives the stored secret.
  if (secret === undefined && stored.length > 0 && oidc.issuer !== before.oidc.issuer) {
    throw invalid({ field: 'oidc.client_secret', description: 'must be sent again if the issuer changes' })
  }

  const moved = secret !== undefined || JSON.stringify(before.oidc) !== JSON.stringify(after.oidc)
  if (defaultRole !== '' && (moved || defaultRole !== before.defaultRole)) {
    await requireGrantableRole(reader, call, defaultRole, parentOf(uid))
  }
  if (moved) await requireMappedRoles(reader, call, uid)
  const isAnother = oidc.issuer !== before.oidc.issuer || (oidc.pkceEnabled && !before.oidc.pkceEnabled)
  // If the document could not be read before, each update reads it again.
  const isAsked = isAnother || before.discovery !== undefined
  return { before, after, sealed, asks: isAsked ? `${oidc.issuer} ${oidc.pkceEnabled}` : undefined }
}

/**
 * Throws PERMISSION_DENIED unless the caller can grant all roles in the group mappings of the provider. A caller who changes the
 * provider, or gets its SCIM token, decides who is in the external groups.
 */
export async function requireMappedRoles(reader: Reader, call: Call, uid: string): Promise<void> {
  const mappings = await mappingsOfProvider(reader, uid)
  const roles = new Map(mappings.map(({ roleUid, scope }) => [`${roleUid} ${scope}`, { roleUid, scope }]))
  for (const { roleUid, scope } of roles.values()) await requireGrantableRole(reader, call, roleUid, scope)
}

/**
 * Configuration and secret of an update. The secret is undefined if the stored one is kept. An empty secret deletes the stored
 * one only if the update mask names the field.
 */
function readOidc(
  given: ProviderInput['oidc'],
  before: Oidc | undefined,
  paths: readonly string[],
): { oidc: Oidc; secret: string | undefined } {
  if (!given) throw invalid({ field: 'oidc', description: 'is required' })
  const { clientSecret = '', ...oidc } = { ...emptyOidc, ...given }
  const rule = oidc.correlationRule || (before?.correlationRule ?? subjectRule)
  if (before && rule !== before.correlationRule) {
    throw invalid({
      field: 'oidc.correlation_rule',
      description: 'cannot be changed after the identity provider was created',
    })
  }
  const isNamed = paths.includes('oidc.client_secret')
  return {
    oidc: { ...oidc, correlationRule: rule },
    secret: clientSecret !== '' || isNamed ? clientSecret : undefined,
  }
}

function checkProvider(provider: IdentityProvider, secret: string, rules: ProviderRules, before?: Oidc): void {
  const { oidc, defaultRole } = provider
  const { issuer, clientId, additionalScopes, groupsClaim, pkceEnabled } = oidc
  const problems: FieldViolation[] = []
  const addProblem = (field: string, description: string) => problems.push({ field, description })
  const checkLength = (field: string, text: string, limit: number) => {
    if (text.length > limit) addProblem(field, `must be at most ${limit} characters long`)
  }
  if (defaultRole === '' && rules.defaultRole === 'required') addProblem('default_role', 'is required')
  if (defaultRole !== '' && !isUid(defaultRole)) addProblem('default_role', 'is not a uid')
  if (issuer === '') addProblem('oidc.issuer', 'is required')
  else if (!isIssuerUrl(issuer)) addProblem('oidc.issuer', 'must be an https URL without query or fragment')
  if (clientId === '') addProblem('oidc.client_id', 'is required')
  if (secret === '' && !pkceEnabled) addProblem('oidc.client_secret', 'is required unless pkce_enabled is set')
  checkLength('oidc.issuer', issuer, providerLimits.issuer)
  checkLength('oidc.client_id', clientId, providerLimits.text)
  checkLength('oidc.client_secret', secret, providerLimits.secret)
  checkLength('oidc.groups_claim', groupsClaim, providerLimits.text)
  // Earlier releases accepted claims that cannot list groups. Such a claim is accepted until it is changed.
  const problem = groupsClaim === before?.groupsClaim ? '' : problemOfGroupsClaim(groupsClaim)
  if (problem !== '') addProblem('oidc.groups_claim', problem)
  if (additionalScopes.length > providerLimits.scopes) {
    addProblem('oidc.additional_scopes', `must have at most ${providerLimits.scopes} scopes`)
  }
  if (!additionalScopes.every((scope) => scopePattern.test(scope) && scope.length <= providerLimits.text)) {
    addProblem('oidc.additional_scopes', 'has a value that is not a valid OAuth scope')
  }
  checkFields<IdentityProvider>(identityProviderFields, provider, problems)
}

async function checkLimit(reader: Reader, parent: string): Promise<void> {
  const limit = (await requireGroup(reader, parent)).resourceLimits.idps
  if (limit === undefined) return
  const count = await store.providerList.count(reader, [{ childrenOf: parent }], { name: '' })
  if (count >= limit) throw limitExceeded('idps', 'identity providers', count, limit)
}

function seal(call: Call, secret: string): Uint8Array {
  return secret === '' ? new Uint8Array() : call.app.cipher.encrypt(secretPurpose, Buffer.from(secret))
}

function nameTaken(name: string): AppError {
  return alreadyExists(identityProviderType, name, 'an identity provider of the organization has this name')
}
