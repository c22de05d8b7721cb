import { readFact, writeFact } from '#db/facts.ts'
import { addToLists, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from '#db/listing.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { Role } from './roles.model.ts'

type Row = Omit<Role, 'capabilities'> & { capabilities: string }

const columns = sql`
  t.uid, t.name, t.description, t.capabilities, t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'roles'
const listing: Listing = { kind, table: 'roles', columns }

function fromRow({ capabilities, ...row }: Row): Role {
  return { ...row, capabilities: JSON.parse(capabilities) as number[] }
}

const keysOf = (role: Role): Keys => ({ name: role.name, create_time: role.createTime, update_time: role.updateTime })

/** Notes that the built-in roles are of this version; `false` where they are of a newer one. */
export async function takeBuiltInVersion(tx: Tx, version: number): Promise<boolean> {
  const installed = Number((await readFact(tx, 'built_in_roles')) ?? 0)
  if (installed < version) await writeFact(tx, 'built_in_roles', String(version))
  return installed <= version
}

export async function findRole(reader: Reader, uid: string): Promise<Role | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM roles t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** Those of these uids that there are. */
export async function findRolesOf(reader: Reader, uids: readonly string[]): Promise<Role[]> {
  const rows = await reader.all<Row>(sql`SELECT ${columns} FROM roles t WHERE t.uid IN (${list(uids)})`)
  return rows.map(fromRow)
}

export type RoleFilter = { name: string }

export const roleList = nodeList(listing, fromRow, conditions)

function conditions(filter: RoleFilter): Sql[] {
  return filter.name === '' ? [] : [sql`t.name = ${filter.name}`]
}

/** `false` when a role of the same group has the name. */
export async function insertRole(tx: Tx, role: Role): Promise<boolean> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO roles (uid, parent_uid, name, description, capabilities, create_time, update_time)
    VALUES (${role.uid}, ${parentOf(role.uid)}, ${role.name}, ${role.description},
            ${JSON.stringify(role.capabilities)}, ${role.createTime}, ${role.updateTime})
        ON CONFLICT (parent_uid, name) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, role.uid, row.id, keysOf(role))
  return true
}

/** `false` when a role of the same group has the new name. */
export async function patchRole(tx: Tx, before: Role, after: Role): Promise<boolean> {
  if (before.name !== after.name) {
    const taken = await tx.get(sql`
      SELECT 1 AS found FROM roles WHERE parent_uid = ${parentOf(before.uid)} AND name = ${after.name}`)
    if (taken) return false
  }
  await tx.run(sql`
    UPDATE roles
       SET name = ${after.name}, description = ${after.description},
           capabilities = ${JSON.stringify(after.capabilities)}, update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
  return true
}

export async function deleteRole(tx: Tx, role: Role): Promise<void> {
  await tx.run(sql`DELETE FROM roles WHERE uid = ${role.uid}`)
  await removeFromLists(tx, kind, role.uid, keysOf(role))
}

export async function isRoleBound(reader: Reader, uid: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM role_bindings WHERE role_uid = ${uid} LIMIT 1`)) !== undefined
}
