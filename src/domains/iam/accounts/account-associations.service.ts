import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { alreadyExists, type FieldViolation, found } from '#lib/errors.ts'
import { toDeletionResource } from '#lib/events/event-body.ts'
import { applyPatch, checkFields, type Patch } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { parentOf } from '#lib/uid.ts'
import { requireGroup } from '../groups/groups.service.ts'
import { listNodes } from '../groups/list-nodes.ts'
import { findIdentity } from '../identities/identities.store.ts'
import { servicePrincipalNamed } from '../identities/service-principals.ts'
import {
  type AccountAssociation,
  type Accounts,
  accountAssociationFields,
  accountAssociationType,
  accountPatterns,
  emptyAccounts,
  maxAccounts,
  toAssociationResource,
} from './account-associations.model.ts'
import * as store from './account-associations.store.ts'

export type NewAssociation = Accounts & Pick<AccountAssociation, 'name' | 'description'>

export async function getAccountAssociation(call: Call, group: string): Promise<AccountAssociation> {
  return requireAssociation(call.app.db, group)
}

export async function listAccountAssociations(
  call: Call,
  query: ListQuery<store.AssociationFilter>,
): Promise<Listed<AccountAssociation>> {
  // An association has the uid of its group. So lists must include the group itself, not only resources below it.
  return listNodes(call, query, store.associationList, { inclusive: true })
}

export async function createAccountAssociation(
  call: Call,
  group: string,
  input: NewAssociation,
): Promise<AccountAssociation> {
  const created: AccountAssociation = { ...fillEmpty(input), uid: group, createTime: call.now, updateTime: call.now }
  await call.app.db.tx(async (tx) => {
    await requireGroup(tx, group)
    await checkAssociation(tx, created)
    if (!(await store.insertAssociation(tx, created))) {
      throw alreadyExists(accountAssociationType, group, 'the group has an account association')
    }
    await emit(tx, call, 'iam.account_associations.created', {
      subject: group,
      group,
      resource: toAssociationResource(created),
    })
  })
  call.log.info('account association created', { group })
  return created
}

export async function updateAccountAssociation(
  call: Call,
  group: string,
  patch: Patch<AccountAssociation>,
): Promise<AccountAssociation> {
  const association = await call.app.db.tx(async (tx) => {
    const before = await requireAssociation(tx, group)
    const patched = applyPatch<AccountAssociation>(accountAssociationFields, before, patch)
    const after = { ...fillEmpty(patched), updateTime: call.now }
    await checkAssociation(tx, after)
    await store.patchAssociation(tx, before, after)
    await emit(tx, call, 'iam.account_associations.updated', {
      subject: group,
      group,
      resource: toAssociationResource(after),
    })
    return after
  })
  call.log.info('account association updated', { group, paths: patch.paths })
  return association
}

/** Deletes the association of a group. If the group has none, does nothing and emits no event. */
export async function deleteAccountAssociation(call: Call, group: string): Promise<void> {
  const deleted = await call.app.db.tx(async (tx) => {
    const association = await store.findAssociation(tx, group)
    if (!association) return false
    await store.deleteAssociation(tx, association)
    const resource = toDeletionResource({ uid: group })
    await emit(tx, call, 'iam.account_associations.deleted', { subject: group, group, resource })
    return true
  })
  if (deleted) call.log.info('account association deleted', { group })
}

export type Checked = { ready: true } | { ready: false; reason: string; message: string }

/**
 * Tests an association: requests credentials from the cloud. If the cloud refuses, the refusal is in the result, and no error is
 * thrown.
 */
export async function checkAccountAssociation(
  call: Call,
  group: string,
  cloud: 'amazon' | 'google' | 'azure',
): Promise<Checked> {
  const { amazon, google, azure } = await requireAssociation(call.app.db, group)
  const accounts = {
    amazon: amazon && ({ cloud: 'amazon', ...amazon } as const),
    google: google && ({ cloud: 'google', ...google } as const),
    azure: azure && ({ cloud: 'azure', ...azure } as const),
  }
  const account = accounts[cloud]
  if (!account)
    return { ready: false, reason: 'NOT_CONFIGURED', message: `the account association has no ${cloud} settings` }
  const answer = await call.app.checkCloud(call.url, group, account)
  call.log.info('account association checked', { group, cloud, ready: answer.ready })
  return answer
}

async function requireAssociation(reader: Reader, group: string): Promise<AccountAssociation> {
  return found(await store.findAssociation(reader, group), accountAssociationType, group)
}

/**
 * Adds missing members to blocks that are present, since a patch can set a single member of a new block. Missing blocks stay
 * undefined.
 */
