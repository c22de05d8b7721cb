import { countRows } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { ScimFilter } from './scim-filter.model.ts'
import { conditionOf, groupTarget } from './scim-filter.store.ts'
import { type GroupOfUser, groupKeyOf, type ScimGroup, type ScimMember } from './scim-groups.model.ts'
import { type ScimResource, userNameKey } from './scim-users.model.ts'

type Row = Omit<ScimGroup, 'externalId' | 'resource'> & { externalId: string | null; resource: string }

const columns = sql`
  g.id, g.provider_uid AS provider, g.display_name AS "displayName", g.external_id AS "externalId", g.resource, g.revision,
  g.create_time AS "createTime", g.update_time AS "updateTime"`

function fromRow({ externalId, resource, ...row }: Row): ScimGroup {
  return { ...row, externalId: externalId ?? '', resource: JSON.parse(resource) as ScimResource }
}

export async function findGroup(reader: Reader, provider: string, id: string): Promise<ScimGroup | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${columns} FROM scim_groups g WHERE g.id = ${id} AND g.provider_uid = ${provider}`)
  return row && fromRow(row)
}

/** True if another group of the provider has the same display name, or the same name in group mappings. */
export async function isGroupTaken(reader: Reader, group: ScimGroup): Promise<boolean> {
  const { provider, id, displayName } = group
  const byName = await reader.get(sql`
    SELECT 1 AS found FROM scim_groups
     WHERE provider_uid = ${provider} AND name_key = ${userNameKey(displayName)} AND id <> ${id}`)
  if (byName) return true
  const byKey = await reader.get(sql`
    SELECT 1 AS found FROM scim_groups
     WHERE provider_uid = ${provider} AND group_key = ${groupKeyOf(group)} AND id <> ${id}`)
  return byKey !== undefined
}

/** Page of groups, in order of their creation. The number of groups of a provider is limited, so a single query is sufficient. */
export async function listGroups(
  reader: Reader,
  provider: string,
  filter: ScimFilter | undefined,
  { skip, limit }: { skip: number; limit: number },
): Promise<ScimGroup[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scim_groups g
     WHERE g.provider_uid = ${provider} AND (${conditionOf(filter, groupTarget)})
     ORDER BY g.provider_uid, g.create_time, g.id LIMIT ${limit} OFFSET ${skip}`)
  return rows.map(fromRow)
}

export async function countGroups(reader: Reader, provider: string, filter?: ScimFilter): Promise<number> {
  return countRows(
    reader,
    sql`FROM scim_groups g
     WHERE g.provider_uid = ${provider} AND (${conditionOf(filter, groupTarget)})`,
  )
}

export async function insertGroup(tx: Tx, group: ScimGroup): Promise<void> {
  const { id, provider, displayName, externalId, resource, revision, createTime, updateTime } = group
  await tx.run(sql`
    INSERT INTO scim_groups (id, provider_uid, display_name, name_key, external_id, group_key, resource, revision,
                             create_time, update_time)
    VALUES (${id}, ${provider}, ${displayName}, ${userNameKey(displayName)}, ${externalId || null}, ${groupKeyOf(group)},
            ${JSON.stringify(resource)}, ${revision}, ${createTime}, ${updateTime})`)
}

export async function updateGroup(tx: Tx, group: ScimGroup): Promise<void> {
  const { id, displayName, externalId, resource, revision, updateTime } = group
  await tx.run(sql`
    UPDATE scim_groups
       SET display_name = ${displayName}, name_key = ${userNameKey(displayName)}, external_id = ${externalId || null},
           group_key = ${groupKeyOf(group)}, resource = ${JSON.stringify(resource)}, revision = ${revision},
           update_time = ${updateTime}
     WHERE id = ${id}`)
}

