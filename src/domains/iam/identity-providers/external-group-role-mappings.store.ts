import { addToLists, type Keys, type Listing, nodeList, removeFromLists } from '#db/listing.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { GroupMapping } from './external-group-role-mappings.model.ts'

const columns = sql`
  t.uid, t.external_group_id AS "externalGroupId", t.role_uid AS "roleUid", t.scope,
  t.create_time AS "createTime", t.create_time AS "updateTime"`
const kind = 'external_group_role_mappings'
const listing: Listing = { kind, table: kind, columns }

const keysOf = (mapping: GroupMapping): Keys => ({ create_time: mapping.createTime })

export function findMapping(reader: Reader, uid: string): Promise<GroupMapping | undefined> {
  return reader.get(sql`SELECT ${columns} FROM external_group_role_mappings t WHERE t.uid = ${uid}`)
}

/** Those of the given uids that exist, in the order of the uid. */
export function findMappings(reader: Reader, uids: readonly string[]): Promise<GroupMapping[]> {
  return reader.all(sql`
    SELECT ${columns} FROM external_group_role_mappings t WHERE t.uid IN (${list(uids)}) ORDER BY t.uid`)
}

export function mappingsOfProvider(reader: Reader, provider: string): Promise<GroupMapping[]> {
  return reader.all(sql`SELECT ${columns} FROM external_group_role_mappings t WHERE t.parent_uid = ${provider}`)
}

/** Of the given external groups. */
export function mappingsOfGroups(reader: Reader, provider: string, groups: readonly string[]): Promise<GroupMapping[]> {
  return reader.all(sql`
    SELECT ${columns} FROM external_group_role_mappings t
     WHERE t.parent_uid = ${provider} AND t.external_group_id IN (${list(groups)}) ORDER BY t.uid`)
}

/** `provider` is empty for those of all providers. */
export type MappingFilter = { provider: string }

export const mappingList = nodeList(listing, (row: GroupMapping) => row, conditions)

function conditions({ provider }: MappingFilter): Sql[] {
  return provider === '' ? [] : [sql`t.parent_uid = ${provider}`]
}

/** `false` when the provider has the same mapping already. */
export async function insertMapping(tx: Tx, mapping: GroupMapping): Promise<boolean> {
  const { uid, externalGroupId, roleUid, scope, createTime } = mapping
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO external_group_role_mappings (uid, parent_uid, external_group_id, role_uid, scope, create_time)
    VALUES (${uid}, ${parentOf(uid)}, ${externalGroupId}, ${roleUid}, ${scope}, ${createTime})
        ON CONFLICT (parent_uid, external_group_id, role_uid, scope) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, uid, row.id, keysOf(mapping))
  return true
}

export async function deleteMapping(tx: Tx, mapping: GroupMapping): Promise<void> {
  await tx.run(sql`DELETE FROM external_group_role_mappings WHERE uid = ${mapping.uid}`)
  await removeFromLists(tx, kind, mapping.uid, keysOf(mapping))
}

export async function isRoleMapped(reader: Reader, role: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM external_group_role_mappings WHERE role_uid = ${role} LIMIT 1`)
  return row !== undefined
}
