import { addToLists, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from '#db/listing.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import { presentedIdentity, type RelationshipRow } from '../identities/identities.model.ts'
import type { HydratedBinding, RoleBinding } from './role-bindings.model.ts'

type Row = RelationshipRow & {
  uid: string
  identityUid: string
  roleUid: string
  createTime: string
  updateTime: string
  identityName: string | null
  identityDescription: string | null
  email: string | null
  groupUid: string
  groupName: string
  groupDescription: string
  roleName: string
  roleDescription: string
}

const columns = sql`
  t.uid, t.identity_uid AS "identityUid", t.role_uid AS "roleUid",
  t.create_time AS "createTime", t.update_time AS "updateTime",
  i.name AS "identityName", i.description AS "identityDescription", i.email AS "email", i.relationship AS "relationship",
  g.uid AS "groupUid", g.name AS "groupName", g.description AS "groupDescription",
  r.name AS "roleName", r.description AS "roleDescription"`
const joins = sql`
  JOIN groups g ON g.uid = t.parent_uid
  JOIN roles r ON r.uid = t.role_uid
  LEFT JOIN identities i ON i.uid = t.identity_uid`
const kind = 'role_bindings'
const listing: Listing = { kind, table: 'role_bindings', columns, join: joins }

function fromRow(row: Row): HydratedBinding {
  const { subject, issuer } = presentedIdentity(row)
  return {
    uid: row.uid,
    identityUid: row.identityUid,
    roleUid: row.roleUid,
    createTime: row.createTime,
    updateTime: row.updateTime,
    identity: {
      uid: row.identityUid,
      name: row.identityName ?? '',
      description: row.identityDescription ?? '',
      subject,
      issuer,
      email: row.email ?? '',
    },
    group: { uid: row.groupUid, name: row.groupName, description: row.groupDescription },
    role: { uid: row.roleUid, name: row.roleName, description: row.roleDescription },
  }
}

const keysOf = (binding: RoleBinding): Keys => ({ create_time: binding.createTime, update_time: binding.updateTime })

export async function findBinding(reader: Reader, uid: string): Promise<HydratedBinding | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM role_bindings t ${joins} WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

export type BindingFilter = { identity: string; group: string; role: string }

export const bindingList = nodeList(listing, fromRow, conditions)

function conditions(filter: BindingFilter): Sql[] {
  const found: Sql[] = []
  if (filter.identity !== '') found.push(sql`t.identity_uid = ${filter.identity}`)
  if (filter.group !== '') found.push(sql`t.parent_uid = ${filter.group}`)
  if (filter.role !== '') found.push(sql`t.role_uid = ${filter.role}`)
  return found
}

/** What an identity is bound to: places, each with the capability numbers of one role as JSON. */
export async function listGrants(reader: Reader, identity: string): Promise<{ place: string; capabilities: string }[]> {
  return reader.all(sql`
    SELECT b.parent_uid AS place, r.capabilities AS capabilities
      FROM role_bindings b JOIN roles r ON r.uid = b.role_uid
     WHERE b.identity_uid = ${identity}`)
}

/** `false` when the identity has the role on this group already. */
export async function insertBinding(tx: Tx, binding: RoleBinding): Promise<boolean> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO role_bindings (uid, parent_uid, identity_uid, role_uid, create_time, update_time)
    VALUES (${binding.uid}, ${parentOf(binding.uid)}, ${binding.identityUid}, ${binding.roleUid},
            ${binding.createTime}, ${binding.updateTime})
        ON CONFLICT (parent_uid, identity_uid, role_uid) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, binding.uid, row.id, keysOf(binding))
  return true
}

/** Whether the identity has the role on the group through another binding than `except`. */
export async function isBound(
  reader: Reader,
  group: string,
  identity: string,
  role: string,
  except: string,
): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM role_bindings
     WHERE parent_uid = ${group} AND identity_uid = ${identity} AND role_uid = ${role} AND uid <> ${except}`)
  return row !== undefined
}

export async function patchBinding(tx: Tx, before: HydratedBinding, after: RoleBinding): Promise<void> {
  await tx.run(sql`
    UPDATE role_bindings
       SET identity_uid = ${after.identityUid}, role_uid = ${after.roleUid}, update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
}

export async function deleteBinding(tx: Tx, binding: RoleBinding): Promise<void> {
  await tx.run(sql`DELETE FROM role_bindings WHERE uid = ${binding.uid}`)
  await removeFromLists(tx, kind, binding.uid, keysOf(binding))
}

const plain = sql`
  uid, identity_uid AS "identityUid", role_uid AS "roleUid", create_time AS "createTime", update_time AS "updateTime"`

export function bindingsOfIdentity(reader: Reader, identity: string): Promise<RoleBinding[]> {
  return reader.all(sql`SELECT ${plain} FROM role_bindings WHERE identity_uid = ${identity}`)
}

export function bindingsOfGroup(reader: Reader, group: string): Promise<RoleBinding[]> {
  return reader.all(sql`SELECT ${plain} FROM role_bindings WHERE parent_uid = ${group}`)
}

/** Whether somebody else than `identity` has the role on the group itself. */
export async function anybodyElse(reader: Reader, group: string, role: string, identity: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM role_bindings
     WHERE parent_uid = ${group} AND role_uid = ${role} AND identity_uid <> ${identity}
     LIMIT 1`)
  return row !== undefined
}
