import { exists } from '#db/bulk.ts'
import { readFact, writeFact } from '#db/facts.ts'
import { namedNodes, nodeTable } from '#db/node-table.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { Role } from './roles.model.ts'

type Row = Omit<Role, 'capabilities'> & { capabilities: string }

const columns = sql`
  t.uid, t.name, t.description, t.capabilities, t.create_time AS "createTime", t.update_time AS "updateTime"`
function fromRow({ capabilities, ...row }: Row): Role {
  return { ...row, capabilities: JSON.parse(capabilities) as number[] }
}

export type RoleFilter = { name: string }

const roles = nodeTable({ table: 'roles', columns, ...namedNodes }, fromRow)

export const { list: roleList, find: findRole, byUid: rolesByUid, delete: deleteRole } = roles

const valuesOf = ({ name, description, capabilities, updateTime }: Role) => ({
  name,
  description,
  capabilities: JSON.stringify(capabilities),
  update_time: updateTime,
})

/** Inserts a role. Returns false if another role of the group has the same name. */
export function insertRole(tx: Tx, role: Role): Promise<boolean> {
  return roles.insert(tx, role, { ...valuesOf(role), create_time: role.createTime })
}

/** Updates a role. Returns false if another role of the group has the new name. */
export function patchRole(tx: Tx, before: Role, after: Role): Promise<boolean> {
  return roles.update(tx, before, after, valuesOf(after))
}

/** Records the version of the built-in roles. Returns false if the database already has a newer version. */
export async function takeBuiltInVersion(tx: Tx, version: number): Promise<boolean> {
  const installed = Number((await readFact(tx, 'built_in_roles')) ?? 0)
  if (installed < version) await writeFact(tx, 'built_in_roles', String(version))
  return installed <= version
}

export async function isRoleBound(reader: Reader, uid: string): Promise<boolean> {
  return exists(reader, sql`FROM role_bindings WHERE role_uid = ${uid}`)
}
