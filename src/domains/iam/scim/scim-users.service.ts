// People whom an identity provider provisions (SCIM 2.0). It makes a record, no account: that appears with the first
// sign-in. What the record decides is whether they may sign in, and go on, through this provider. Whom it has never
// provisioned is not asked about; and once SCIM is off, what was decided before still holds.
import { randomUUID } from 'node:crypto'
import type { App, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { AppError, alreadyExists, found, limitExceeded, unauthenticated } from '#lib/errors.ts'
import { turns } from '#lib/scheduling/turns.ts'
import { parentOf } from '#lib/uid.ts'
import { findProvider } from '../identity-providers/identity-providers.store.ts'
import { opens } from '../identity-providers/scim-settings.model.ts'
import { endPushTokensOfProvider } from '../push-tokens/push-token-use.service.ts'
import { endAllOfProvider } from '../sessions/sessions.service.ts'
import { asksForEmails, looksUpOne, type ScimFilter } from './scim-filter.model.ts'
import { leaveScimGroups } from './scim-groups.service.ts'
import { deleteAllGroups } from './scim-groups.store.ts'
import { aScimUser, maxScimUsers, type ScimInput, type ScimUser, scimUserType } from './scim-users.model.ts'
import * as store from './scim-users.store.ts'

/**
 * Whether the token opens the endpoint of the provider. UNAUTHENTICATED for a wrong token, an expired one and a provider
 * that is not there, in the same words; PERMISSION_DENIED where the endpoint is switched off.
 */
export async function openScim({ db, clock }: App, provider: string, token: string): Promise<void> {
  const scim = (await findProvider(db, provider))?.scim
  if (!scim || !opens(scim, token, clock().toISOString())) throw unauthenticated('the SCIM token is not accepted')
  if (!scim.enabled) throw new AppError('PERMISSION_DENIED', 'SCIM is switched off for the identity provider')
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
  if (filter) return looksUpOne(filter) ? lookUp(app, provider, filter, page) : search(app, provider, filter, page)
  const total = await store.countUsers(app.db, provider)
  const users = page.limit === 0 || total === 0 ? [] : await store.listUsers(app.db, provider, page)
  return { total, users }
}

async function lookUp({ db }: App, provider: string, filter: ScimFilter, { skip, limit }: Page): Promise<Found> {
  const users = await store.lookUpUsers(db, provider, filter)
  return { total: users.length, users: users.slice(skip, skip + limit) }
}

/**
 * How many people one statement looks at. A database on this machine stops the server meanwhile, and each person has up to
 * 50 addresses, each of which five conditions may look through.
 */
const perSlice = { withEmails: 50, without: 500 }

/** Looks at all people of the provider, in slices between which others have their turns. */
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

/** Writes the addresses of people whom an earlier release wrote. */
async function completeEmails({ db }: App, provider: string): Promise<void> {
  while ((await store.usersWithoutEmails(db, provider, 1)).length > 0) {
    await db.tx(async (tx) => {
      for (const user of await store.usersWithoutEmails(tx, provider, perCommit)) await store.writeEmails(tx, user)
    })
  }
}

/** ALREADY_EXISTS when somebody of the provider has the user name or the external id. */
export async function createScimUser(work: Work, provider: string, input: ScimInput): Promise<ScimUser> {
  const { now } = work.cause
  const user: ScimUser = { ...input, id: randomUUID(), provider, createTime: now, updateTime: now }
  await work.app.db.tx(async (tx) => {
    await requireRoom(tx, provider)
    await requireFree(tx, user)
    await store.insertUser(tx, user)
    if (user.externalId !== '') await store.forgetRemoval(tx, provider, user.externalId)
    if (!user.active) await closeOut(tx, work, user)
    await tell(tx, work, 'created', user)
  })
  work.log.info('scim user created', { id: user.id, provider })
  return user
}

/** Makes of the person's resource what `change` makes of it. It may be called more than once, and throws to refuse. */
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
    if (before.externalId !== user.externalId) await letGo(tx, work, before, user)
    if (!user.active) await closeOut(tx, work, user)
    if (user.externalId !== '') await store.forgetRemoval(tx, provider, user.externalId)
    await tell(tx, work, 'updated', user)
    return { user, changed: true }
  })
  if (changed) work.log.info('scim user changed', { id, provider, active: user.active })
  return user
}

/** Whom the provider gives up can no longer sign in through it. */
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
    await closeOut(tx, work, user)
    await tell(tx, work, 'deleted', user)
  })
  work.log.info('scim user deleted', { id, provider })
}

/** Forgets all people and groups that a provider has provisioned. */
export async function dropScimUsers(tx: Tx, provider: string): Promise<void> {
  await deleteAllGroups(tx, provider)
  await store.deleteAllUsers(tx, provider)
}

/** Whoever was called so is somebody else now, and as long as they were not to come in, they still are not. */
async function letGo(tx: Tx, work: Work, before: ScimUser, after: ScimUser): Promise<void> {
  await closeOut(tx, work, before)
  if (before.externalId === '' || (before.active && after.active)) return
  await requireRoom(tx, before.provider)
  await store.noteRemoval(tx, before.provider, before.externalId, work.cause.now)
}

/** Ends the sessions that the provider vouches for, and what they had tokens for. */
async function closeOut(tx: Tx, work: Work, { provider, externalId }: ScimUser): Promise<void> {
  if (externalId === '') return
  await endAllOfProvider(tx, work, provider, { externalId }, 'deactivated')
  await endPushTokensOfProvider(tx, work, provider, externalId)
}

async function requireUser(reader: Reader, provider: string, id: string): Promise<ScimUser> {
  return found(await store.findUser(reader, provider, id), scimUserType, id)
}

async function requireFree(tx: Tx, user: ScimUser): Promise<void> {
  if (!(await store.isTaken(tx, user))) return
  throw alreadyExists(scimUserType, user.userName, 'somebody of the provider has this userName or externalId')
}

async function requireRoom(tx: Tx, provider: string): Promise<void> {
  const used = (await store.countUsers(tx, provider)) + (await store.countRemovals(tx, provider))
  if (used >= maxScimUsers) throw limitExceeded('scim_users', 'provisioned people', used, maxScimUsers)
}

async function tell(tx: Tx, work: Work, what: 'created' | 'updated' | 'deleted', user: ScimUser): Promise<void> {
  const input = { subject: user.provider, group: parentOf(user.provider), resource: aScimUser(user) }
  await emit(tx, work, `control.iam.scim_user.${what}`, { ...input, source: `/scim/v2/${user.provider}` })
}
