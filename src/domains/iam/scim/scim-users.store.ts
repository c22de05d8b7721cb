import { countRows } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { ScimFilter } from './scim-filter.model.ts'
import { conditionOf, userTarget } from './scim-filter.store.ts'
import { emailsOf, type ScimResource, type ScimUser, userNameKey } from './scim-users.model.ts'

type Row = Omit<ScimUser, 'externalId' | 'active' | 'resource'> & {
  externalId: string | null
  active: number
  resource: string
}

/** Most email addresses of a person that filters can find. */
const maxEmails = 50

const columns = sql`
  u.id, u.provider_uid AS provider, u.user_name AS "userName", u.external_id AS "externalId", u.active, u.resource,
  u.create_time AS "createTime", u.update_time AS "updateTime"`

function fromRow({ externalId, active, resource, ...row }: Row): ScimUser {
  return {
    ...row,
    externalId: externalId ?? '',
    active: active === 1,
    resource: JSON.parse(resource) as ScimResource,
  }
}

export async function findUser(reader: Reader, provider: string, id: string): Promise<ScimUser | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${columns} FROM scim_users u WHERE u.id = ${id} AND u.provider_uid = ${provider}`)
  return row && fromRow(row)
}

/** True if the user name or the external ID belongs to another person of the provider. */
export async function isTaken(
  reader: Reader,
  { provider, id, userName, externalId }: Pick<ScimUser, 'provider' | 'id' | 'userName' | 'externalId'>,
): Promise<boolean> {
  const byName = await reader.get(sql`
    SELECT 1 AS found FROM scim_users
     WHERE provider_uid = ${provider} AND user_name_key = ${userNameKey(userName)} AND id <> ${id}`)
  if (byName || externalId === '') return byName !== undefined
  const byExternalId = await reader.get(sql`
    SELECT 1 AS found FROM scim_users
     WHERE provider_uid = ${provider} AND external_id = ${externalId} AND id <> ${id}`)
  return byExternalId !== undefined
}

export async function countUsers(reader: Reader, provider: string): Promise<number> {
  return countRows(reader, sql`FROM scim_users WHERE provider_uid = ${provider}`)
}

/** Page of people, in order of their creation. New people are at the end, so existing ones do not move to another page. */
export async function listUsers(
  reader: Reader,
  provider: string,
  { skip, limit }: { skip: number; limit: number },
): Promise<ScimUser[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scim_users u
     WHERE u.provider_uid = ${provider} ORDER BY u.provider_uid, u.create_time, u.id LIMIT ${limit} OFFSET ${skip}`)
  return rows.map(fromRow)
}

/** People who match a filter, in a single query. Only for filters that match at most one person. */
export async function lookUpUsers(reader: Reader, provider: string, filter: ScimFilter): Promise<ScimUser[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scim_users u WHERE u.provider_uid = ${provider} AND (${conditionOf(filter, userTarget)})`)
  return rows.map(fromRow)
}

/** Position of a person in the order of creation. */
export type ScimUserPosition = Pick<ScimUser, 'createTime' | 'id'>

/** Next people in order of their creation, after the given position. */
export async function sliceOf(
  reader: Reader,
  provider: string,
  after: ScimUserPosition,
  limit: number,
): Promise<ScimUserPosition[]> {
  return reader.all<ScimUserPosition>(sql`
    SELECT create_time AS "createTime", id FROM scim_users
     WHERE provider_uid = ${provider} AND (create_time, id) > (${after.createTime}, ${after.id})
     ORDER BY provider_uid, create_time, id LIMIT ${limit}`)
}

/** IDs from the list whose person matches the filter. */
export async function matchesOf(reader: Reader, ids: readonly string[], filter: ScimFilter): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const rows = await reader.all<{ id: string }>(sql`
    SELECT u.id FROM scim_users u WHERE u.id IN (${list(ids)}) AND (${conditionOf(filter, userTarget)})`)
  return new Set(rows.map(({ id }) => id))
}

/** People with these IDs, in the order of `ids`. Deleted people are left out. */
export async function usersOf(reader: Reader, provider: string, ids: readonly string[]): Promise<ScimUser[]> {
  if (ids.length === 0) return []
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scim_users u WHERE u.provider_uid = ${provider} AND u.id IN (${list(ids)})`)
  const known = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => known.get(id) ?? []).map(fromRow)
}

