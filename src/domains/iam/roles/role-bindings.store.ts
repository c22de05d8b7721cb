import { exists } from '#db/bulk.ts'
import { nodeTable } from '#db/node-table.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { presentedIdentity, type RelationshipRow } from '../identities/identities.model.ts'
import type { HydratedBinding, RoleBinding } from './role-bindings.model.ts'

type Row = RelationshipRow & {
  uid: string
  identityUid: string
  roleUid: string
  accepted: number
  createdBy: string
  createTime: string
  updateTime: string
  identityName: string | null
  identityDescription: string | null
  email: string | null
  emailUnverified: string | null
  groupUid: string
  groupName: string
  groupDescription: string
  roleName: string
  roleDescription: string
}

const columns = sql`
  t.uid, t.identity_uid AS "identityUid", t.role_uid AS "roleUid", t.accepted, t.created_by AS "createdBy",
  t.create_time AS "createTime", t.update_time AS "updateTime",
  i.name AS "identityName", i.description AS "identityDescription", i.email AS "email", i.email_unverified AS "emailUnverified", i.relationship AS "relationship",
  g.uid AS "groupUid", g.name AS "groupName", g.description AS "groupDescription",
  r.name AS "roleName", r.description AS "roleDescription"`
const joins = sql`
  JOIN groups g ON g.uid = t.parent_uid
  JOIN roles r ON r.uid = t.role_uid
  LEFT JOIN identities i ON i.uid = t.identity_uid`
function fromRow(row: Row): HydratedBinding {
  const accepted = row.accepted === 1
  return {
    uid: row.uid,
    identityUid: row.identityUid,
    roleUid: row.roleUid,
    accepted,
    createdBy: row.createdBy,
    createTime: row.createTime,
    updateTime: row.updateTime,
    identity: { uid: row.identityUid, ...(accepted ? knownOf(row) : unknown) },
    group: { uid: row.groupUid, name: row.groupName, description: row.groupDescription },
    role: { uid: row.roleUid, name: row.roleName, description: row.roleDescription },
  }
}

const unknown = { name: '', description: '', subject: '', issuer: '', email: '', emailUnverified: '' }

function knownOf(row: Row): typeof unknown {
  const { identityName, identityDescription, email, emailUnverified } = row
  return {
    name: identityName ?? '',
    description: identityDescription ?? '',
    ...presentedIdentity(row),
    email: email ?? '',
    emailUnverified: emailUnverified ?? '',
  }
}

export type BindingFilter = { identity: string; group: string; role: string }

type Found = Pick<RoleBinding, 'uid' | 'createTime' | 'updateTime' | 'accepted'>

const bindings = nodeTable(
  {
    table: 'role_bindings',
    columns,
    join: joins,
    sorted: ['create_time', 'update_time'],
    filters: { identity: 'identity_uid', group: 'parent_uid', role: 'role_uid' },
    unique: ['parent_uid', 'identity_uid', 'role_uid'],
    search: { source: 'bindings', terms: ({ accepted }: Found) => [accepted] },
  },
  fromRow,
)

export const { list: bindingList, find: findBinding, delete: deleteBinding } = bindings

const valuesOf = (binding: RoleBinding) => ({
  identity_uid: binding.identityUid,
  role_uid: binding.roleUid,
  accepted: binding.accepted ? 1 : 0,
  created_by: binding.createdBy,
  update_time: binding.updateTime,
})

/** Inserts a binding. Returns false if the identity already has the role on this group. */
export function insertBinding(tx: Tx, binding: RoleBinding): Promise<boolean> {
  return bindings.insert(tx, binding, { ...valuesOf(binding), create_time: binding.createTime })
}

export async function patchBinding(tx: Tx, before: HydratedBinding, after: RoleBinding): Promise<void> {
  await bindings.update(tx, before, after, valuesOf(after))
}

/** Uid of the binding with this identity, role and group. Empty if there is none. */
export async function uidOfBinding(
  reader: Reader,
  group: string,
  { identityUid, roleUid }: Pick<RoleBinding, 'identityUid' | 'roleUid'>,
): Promise<string> {
  const row = await reader.get<{ uid: string }>(sql`
    SELECT uid FROM role_bindings
     WHERE parent_uid = ${group} AND identity_uid = ${identityUid} AND role_uid = ${roleUid}`)
  return row?.uid ?? ''
}

const plain = sql`
  uid, identity_uid AS "identityUid", role_uid AS "roleUid", accepted, created_by AS "createdBy",
  create_time AS "createTime", update_time AS "updateTime"`

type PlainRow = Omit<RoleBinding, 'accepted'> & { accepted: number }
const fromPlain = (row: PlainRow): RoleBinding => ({ ...row, accepted: row.accepted === 1 })

export async function bindingsOfIdentity(reader: Reader, identity: string): Promise<RoleBinding[]> {
  const rows = await reader.all<PlainRow>(sql`SELECT ${plain} FROM role_bindings WHERE identity_uid = ${identity}`)
  return rows.map(fromPlain)
}

export async function bindingsOfGroup(reader: Reader, group: string): Promise<RoleBinding[]> {
  const rows = await reader.all<PlainRow>(sql`SELECT ${plain} FROM role_bindings WHERE parent_uid = ${group}`)
  return rows.map(fromPlain)
}

/** Number of identities with an accepted binding of the role on the group itself. Counting stops at `upTo`. */
export async function countBound(reader: Reader, group: string, role: string, upTo: number): Promise<number> {
  const rows = await reader.all(sql`
    SELECT DISTINCT identity_uid FROM role_bindings
     WHERE parent_uid = ${group} AND role_uid = ${role} AND accepted = 1
     LIMIT ${upTo}`)
  return rows.length
}

/** True if another identity has an accepted binding of the role on the group itself. */
export async function hasOtherBinding(reader: Reader, group: string, role: string, identity: string): Promise<boolean> {
  return exists(
    reader,
    sql`FROM role_bindings
     WHERE parent_uid = ${group} AND role_uid = ${role} AND identity_uid <> ${identity} AND accepted = 1`,
  )
}