/** Deletes a group and its memberships. */
export async function deleteGroup(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM scim_group_members WHERE group_id = ${id}`)
  await tx.run(sql`DELETE FROM scim_groups WHERE id = ${id}`)
}

export async function countMembers(reader: Reader, group: string): Promise<number> {
  return countRows(reader, sql`FROM scim_group_members WHERE group_id = ${group}`)
}

/** Members of these groups, by group ID. */
export async function membersOf(reader: Reader, groups: readonly string[]): Promise<Map<string, ScimMember[]>> {
  if (groups.length === 0) return new Map()
  const rows = await reader.all<ScimMember & { groupId: string }>(sql`
    SELECT m.group_id AS "groupId", u.id, u.user_name AS "userName"
      FROM scim_group_members m JOIN scim_users u ON u.id = m.user_id
     WHERE m.group_id IN (${list(groups)}) ORDER BY m.group_id, u.id`)
  return Map.groupBy(rows, ({ groupId }) => groupId)
}

export async function memberIds(reader: Reader, group: string): Promise<string[]> {
  const rows = await reader.all<{ id: string }>(sql`
    SELECT user_id AS id FROM scim_group_members WHERE group_id = ${group}`)
  return rows.map(({ id }) => id)
}

/** Number of members of these groups, by group ID. */
export async function memberCounts(reader: Reader, groups: readonly string[]): Promise<Map<string, number>> {
  if (groups.length === 0) return new Map()
  const rows = await reader.all<{ id: string; count: number }>(sql`
    SELECT group_id AS id, COUNT(*) AS count FROM scim_group_members
     WHERE group_id IN (${list(groups)}) GROUP BY group_id`)
  return new Map(rows.map(({ id, count }) => [id, Number(count)]))
}

const atOnce = 500

/** IDs from the list that are people of this provider. */
export async function knownUsers(reader: Reader, provider: string, ids: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>()
  for (const some of chunks(ids, atOnce)) {
    const rows = await reader.all<{ id: string }>(sql`
      SELECT id FROM scim_users WHERE provider_uid = ${provider} AND id IN (${list(some)})`)
    for (const { id } of rows) found.add(id)
  }
  return found
}

export async function addMembers(tx: Tx, group: string, ids: readonly string[]): Promise<void> {
  for (const some of chunks(ids, atOnce)) {
    await tx.run(sql`
      INSERT INTO scim_group_members (group_id, user_id)
      SELECT ${group}, u.id FROM scim_users u WHERE u.id IN (${list(some)})`)
  }
}

export async function removeMembers(tx: Tx, group: string, ids: readonly string[]): Promise<void> {
  for (const some of chunks(ids, atOnce)) {
    await tx.run(sql`DELETE FROM scim_group_members WHERE group_id = ${group} AND user_id IN (${list(some)})`)
  }
}

/** True if one of these people is a member of more than `most` groups. */
export async function isAnyInMore(reader: Reader, ids: readonly string[], most: number): Promise<boolean> {
  for (const some of chunks(ids, atOnce)) {
    const row = await reader.get(sql`
      SELECT 1 AS found FROM scim_group_members WHERE user_id IN (${list(some)})
       GROUP BY user_id HAVING COUNT(*) > ${most} LIMIT 1`)
    if (row) return true
  }
  return false
}

/** Groups of these people, by the ID of the person. */
export async function groupsOfUsers(reader: Reader, ids: readonly string[]): Promise<Map<string, GroupOfUser[]>> {
  if (ids.length === 0) return new Map()
  const rows = await reader.all<GroupOfUser & { userId: string }>(sql`
    SELECT m.user_id AS "userId", g.id, g.display_name AS "displayName"
      FROM scim_group_members m JOIN scim_groups g ON g.id = m.group_id
     WHERE m.user_id IN (${list(ids)}) ORDER BY m.user_id, g.id`)
  return Map.groupBy(rows, ({ userId }) => userId)
}

/** Groups of a person. */
export async function groupsWith(reader: Reader, user: string): Promise<ScimGroup[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scim_group_members m JOIN scim_groups g ON g.id = m.group_id
     WHERE m.user_id = ${user} ORDER BY g.id`)
  return rows.map(fromRow)
}

/** Removes a person from all groups. Increases the revision of each group. */
export async function leaveGroups(tx: Tx, user: string, now: string): Promise<void> {
  await tx.run(sql`
    UPDATE scim_groups SET revision = revision + 1, update_time = ${now}
     WHERE id IN (SELECT group_id FROM scim_group_members WHERE user_id = ${user})`)
  await tx.run(sql`DELETE FROM scim_group_members WHERE user_id = ${user}`)
}

/** Deletes all groups of a provider and their memberships. */
export async function deleteAllGroups(tx: Tx, provider: string): Promise<void> {
  await tx.run(sql`
    DELETE FROM scim_group_members WHERE group_id IN (SELECT id FROM scim_groups WHERE provider_uid = ${provider})`)
  await tx.run(sql`DELETE FROM scim_groups WHERE provider_uid = ${provider}`)
}

/** Role that a person gets from a provisioned group. `capabilities` are the capability numbers as JSON. */
export type PushedRole = {
  scope: string
  capabilities: string
  roleUid: string
  roleName: string
  externalGroupId: string
}

/** Roles that an active person currently gets from provisioned groups. Empty while SCIM is disabled for the provider. */
export async function pushedRoles(reader: Reader, provider: string, externalId: string): Promise<PushedRole[]> {
  const rows = await reader.all<PushedRole & { scim: string }>(sql`
    SELECT t.scope, r.capabilities, r.uid AS "roleUid", r.name AS "roleName",
           t.external_group_id AS "externalGroupId", p.scim
      FROM scim_users u
      JOIN identity_providers p ON p.uid = u.provider_uid
      JOIN scim_group_members m ON m.user_id = u.id
      JOIN scim_groups g ON g.id = m.group_id AND g.provider_uid = u.provider_uid
      JOIN external_group_role_mappings t ON t.parent_uid = g.provider_uid AND t.external_group_id = g.group_key
      JOIN roles r ON r.uid = t.role_uid
     WHERE u.provider_uid = ${provider} AND u.external_id = ${externalId} AND u.active = 1`)
  return rows.filter(({ scim }) => scim !== '' && (JSON.parse(scim) as { enabled: boolean }).enabled)
}
