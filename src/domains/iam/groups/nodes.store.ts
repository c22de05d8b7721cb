import { ident, join, type Reader, sql } from '#db/sql.ts'
import type { Resource } from '#lib/resource.ts'

/** Whether there is a node of this uid, whatever it is. */
export async function nodeExists(reader: Reader, resources: readonly Resource[], uid: string): Promise<boolean> {
  const tables = resources.filter((one) => one.uid === 'place').map(({ table }) => ident(table))
  const found = tables.map((table) => sql`SELECT 1 AS found FROM ${table} WHERE uid = ${uid}`)
  return (await reader.get(sql`${join(found, ' UNION ALL ')} LIMIT 1`)) !== undefined
}