export async function insertUser(tx: Tx, user: ScimUser): Promise<void> {
  const { id, provider, userName, externalId, active, resource, createTime, updateTime } = user
  await tx.run(sql`
    INSERT INTO scim_users (id, provider_uid, user_name, user_name_key, external_id, active, resource,
                            create_time, update_time)
    VALUES (${id}, ${provider}, ${userName}, ${userNameKey(userName)}, ${externalId || null}, ${Number(active)},
            ${JSON.stringify(resource)}, ${createTime}, ${updateTime})`)
  await writeEmails(tx, user)
}

export async function updateUser(tx: Tx, user: ScimUser): Promise<void> {
  const { id, userName, externalId, active, resource, updateTime } = user
  await tx.run(sql`
    UPDATE scim_users
       SET user_name = ${userName}, user_name_key = ${userNameKey(userName)}, external_id = ${externalId || null},
           active = ${Number(active)}, resource = ${JSON.stringify(resource)}, update_time = ${updateTime}
     WHERE id = ${id}`)
  await writeEmails(tx, user)
}

/** Stores the email addresses of a person in the table that filters read. */
export async function writeEmails(tx: Tx, { id, resource, updateTime }: ScimUser): Promise<void> {
  await tx.run(sql`DELETE FROM scim_emails WHERE user_id = ${id}`)
  const rows = emailsOf(resource).slice(0, maxEmails)
  for (const [position, { value, type, isPrimary }] of rows.entries()) {
    await tx.run(sql`
      INSERT INTO scim_emails (user_id, position, value_key, type_key, is_primary)
      VALUES (${id}, ${position}, ${value}, ${type}, ${Number(isPrimary)})`)
  }
  await tx.run(sql`UPDATE scim_users SET emails_of = ${updateTime} WHERE id = ${id}`)
}

/** Up to `limit` people whose email addresses are not stored yet, since an earlier release did not store them. */
export async function usersWithoutEmails(reader: Reader, provider: string, limit: number): Promise<ScimUser[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scim_users u
     WHERE u.provider_uid = ${provider} AND u.emails_of <> u.update_time ORDER BY u.id LIMIT ${limit}`)
  return rows.map(fromRow)
}

export async function deleteUser(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM scim_emails WHERE user_id = ${id}`)
  await tx.run(sql`DELETE FROM scim_users WHERE id = ${id}`)
}

/** Blocks sign-ins with an external ID until the provider provisions the person again. */
export async function noteRemoval(tx: Tx, provider: string, externalId: string, time: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO scim_removals (provider_uid, external_id, remove_time) VALUES (${provider}, ${externalId}, ${time})
        ON CONFLICT (provider_uid, external_id) DO UPDATE SET remove_time = excluded.remove_time`)
}

export async function forgetRemoval(tx: Tx, provider: string, externalId: string): Promise<void> {
  await tx.run(sql`DELETE FROM scim_removals WHERE provider_uid = ${provider} AND external_id = ${externalId}`)
}

export async function countRemovals(reader: Reader, provider: string): Promise<number> {
  return countRows(reader, sql`FROM scim_removals WHERE provider_uid = ${provider}`)
}

/**
 * True if the person is active. False if the person is inactive or deleted. Undefined if the provider never provisioned the
 * person.
 */
export async function isActivePerson(
  reader: Reader,
  provider: string,
  externalId: string,
): Promise<boolean | undefined> {
  const user = await reader.get<{ active: number }>(sql`
    SELECT active FROM scim_users WHERE provider_uid = ${provider} AND external_id = ${externalId}`)
  if (user) return user.active === 1
  const removal = await reader.get(sql`
    SELECT 1 AS found FROM scim_removals WHERE provider_uid = ${provider} AND external_id = ${externalId}`)
  return removal ? false : undefined
}

/** True if the provider has ever provisioned a person. */
export async function hasProvisioned(reader: Reader, provider: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM scim_users WHERE provider_uid = ${provider})
        OR EXISTS (SELECT 1 FROM scim_removals WHERE provider_uid = ${provider})`)
  return row !== undefined
}

/** Deletes all people of a deleted provider, with their email addresses and blocked external IDs. */
export async function deleteAllUsers(tx: Tx, provider: string): Promise<void> {
  await tx.run(sql`
    DELETE FROM scim_emails WHERE user_id IN (SELECT id FROM scim_users WHERE provider_uid = ${provider})`)
  await tx.run(sql`DELETE FROM scim_users WHERE provider_uid = ${provider}`)
  await tx.run(sql`DELETE FROM scim_removals WHERE provider_uid = ${provider}`)
}