function fillEmpty<T extends Accounts>(given: T): Omit<T, keyof Accounts> & Accounts {
  const { amazon, google, azure, github, pinfold, ...rest } = given
  return {
    ...rest,
    ...(amazon && { amazon: { ...emptyAccounts.amazon, ...amazon } }),
    ...(google && { google: { ...emptyAccounts.google, ...google } }),
    ...(azure && { azure: { ...emptyAccounts.azure, ...azure } }),
    ...(github && { github: { ...emptyAccounts.github, ...github } }),
    ...(pinfold && { pinfold: { ...emptyAccounts.pinfold, ...pinfold } }),
  }
}

async function checkAssociation(reader: Reader, association: AccountAssociation): Promise<void> {
  const problems = [...problemsOf(association), ...(await checkServices(reader, association))]
  const { name, description } = accountAssociationFields
  checkFields<AccountAssociation>({ name, description }, association, problems)
}

/**
 * Problems of service bindings. A service can act only as an identity of this group, and the identity must be for this service.
 */
async function checkServices(reader: Reader, { uid, pinfold }: AccountAssociation): Promise<FieldViolation[]> {
  const bindings = Object.entries(pinfold?.serviceBindings ?? {})
  const field = 'pinfold.service_bindings'
  if (pinfold && bindings.length === 0) return [{ field, description: 'is required' }]
  if (bindings.length > maxAccounts.services) return [tooMany(field, maxAccounts.services)]
  const problems: FieldViolation[] = []
  for (const [service, identityUid] of bindings) {
    const principal = servicePrincipalNamed(service)
    const identity = parentOf(identityUid) === uid ? await findIdentity(reader, identityUid) : undefined
    const at = `${field}.${service.slice(0, 64).toWellFormed()}`
    if (principal === undefined) problems.push({ field: at, description: 'is not a service principal' })
    else if (identity?.servicePrincipal !== principal) {
      problems.push({ field: at, description: 'must be an identity of this service in the group itself' })
    }
  }
  return problems
}

function problemsOf({ amazon, google, azure, github }: AccountAssociation): FieldViolation[] {
  const problems: FieldViolation[] = []
  const check = (field: string, text: string, pattern: RegExp) => {
    if (text === '') problems.push({ field, description: 'is required' })
    else if (!pattern.test(text)) {
      problems.push({ field, description: `${field.split('.').at(-1)} must match "${pattern.source}"` })
    }
  }
  if (amazon) check('amazon.account', amazon.account, accountPatterns.awsAccount)
  if (google) {
    check('google.project_id', google.projectId, accountPatterns.projectId)
    check('google.project_number', google.projectNumber, accountPatterns.projectNumber)
  }
  if (azure) {
    check('azure.tenant_id', azure.tenantId, accountPatterns.tenant)
    problems.push(...problemsOfClients(azure.clientIds))
  }
  if (github) problems.push(...problemsOfApps(github.appInstallations))
  return problems
}

function problemsOfClients(clientIds: Record<string, string>): FieldViolation[] {
  const field = 'azure.client_ids'
  const entries = Object.entries(clientIds)
  if (entries.length === 0) return [{ field, description: 'is required' }]
  if (entries.length > maxAccounts.clientIds) return [tooMany(field, maxAccounts.clientIds)]
  return entries.flatMap(([component, id]) => {
    if (!accountPatterns.component.test(component))
      return [{ field, description: 'has an invalid component name as a key' }]
    return accountPatterns.clientId.test(id)
      ? []
      : [{ field, description: 'has a value that is not an application ID' }]
  })
}

function problemsOfApps(apps: Record<string, { installations: { installationId: string; name: string }[] }>) {
  const field = 'github.app_installations'
  const entries = Object.entries(apps)
  if (entries.length > maxAccounts.apps) return [tooMany(field, maxAccounts.apps)]
  return entries.flatMap(([app, { installations }]): FieldViolation[] => {
    if (!accountPatterns.number.test(app)) return [{ field, description: 'has a key that is not an app ID' }]
    if (installations.length > maxAccounts.installations) return [tooMany(field, maxAccounts.installations)]
    return installations.flatMap(({ installationId, name }) => {
      if (!accountPatterns.number.test(installationId))
        return [{ field, description: 'has an installation without an installation_id' }]
      return name.length <= 255 ? [] : [{ field, description: 'has a name longer than 255 characters' }]
    })
  })
}

function tooMany(field: string, limit: number): FieldViolation {
  return { field, description: `must have at most ${limit} entries` }
}
