import { listByUid } from '#db/bulk.ts'
import { type Reader, type Sql, sql } from '#db/sql.ts'
import type { PendingBinding } from './pending-bindings.model.ts'

/** Scope of a list: pending bindings of an identity, in one organization. With an empty `organization`, in all organizations. */
export type PendingBindingScope = { identity: string; organization: string }

const columns = sql`
  t.uid, o.name AS organization, g.name AS "group", r.name AS role, t.created_by AS "createdBy",
  coalesce(c.name, '') AS "createdByName", t.create_time AS "createTime"`
const join = sql`
  JOIN groups g ON g.uid = t.parent_uid
  JOIN groups o ON o.uid = substr(t.parent_uid, 1, 40)
  JOIN roles r ON r.uid = t.role_uid
  LEFT JOIN identities c ON c.uid = t.created_by`

export const pendingList = listByUid({ table: 'role_bindings', columns, join }, at, (row: PendingBinding) => row)

function at({ identity, organization }: PendingBindingScope): Sql {
  const inside = organization === '' ? sql`` : sql`AND t.uid > ${`${organization}/`} AND t.uid < ${`${organization}0`}`
  return sql`t.identity_uid = ${identity} AND t.accepted = 0 ${inside}`
}

/** Uids of the pending bindings of an identity in an organization. */
export async function pendingIn(reader: Reader, organization: string, identity: string): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT uid FROM role_bindings
     WHERE identity_uid = ${identity} AND accepted = 0
       AND uid > ${`${organization}/`} AND uid < ${`${organization}0`}
     ORDER BY uid`)
  return rows.map(({ uid }) => uid)
}

/** True if the identity has an accepted binding in the organization. */
export async function isMember(reader: Reader, organization: string, identity: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM role_bindings
     WHERE identity_uid = ${identity} AND accepted = 1
       AND uid > ${`${organization}/`} AND uid < ${`${organization}0`}
     LIMIT 1`)
  return row !== undefined
}
