// People whom an identity provider provisions (SCIM 2.0). Provisioning creates a record, and the first sign-in creates the
// account. If the record is inactive or deleted, the person cannot sign in with this provider and the sessions end. People whom
// the provider never provisioned are not affected. Existing records still apply after SCIM is disabled.
import { randomUUID } from 'node:crypto'
import type { App, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { AppError, alreadyExists, found, limitExceeded, unauthenticated } from '#lib/errors.ts'
import { turns } from '#lib/scheduling/turns.ts'
import { findProvider } from '../identity-providers/identity-providers.store.ts'
import { opens } from '../identity-providers/scim-settings.model.ts'
import { endPushTokensOfProvider } from '../push-tokens/push-token-use.service.ts'
import { endAllOfProvider } from '../sessions/sessions.service.ts'
import { asksForEmails, type ScimFilter, selectsOneUser } from './scim-filter.model.ts'
import { leaveScimGroups } from './scim-groups.service.ts'
import { deleteAllGroups } from './scim-groups.store.ts'
import { maxScimUsers, type ScimInput, type ScimUser, scimUserType, toScimUserResource } from './scim-users.model.ts'
import * as store from './scim-users.store.ts'

/**
 * Verifies the SCIM token of a provider. Throws UNAUTHENTICATED with the same message for a wrong token, an expired token and an
 * unknown provider. Throws PERMISSION_DENIED if SCIM is disabled for the provider.
 */
export async function openScim({ db, clock }: App, provider: string, token: string): Promise<void> {
  const scim = (await findProvider(db, provider))?.scim
  if (!scim || !opens(scim, token, clock().toISOString()))
    throw unauthenticated(
      'the SCIM token is invalid, has expired or was revoked; generate a new one for the identity provider',
    )
  if (!scim.enabled)
    throw new AppError('PERMISSION_DENIED', 'SCIM is disabled for the identity provider; enable it in Pinfold')
}

export async function getScimUser({ app }: Work, provider: string, id: string): Promise<ScimUser> {
  return requireUser(app.db, provider, id)
}

type Page = { skip: number; limit: number }
type Found = { total: number; users: ScimUser[] }

export async function listScimUsers(
  { app }: Work,
  provider: string,
  filter: ScimFilter | undefined,
  page: Page,
): Promise<Found> {
  if (filter && asksForEmails(filter)) await completeEmails(app, provider)
  if (filter) return selectsOneUser(filter) ? lookUp(app, provider, filter, page) : search(app, provider, filter, page)
  const total = await store.countUsers(app.db, provider)
  const users = page.limit === 0 || total === 0 ? [] : await store.listUsers(app.db, provider, page)
  return { total, users }
}

async function lookUp({ db }: App, provider: string, filter: ScimFilter, { skip, limit }: Page): Promise<Found> {
  const users = await store.lookUpUsers(db, provider, filter)
  return { total: users.length, users: users.slice(skip, skip + limit) }
}

/**
 * Most people that one query reads. A SQLite query blocks the server while it runs. The query may check five conditions for 50
 * addresses of each person.
 */
const perSlice = { withEmails: 50, without: 500 }

/** Searches all people of the provider. Reads them in small queries, so that other requests are served in between. */
async function search({ db }: App, provider: string, filter: ScimFilter, { skip, limit }: Page): Promise<Found> {
  const size = asksForEmails(filter) ? perSlice.withEmails : perSlice.without
  const ids: string[] = []
  let total = 0
  let slice = await store.sliceOf(db, provider, { createTime: '', id: '' }, size)
  while (slice.length > 0) {
    const all = slice.map(({ id }) => id)
    const matches = await store.matchesOf(db, all, filter)
    for (const id of all) {
      if (!matches.has(id)) continue
      if (total >= skip && ids.length < limit) ids.push(id)
      total++
    }
    await turns.next()
    slice = slice.length < size ? [] : await store.sliceOf(db, provider, slice.at(-1)!, size)
  }
  return { total, users: await store.usersOf(db, provider, ids) }
}

const perCommit = 200

/** Stores the email addresses of people. An earlier release stored people without them. */
async function completeEmails({ db }: App, provider: string): Promise<void> {
  while ((await store.usersWithoutEmails(db, provider, 1)).length > 0) {
    await db.tx(async (tx) => {
      for (const user of await store.usersWithoutEmails(tx, provider, perCommit)) await store.writeEmails(tx, user)
    })
  }
}

/** Creates a person. Throws ALREADY_EXISTS if the user name or the external ID belongs to another person of the provider. */
export async function createScimUser(work: Work, provider: string, input: ScimInput): Promise<ScimUser> {
  const { now } = work.cause
  const user: ScimUser = { ...input, id: randomUUID(), provider, createTime: now, updateTime: now }
  await work.app.db.tx(async (tx) => {
    await requireCapacity(tx, provider)
    await requireFree(tx, user)
    await store.insertUser(tx, user)
    if (user.externalId !== '') await store.forgetRemoval(tx, provider, user.externalId)
    if (!user.active) await endAccess(tx, work, user)
    await emitChange(tx, work, 'created', user)
  })
  work.log.info('scim user created', { id: user.id, provider })
  return user
}

/** Updates a person. `change` may run more than once. If `change` throws, nothing is updated. */
export async function changeScimUser(
  work: Work,
  provider: string,
  id: string,
  change: (before: ScimUser) => ScimInput,
): Promise<ScimUser> {
  const { user, changed } = await work.app.db.tx(async (tx) => {
    const before = await requireUser(tx, provider, id)
    const input = change(before)
    if (JSON.stringify(input.resource) === JSON.stringify(before.resource)) return { user: before, changed: false }
    const user = { ...before, ...input, updateTime: work.cause.now }
    await requireFree(tx, user)
    await store.updateUser(tx, user)
    if (before.externalId !== user.externalId) await releaseExternalId(tx, work, before, user)
    if (!user.active) await endAccess(tx, work, user)
    if (user.externalId !== '') await store.forgetRemoval(tx, provider, user.externalId)
    await emitChange(tx, work, 'updated', user)
    return { user, changed: true }
  })
  if (changed) work.log.info('scim user changed', { id, provider, active: user.active })
  return user
}

/** Deletes a person, and blocks the person from signing in with the provider. */
export async function deleteScimUser(
  work: Work,
  provider: string,
  id: string,
  check: (before: ScimUser) => void,
): Promise<void> {
  await work.app.db.tx(async (tx) => {
    const user = await requireUser(tx, provider, id)
    check(user)
    await leaveScimGroups(tx, work, id)
    await store.deleteUser(tx, id)
    if (user.externalId !== '') await store.noteRemoval(tx, provider, user.externalId, work.cause.now)
    await endAccess(tx, work, user)
    await emitChange(tx, work, 'deleted', user)
  })
  work.log.info('scim user deleted', { id, provider })
}

/** Deletes all people and groups that a provider has provisioned. */
export async function dropScimUsers(tx: Tx, provider: string): Promise<void> {
  await deleteAllGroups(tx, provider)
  await store.deleteAllUsers(tx, provider)
}

/**
 * If the external ID of a person changes, ends the access with the previous ID. If the person is or was inactive, also blocks the
 * previous ID.
 */
async function releaseExternalId(tx: Tx, work: Work, before: ScimUser, after: ScimUser): Promise<void> {
  await endAccess(tx, work, before)
  if (before.externalId === '' || (before.active && after.active)) return
  await requireCapacity(tx, before.provider)
  await store.noteRemoval(tx, before.provider, before.externalId, work.cause.now)
}

/** Ends the person's sessions with the provider. Revokes the push tokens that the person created with the provider. */
async function endAccess(tx: Tx, work: Work, { provider, externalId }: ScimUser): Promise<void> {
  if (externalId === '') return
  await endAllOfProvider(tx, work, provider, { externalId }, 'deactivated')
  await endPushTokensOfProvider(tx, work, provider, externalId)
}

async function requireUser(reader: Reader, provider: string, id: string): Promise<ScimUser> {
  return found(await store.findUser(reader, provider, id), scimUserType, id)
}

async function requireFree(tx: Tx, user: ScimUser): Promise<void> {
  if (!(await store.isTaken(tx, user))) return
  throw alreadyExists(scimUserType, user.userName, 'another user of the provider has this userName or externalId')
}

async function requireCapacity(tx: Tx, provider: string): Promise<void> {
  const used = (await store.countUsers(tx, provider)) + (await store.countRemovals(tx, provider))
  if (used >= maxScimUsers) throw limitExceeded('scim_users', 'provisioned users', used, maxScimUsers)
}

async function emitChange(tx: Tx, work: Work, what: 'created' | 'updated' | 'deleted', user: ScimUser): Promise<void> {
  const input = { subject: user.provider, resource: toScimUserResource(user) }
  await emit(tx, work, `control.iam.scim_user.${what}`, { ...input, source: `/scim/v2/${user.provider}` })
}
