import { exists } from '#db/bulk.ts'
import { nodeTable } from '#db/node-table.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { GroupInvite, HydratedInvite } from './group-invites.model.ts'

type Row = Omit<GroupInvite, 'singleUse'> & {
  singleUse: number
  updateTime: string
  roleName: string | null
  roleDescription: string | null
  capabilities: string | null
}

const columns = sql`
  t.uid, t.role_uid AS "roleUid", t.email, t.expiration_time AS "expirationTime", t.single_use AS "singleUse",
  t.key_id AS "keyId", t.created_by AS "createdBy", t.create_time AS "createTime", t.create_time AS "updateTime",
  r.name AS "roleName", r.description AS "roleDescription", r.capabilities AS "capabilities"`
const join = sql`LEFT JOIN roles r ON r.uid = t.role_uid`
function fromRow({ roleName, roleDescription, capabilities, singleUse, ...row }: Row): HydratedInvite {
  const role = capabilities !== null && {
    uid: row.roleUid,
    name: roleName ?? '',
    description: roleDescription ?? '',
    capabilities: JSON.parse(capabilities) as number[],
  }
  return { ...row, singleUse: singleUse === 1, role: role || undefined }
}

/** `keyId` selects the invitation of one key. Empty for all invitations. */
export type InviteFilter = { keyId: string }

const invites = nodeTable(
  { table: 'group_invites', columns, join, sorted: ['create_time'], filters: { keyId: 'key_id' } },
  fromRow,
)

export const { list: inviteList, find: findInvite, delete: deleteInvite } = invites

export async function insertInvite(tx: Tx, invite: GroupInvite, publicKey: Uint8Array): Promise<void> {
  await invites.insert(tx, invite, {
    role_uid: invite.roleUid,
    email: invite.email,
    expiration_time: invite.expirationTime,
    single_use: invite.singleUse ? 1 : 0,
    key_id: invite.keyId,
    public_key: publicKey,
    created_by: invite.createdBy,
    create_time: invite.createTime,
  })
}

/** Invitation whose code is verified by this key, and the public key. Undefined if there is none. */
export async function findInviteByKey(
  reader: Reader,
  keyId: string,
): Promise<{ invite: HydratedInvite; publicKey: Uint8Array } | undefined> {
  const row = await reader.get<Row & { publicKey: Uint8Array }>(sql`
    SELECT ${columns}, t.public_key AS "publicKey" FROM group_invites t ${join} WHERE t.key_id = ${keyId}`)
  if (!row) return undefined
  const { publicKey, ...rest } = row
  return { invite: fromRow(rest), publicKey }
}

const plain = sql`SELECT uid, create_time AS "createTime" FROM group_invites`

export async function deleteInvitesOfGroup(tx: Tx, group: string): Promise<void> {
  const invites = await tx.all<Pick<GroupInvite, 'uid' | 'createTime'>>(sql`${plain} WHERE parent_uid = ${group}`)
  for (const invite of invites) await deleteInvite(tx, invite)
}

/** Deletes up to 100 invitations of a group that expired before `time`. */
export async function sweepInvites(tx: Tx, group: string, time: string): Promise<void> {
  const invites = await tx.all<Pick<GroupInvite, 'uid' | 'createTime'>>(sql`
    ${plain} WHERE parent_uid = ${group} AND expiration_time < ${time} ORDER BY expiration_time LIMIT 100`)
  for (const invite of invites) await deleteInvite(tx, invite)
}

/** True if the role is in an invitation that has not expired. */
export async function isRoleOffered(reader: Reader, role: string, now: string): Promise<boolean> {
  return exists(reader, sql`FROM group_invites WHERE role_uid = ${role} AND expiration_time > ${now}`)
}
