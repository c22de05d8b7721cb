import { allOf, insertsOf } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

/** Package list whose names are not indexed in an organization yet. `after` is the last package that was. */
export type DueList = { organization: number; listNo: number; after: number }

/** True if a row waits for the index. */
export async function isAnyQueued(reader: Reader): Promise<boolean> {
  return (await reader.get(sql`SELECT id FROM search_queue WHERE id > 0 ORDER BY id LIMIT 1`)) !== undefined
}

/** The next list of the first organization after `organization` that has one. */
export function nextDue(reader: Reader, organization: number): Promise<DueList | undefined> {
  return reader.get(sql`
    SELECT org_id AS organization, list_id AS "listNo", after_id AS after FROM search_lists
     WHERE done = 0 AND org_id > ${organization} ORDER BY org_id, list_id LIMIT 1`)
}

export function namesInList(
  reader: Reader,
  { listNo, after }: DueList,
  most: number,
): Promise<{ id: number; name: string }[]> {
  return reader.all(sql`
    SELECT c.id, c.name FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND l.component_id > ${after} ORDER BY l.component_id LIMIT ${most}`)
}

/** Adds names that the organization does not have yet. Returns the new ones. */
export async function addNames(
  tx: Tx,
  organization: number,
  names: readonly string[],
): Promise<{ id: number; name: string }[]> {
  const known = await allOf<{ name: string }, string>(
    tx,
    names,
    (some) => sql`SELECT name FROM search_packages WHERE org_id = ${organization} AND name IN (${list(some)})`,
  )
  const there = new Set(known.map(({ name }) => name))
  const missing = names.filter((name) => !there.has(name))
  const rows = missing.map((name) => sql`(${organization}, ${name})`)
  const into = sql`INSERT INTO search_packages (org_id, name)`
  for (const insert of insertsOf(into, rows, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
  return allOf<{ id: number; name: string }, string>(
    tx,
    missing,
    (some) => sql`SELECT id, name FROM search_packages WHERE org_id = ${organization} AND name IN (${list(some)})`,
  )
}

export async function noteIndexed(
  tx: Tx,
  { organization, listNo }: DueList,
  { after, isDone }: { after: number; isDone: boolean },
): Promise<void> {
  await tx.run(sql`
    UPDATE search_lists SET after_id = ${after}, done = ${Number(isDone)}
     WHERE list_id = ${listNo} AND org_id = ${organization}`)
}
