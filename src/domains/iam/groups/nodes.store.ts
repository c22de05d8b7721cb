import { ident, join, type Reader, sql } from '#db/sql.ts'

/** Where nodes are stored: one table for each kind. */
const tables = [
  'groups',
  'repos',
  'tags',
  'identities',
  'roles',
  'role_bindings',
  'identity_providers',
  'external_group_role_mappings',
  'group_invites',
  'subscriptions',
  'advisories',
  'audit_log',
]

/** Whether there is a node of this uid, whatever its kind. */
export async function nodeExists(reader: Reader, uid: string): Promise<boolean> {
  const found = tables.map((table) => sql`SELECT 1 AS found FROM ${ident(table)} WHERE uid = ${uid}`)
  return (await reader.get(sql`${join(found, ' UNION ALL ')} LIMIT 1`)) !== undefined
}
