import { exists } from '#db/bulk.ts'
import { nodeTable } from '#db/node-table.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { GroupMapping } from './external-group-role-mappings.model.ts'

const columns = sql`
  t.uid, t.external_group_id AS "externalGroupId", t.role_uid AS "roleUid", t.scope,
  t.create_time AS "createTime", t.create_time AS "updateTime"`

/** `provider` selects the mappings of one provider. Empty for all providers. */
export type MappingFilter = { provider: string }

const mappings = nodeTable(
  {
    table: 'external_group_role_mappings',
    columns,
    sorted: ['create_time'],
    filters: { provider: 'parent_uid' },
    unique: ['parent_uid', 'external_group_id', 'role_uid', 'scope'],
  },
  (row: GroupMapping) => row,
)

export const { list: mappingList, find: findMapping, delete: deleteMapping } = mappings

/** Inserts a group mapping. Returns false if the same mapping already exists. */
export function insertMapping(tx: Tx, mapping: GroupMapping): Promise<boolean> {
  const { externalGroupId, roleUid, scope, createTime } = mapping
  const values = { external_group_id: externalGroupId, role_uid: roleUid, scope, create_time: createTime }
  return mappings.insert(tx, mapping, values)
}

/** Group mappings with these uids, in order of the uid. Missing ones are left out. */
export function findMappings(reader: Reader, uids: readonly string[]): Promise<GroupMapping[]> {
  return reader.all(sql`
    SELECT ${columns} FROM external_group_role_mappings t WHERE t.uid IN (${list(uids)}) ORDER BY t.uid`)
}

export function mappingsOfProvider(reader: Reader, provider: string): Promise<GroupMapping[]> {
  return reader.all(sql`SELECT ${columns} FROM external_group_role_mappings t WHERE t.parent_uid = ${provider}`)
}

/** Group mappings of these external groups of a provider. */
export function mappingsOfGroups(reader: Reader, provider: string, groups: readonly string[]): Promise<GroupMapping[]> {
  return reader.all(sql`
    SELECT ${columns} FROM external_group_role_mappings t
     WHERE t.parent_uid = ${provider} AND t.external_group_id IN (${list(groups)}) ORDER BY t.uid`)
}

export async function isRoleMapped(reader: Reader, role: string): Promise<boolean> {
  return exists(reader, sql`FROM external_group_role_mappings WHERE role_uid = ${role}`)
}
