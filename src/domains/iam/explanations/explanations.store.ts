import { list, type Reader, sql } from '#db/sql.ts'
import { top } from '#lib/uid.ts'
import { mostRolesRead } from './explanations.model.ts'

type BindingRow = {
  uid: string
  scope: string
  groupName: string
  roleUid: string
  roleName: string
  accepted: number
  capabilities: string
}

/** Bindings of an identity on these groups, including pending ones. Capability numbers are JSON. */
export function bindingsAt(reader: Reader, identity: string, scopes: readonly string[], limit: number) {
  return reader.all<BindingRow>(sql`
    SELECT b.uid, b.parent_uid AS scope, g.name AS "groupName", b.role_uid AS "roleUid", r.name AS "roleName", b.accepted,
           r.capabilities
      FROM role_bindings b
      JOIN roles r ON r.uid = b.role_uid
      JOIN groups g ON g.uid = b.parent_uid
     WHERE b.identity_uid = ${identity} AND b.parent_uid IN (${list(scopes)})
     ORDER BY b.uid
     LIMIT ${limit}`)
}

/** Names of groups by uid. Missing groups are left out. */
export async function groupNames(reader: Reader, groups: readonly string[]): Promise<Map<string, string>> {
  const rows = await reader.all<{ uid: string; name: string }>(sql`
    SELECT uid, name FROM groups WHERE uid IN (${list(groups)})`)
  return new Map(rows.map(({ uid, name }) => [uid, name]))
}

/** Roles of these groups. `/` is for built-in roles. */
export function rolesAt(reader: Reader, groups: readonly string[]) {
  return reader.all<{ uid: string; name: string; capabilities: string }>(sql`
    SELECT uid, name, capabilities FROM roles WHERE parent_uid IN (${list(groups)}) ORDER BY uid LIMIT ${mostRolesRead}`)
}

/**
 * Identities with an accepted binding of one of these roles on one of these groups. Bindings above the group of the identity are
 * left out, since they have no effect.
 */
export function holdersOf(
  reader: Reader,
  scopes: readonly string[],
  roles: readonly string[],
  { limit, peopleOnly = false }: { limit: number; peopleOnly?: boolean },
) {
  const own = sql`OR b.parent_uid = i.parent_uid
            OR substr(b.parent_uid, 1, length(i.parent_uid) + 1) = i.parent_uid || '/'`
  return reader.all<{ identityUid: string; name: string; email: string; groupUid: string; roleName: string }>(sql`
    SELECT b.identity_uid AS "identityUid", i.name, coalesce(i.email, '') AS email, b.parent_uid AS "groupUid",
           r.name AS "roleName"
      FROM role_bindings b
      JOIN identities i ON i.uid = b.identity_uid
      JOIN roles r ON r.uid = b.role_uid
     WHERE b.parent_uid IN (${list(scopes)}) AND b.role_uid IN (${list(roles)}) AND b.accepted = 1
       AND (i.parent_uid = ${top} ${peopleOnly ? sql`` : own})
     ORDER BY length(b.parent_uid) DESC, b.uid
     LIMIT ${limit}`)
}
