import { type Reader, type Sql, sql } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import type { PendingBinding } from './pending-bindings.model.ts'

/** For whom bindings wait, and in which organisation; empty for all. */
export type PendingPlace = { identity: string; organization: string }

/** One row more than the page has room for, in the order of the uids, of what waits for an identity. */
export function listPending(reader: Reader, [place]: readonly PendingPlace[], page: Page): Promise<PendingBinding[]> {
  const { desc } = page.order
  const after = page.after ? sql`AND t.uid ${desc ? sql`<` : sql`>`} ${page.after.uid}` : sql``
  return reader.all(sql`
    SELECT t.uid, o.name AS organization, g.name AS "group", r.name AS role, t.created_by AS "createdBy",
           coalesce(c.name, '') AS "createdByName", t.create_time AS "createTime"
      FROM role_bindings t
      JOIN groups g ON g.uid = t.parent_uid
      JOIN groups o ON o.uid = substr(t.parent_uid, 1, 40)
      JOIN roles r ON r.uid = t.role_uid
      LEFT JOIN identities c ON c.uid = t.created_by
     WHERE t.identity_uid = ${place!.identity} AND t.accepted = 0 ${inside(place!)} ${after}
     ORDER BY t.uid ${desc ? sql`DESC` : sql`ASC`}
     LIMIT ${page.size + 1} OFFSET ${page.skip}`)
}

export async function countPending(reader: Reader, [place]: readonly PendingPlace[]): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM role_bindings t
     WHERE t.identity_uid = ${place!.identity} AND t.accepted = 0 ${inside(place!)}`)
  return row!.total
}

function inside({ organization }: PendingPlace): Sql {
  return organization === '' ? sql`` : sql`AND t.uid > ${`${organization}/`} AND t.uid < ${`${organization}0`}`
}

/** The uids of the bindings of an organisation that wait for an identity. */
export async function pendingIn(reader: Reader, organization: string, identity: string): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT uid FROM role_bindings
     WHERE identity_uid = ${identity} AND accepted = 0
       AND uid > ${`${organization}/`} AND uid < ${`${organization}0`}
     ORDER BY uid`)
  return rows.map(({ uid }) => uid)
}

/** Whether a binding of the organisation counts for the identity. */
export async function isMember(reader: Reader, organization: string, identity: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM role_bindings
     WHERE identity_uid = ${identity} AND accepted = 1
       AND uid > ${`${organization}/`} AND uid < ${`${organization}0`}
     LIMIT 1`)
  return row !== undefined
}
