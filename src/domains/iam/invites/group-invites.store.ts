import { addToLists, type Keys, type Listing, nodeList, removeFromLists } from '#db/listing.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
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
const kind = 'group_invites'
const listing: Listing = { kind, table: kind, columns, join }

function fromRow({ roleName, roleDescription, capabilities, singleUse, ...row }: Row): HydratedInvite {
  const role = capabilities !== null && {
    uid: row.roleUid,
    name: roleName ?? '',
    description: roleDescription ?? '',
    capabilities: JSON.parse(capabilities) as number[],
  }
  return { ...row, singleUse: singleUse === 1, role: role || undefined }
}

const keysOf = (invite: GroupInvite): Keys => ({ create_time: invite.createTime })

export async function findInvite(reader: Reader, uid: string): Promise<HydratedInvite | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM group_invites t ${join} WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** The invite whose code a key verifies, with that key. */
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

/** `keyId` is empty for those of every key. */
export type InviteFilter = { keyId: string }

export const inviteList = nodeList(listing, fromRow, conditions)

function conditions(filter: InviteFilter): Sql[] {
  return filter.keyId === '' ? [] : [sql`t.key_id = ${filter.keyId}`]
}

export async function insertInvite(tx: Tx, invite: GroupInvite, publicKey: Uint8Array): Promise<void> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO group_invites (uid, parent_uid, role_uid, email, expiration_time, single_use, key_id, public_key,
                               created_by, create_time)
    VALUES (${invite.uid}, ${parentOf(invite.uid)}, ${invite.roleUid}, ${invite.email}, ${invite.expirationTime},
            ${invite.singleUse ? 1 : 0}, ${invite.keyId}, ${publicKey}, ${invite.createdBy},
            ${invite.createTime})
    RETURNING id`)
  await addToLists(tx, kind, invite.uid, row!.id, keysOf(invite))
}

export async function deleteInvite(tx: Tx, invite: Pick<GroupInvite, 'uid' | 'createTime'>): Promise<void> {
  await tx.run(sql`DELETE FROM group_invites WHERE uid = ${invite.uid}`)
  await removeFromLists(tx, kind, invite.uid, { create_time: invite.createTime })
}

const plain = sql`SELECT uid, create_time AS "createTime" FROM group_invites`

export async function deleteInvitesOfGroup(tx: Tx, group: string): Promise<void> {
  const invites = await tx.all<Pick<GroupInvite, 'uid' | 'createTime'>>(sql`${plain} WHERE parent_uid = ${group}`)
  for (const invite of invites) await deleteInvite(tx, invite)
}

/** Forgets invites of a group that expired before `time`, a hundred at a time. */
export async function sweepInvites(tx: Tx, group: string, time: string): Promise<void> {
  const invites = await tx.all<Pick<GroupInvite, 'uid' | 'createTime'>>(sql`
    ${plain} WHERE parent_uid = ${group} AND expiration_time < ${time} ORDER BY expiration_time LIMIT 100`)
  for (const invite of invites) await deleteInvite(tx, invite)
}

/** Whether an invite that can still be redeemed offers the role. */
export async function isRoleOffered(reader: Reader, role: string, now: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM group_invites WHERE role_uid = ${role} AND expiration_time > ${now} LIMIT 1`)
  return row !== undefined
}
