// Queues existing rows for the search index: all rows after an upgrade, and later those of servers of an earlier release.

import { readFact, writeFact } from './facts.ts'
import { type SearchSource, searchKinds, searchSources } from './search-queue.ts'
import { list, type Reader, type Sql, sql, type Tx } from './sql.ts'

/** Numbers of the last rows that were queued, by source. */
type Positions = Partial<Record<SearchSource, number>>

const isMissing = (kinds: readonly number[]): Sql =>
  sql`NOT EXISTS (SELECT 1 FROM search_parts p WHERE p.kind IN (${list(kinds)}) AND p.id = t.id)`

/** Tables of the rows, and conditions for rows that are found but not in the index. Rows of tags are queued again. */
const tables: Readonly<Record<Exclude<SearchSource, 'lists'>, { table: Sql; which: Sql }>> = {
  groups: { table: sql`groups`, which: isMissing([searchKinds.organizations, searchKinds.folders]) },
  repos: { table: sql`repos`, which: sql`t.ledger_id IS NOT NULL AND ${isMissing([searchKinds.repos])}` },
  identities: { table: sql`identities`, which: sql`t.parent_uid <> '/' AND ${isMissing([searchKinds.identities])}` },
  bindings: { table: sql`role_bindings`, which: sql`t.accepted = 1 AND ${isMissing([searchKinds.persons])}` },
  tags: { table: sql`tags`, which: sql`t.name NOT LIKE 'sha256-%'` },
}

/** Reads some rows and queues them. Returns the number of rows that were read, or 0 if none are left. */
export async function fillSearch(tx: Tx, most: number): Promise<number> {
  const positions = await readPositions(tx)
  for (const [source, { table, which }] of Object.entries(tables) as [
    keyof typeof tables,
    { table: Sql; which: Sql },
  ][]) {
    const found = await rowsAfter(tx, table, positions[source], most)
    if (found.length === 0) continue
    await tx.run(sql`
      INSERT INTO search_queue (source, row_id, organization)
      SELECT ${searchSources[source]}, t.id, '' FROM ${table} t WHERE t.id IN (${list(found)}) AND ${which}`)
    return advance(tx, positions, source, found)
  }
  const found = await rowsAfter(tx, sql`component_lists`, positions.lists, most)
  if (found.length === 0) return 0
  await tx.run(sql`
    INSERT INTO search_queue (source, row_id, organization)
    SELECT DISTINCT ${searchSources.lists}, l.id, substr(r.uid, 1, 40)
      FROM component_lists l
      JOIN image_contents c ON c.packages = l.hash AND c.packages <> ''
      JOIN repos r ON r.id = c.repo_id AND r.ledger_id IS NOT NULL
     WHERE l.id IN (${list(found)})`)
  return advance(tx, positions, 'lists', found)
}

async function rowsAfter(reader: Reader, table: Sql, after = 0, most: number): Promise<number[]> {
  const rows = await reader.all<{ id: number }>(sql`
    SELECT id FROM ${table} WHERE id > ${after} ORDER BY id LIMIT ${most}`)
  return rows.map(({ id }) => id)
}

async function advance(tx: Tx, positions: Positions, source: SearchSource, found: readonly number[]): Promise<number> {
  await writeFact(tx, 'search_filled', JSON.stringify({ ...positions, [source]: found.at(-1)! }))
  return found.length
}

async function readPositions(reader: Reader): Promise<Positions> {
  return JSON.parse((await readFact(reader, 'search_filled')) ?? '{}') as Positions
}

/** Moves the positions back, so that rows whose numbers appeared late are added too. */
export async function stepBack(tx: Tx, rows: number): Promise<void> {
  const positions = Object.entries(await readPositions(tx))
  const back = positions.map(([source, at]) => [source, Math.max(0, at - rows)])
  await writeFact(tx, 'search_filled', JSON.stringify(Object.fromEntries(back)))
}
