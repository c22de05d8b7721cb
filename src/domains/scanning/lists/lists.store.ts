import { countRows, insertsOf } from '#db/bulk.ts'
import { queueForSearch } from '#db/search-queue.ts'
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { Step } from '#lib/lists/paging.ts'
import {
  type Component,
  keyOf,
  type ListKey,
  listStates,
  type MatchedComponent,
  type OverLimit,
  type StoredComponent,
  type StoredList,
} from './lists.model.ts'

export const componentColumns = sql`
  c.id AS "componentNo", c.kind, c.ecosystem, c.name, c.version, c.origin, c.origin_version AS "originVersion", c.arch`

type Row = Omit<StoredList, 'isOver' | 'ecosystems'> & { isOver: number; ecosystems: string }

const listColumns = sql`
  id AS "listNo", state, ecosystem, ecosystems, packages, match_time AS "matchTime", over_limit AS "isOver"`

const fromRow = (row: Row): StoredList => ({
  ...row,
  isOver: row.isOver === 1,
  ecosystems: row.ecosystems === '' ? undefined : (JSON.parse(row.ecosystems) as string[]),
})

export async function findList(reader: Reader, { hash, distribution }: ListKey): Promise<StoredList | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${listColumns} FROM component_lists
     WHERE hash = ${hash} AND distribution = ${distribution.id} AND distribution_version = ${distribution.version}`)
  return row && fromRow(row)
}

export async function findListByNo(reader: Reader, listNo: number): Promise<StoredList | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${listColumns} FROM component_lists WHERE id = ${listNo}`)
  return row && fromRow(row)
}

/** The stored lists with one of the keys, each with its key. */
export async function findLists(reader: Reader, keys: readonly ListKey[]): Promise<(ListKey & StoredList)[]> {
  type KeyedRow = Row & { hash: string; distribution: string; version: string }
  const rows = await reader.all<KeyedRow>(sql`
    SELECT ${listColumns}, hash, distribution, distribution_version AS version
      FROM component_lists WHERE hash IN (${list([...new Set(keys.map(({ hash }) => hash))])})`)
  return rows.map(({ hash, distribution, version, ...row }) => {
    return { ...fromRow(row), hash, distribution: { id: distribution, version } }
  })
}

/** Finds the list or creates it. */
export async function openList(
  tx: Tx,
  key: ListKey,
  { ecosystem, ecosystems, packages, now }: NewList,
): Promise<StoredList> {
  await tx.run(sql`
    INSERT INTO component_lists (hash, distribution, distribution_version, ecosystem, ecosystems, state, packages,
           create_time)
    VALUES (${key.hash}, ${key.distribution.id}, ${key.distribution.version}, ${ecosystem},
            ${JSON.stringify(ecosystems)}, ${listStates.building}, ${packages}, ${now})
        ON CONFLICT (hash, distribution, distribution_version) DO NOTHING`)
  return (await findList(tx, key))!
}

/**
 * A new package list. `ecosystem` is the ecosystem of the distribution. `ecosystems` are the ecosystems of all packages, in
 * order.
 */
export type NewList = { ecosystem: string; ecosystems: readonly string[]; packages: number; now: string }

/** Marks a list as complete. Returns false if the list was complete already. */
export async function completeList(tx: Tx, listNo: number): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE component_lists SET state = ${listStates.complete} WHERE id = ${listNo} AND state = ${listStates.building}`)
  return changed === 1
}

/** Queues the package names of a list for the search in an organization. */
export async function queueNames(tx: Tx, listNo: number, organization: string): Promise<void> {
  await queueForSearch(tx, 'lists', listNo, organization)
}

/**
 * The organization that is charged for a list, the size of the list's packages, and the charged size. Both sizes are in bytes.
 */
export type Payer = { payer: string; bytes: number; charged: number }

export async function findPayer(reader: Reader, listNo: number): Promise<Payer | undefined> {
  return reader.get<Payer>(sql`SELECT payer, bytes, charged FROM component_lists WHERE id = ${listNo}`)
}

export async function setPayer(tx: Tx, listNo: number, { payer, bytes, charged }: Payer): Promise<void> {
  await tx.run(sql`
    UPDATE component_lists SET payer = ${payer}, bytes = ${bytes}, charged = ${charged} WHERE id = ${listNo}`)
}

/** Limit on the distinct sets of ecosystems that `storedEcosystems` reads. */
const maxSets = 2000

/** Ecosystems of the packages of all images, in no order. Lists of earlier releases count after their next cleanup. */
export async function storedEcosystems(reader: Reader): Promise<Set<string>> {
  const found = new Set<string>()
  let last = ''
  for (let sets = 0; sets < maxSets; sets++) {
    // Jumps from each set to the next one in the index, since many lists have the same set.
    const row = await reader.get<{ ecosystems: string }>(sql`
      SELECT ecosystems FROM component_lists WHERE ecosystems > ${last} ORDER BY ecosystems LIMIT 1`)
    if (!row) break
    last = row.ecosystems
    for (const one of JSON.parse(last) as string[]) found.add(one)
  }
  return found
}

const atOnce = 50

/** Numbers of the components by their keys. Inserts components that do not exist yet. */
export async function ensureComponents(tx: Tx, components: readonly Component[]): Promise<Map<string, number>> {
  const distinct = [...new Map(components.map((one) => [keyOf(one), one])).values()]
  const numbers = new Map<string, number>()
  for (const some of chunks(distinct, atOnce)) {
    const found = await findComponents(tx, some)
    const missing = some.filter((one) => !found.has(keyOf(one)))
    if (missing.length > 0) {
      const rows = missing.map(
        (one) => sql`(${one.kind}, ${one.ecosystem}, ${one.name}, ${one.version}, ${one.origin},
          ${one.originVersion}, ${one.arch})`,
      )
      const into = sql`INSERT INTO components (kind, ecosystem, name, version, origin, origin_version, arch)`
      for (const insert of insertsOf(into, rows, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
      for (const [key, number] of await findComponents(tx, missing)) found.set(key, number)
    }
    for (const [key, number] of found) numbers.set(key, number)
  }
  return numbers
}

async function findComponents(reader: Reader, components: readonly Component[]): Promise<Map<string, number>> {
  const wanted = components.map(
    (one) => sql`
      SELECT ${componentColumns} FROM components c
       WHERE c.name = ${one.name} AND c.version = ${one.version} AND c.ecosystem = ${one.ecosystem}
         AND c.kind = ${one.kind} AND c.origin = ${one.origin} AND c.origin_version = ${one.originVersion}
         AND c.arch = ${one.arch}`,
  )
  const rows = await reader.all<StoredComponent>(join(wanted, ' UNION ALL '))
  return new Map(rows.map((row) => [keyOf(row), row.componentNo]))
}

export type EntryRow = { componentNo: number; ownerNo: number; locations: string }

export async function insertEntries(tx: Tx, listNo: number, entries: readonly EntryRow[]): Promise<void> {
  const rows = entries.map(
    ({ componentNo, ownerNo, locations }) => sql`(${listNo}, ${componentNo}, ${ownerNo}, ${locations})`,
  )
  const into = sql`INSERT INTO list_components (list_id, component_id, owner_id, locations)`
  for (const insert of insertsOf(into, rows, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
  const owned = entries.filter(({ ownerNo }) => ownerNo !== 0)
  const pairs = owned.map(({ componentNo, ownerNo }) => sql`(${componentNo}, ${ownerNo})`)
  const intoPairs = sql`INSERT INTO owned_components (component_id, owner_id)`
  for (const insert of insertsOf(intoPairs, pairs, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
}

export const matchedColumns = sql`${componentColumns}, c.held`

export const toMatched = (row: StoredComponent & { held: number }): MatchedComponent => ({
  ...row,
  held: row.held === 1,
})

/** Some components of a list that were never compared. */
export async function unmatchedOf(reader: Reader, listNo: number, most: number): Promise<MatchedComponent[]> {
  const rows = await reader.all<StoredComponent & { held: number }>(sql`
    SELECT ${matchedColumns} FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND c.match_time = '' LIMIT ${most}`)
  return rows.map(toMatched)
}

/** Marks a list as compared. The time of the first comparison does not change. */
export async function noteListMatched(tx: Tx, listNo: number, now: string): Promise<void> {
  await tx.run(sql`UPDATE component_lists SET match_time = ${now}
     WHERE id = ${listNo} AND match_time = '' AND state = ${listStates.complete}`)
}

/** Ecosystems of the packages of a list, in order. The text is empty for a package without an ecosystem. */
export async function ecosystemsOfList(
  reader: Reader,
  { listNo, ecosystems }: Pick<StoredList, 'listNo' | 'ecosystems'>,
): Promise<string[]> {
  if (ecosystems) return ecosystems
  const rows = await reader.all<{ ecosystem: string }>(sql`
    SELECT DISTINCT c.ecosystem FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} ORDER BY c.ecosystem`)
  return rows.map(({ ecosystem }) => ecosystem)
}

/** Stores the ecosystems of a list that an earlier release wrote. */
export async function noteEcosystems(tx: Tx, listNo: number, ecosystems: readonly string[]): Promise<void> {
  await tx.run(sql`UPDATE component_lists SET ecosystems = ${JSON.stringify(ecosystems)} WHERE id = ${listNo}`)
}

/** Compared lists after `after`, in order. */
export async function matchedListsAfter(reader: Reader, after: number, most: number): Promise<number[]> {
  const rows = await reader.all<{ listNo: number }>(sql`
    SELECT id AS "listNo" FROM component_lists WHERE id > ${after} AND match_time <> '' ORDER BY id LIMIT ${most}`)
  return rows.map(({ listNo }) => listNo)
}

/** Marks a list as over its limit. Returns false if the list was over its limit already. */
export async function setOver(tx: Tx, listNo: number, now: string): Promise<boolean> {
  const changed = await tx.run(sql`UPDATE component_lists SET over_limit = 1 WHERE id = ${listNo} AND over_limit = 0`)
  if (changed === 0) return false
  await tx.run(sql`
    INSERT INTO list_limits (list_id, from_time) VALUES (${listNo}, ${now})
        ON CONFLICT (list_id, from_time) DO UPDATE SET until_time = ''`)
  return true
}

/** Number of packages of a list. */
export async function countEntries(reader: Reader, listNo: number): Promise<number> {
  return countRows(reader, sql`FROM list_components WHERE list_id = ${listNo}`)
}

/** Marks a list as within its limit. Returns false if the list was within its limit already. */
export async function setWithin(tx: Tx, listNo: number, now: string): Promise<boolean> {
  const changed = await tx.run(sql`UPDATE component_lists SET over_limit = 0 WHERE id = ${listNo} AND over_limit = 1`)
  if (changed === 0) return false
  await tx.run(sql`UPDATE list_limits SET until_time = ${now} WHERE list_id = ${listNo} AND until_time = ''`)
  return true
}

/** Time ranges in which some lists were over their limits, in order of list and start time. */
export async function limitsOf(reader: Reader, lists: readonly number[]): Promise<(OverLimit & { listNo: number })[]> {
  return reader.all<OverLimit & { listNo: number }>(sql`
    SELECT list_id AS "listNo", from_time AS "fromTime", until_time AS "untilTime" FROM list_limits
     WHERE list_id IN (${list(lists)}) ORDER BY list_id, from_time`)
}

/** Packages of a list after `after` that must be put on hold or released, in order. */
export async function packagesWithWrongHold(
  reader: Reader,
  listNo: number,
  isOver: boolean,
  { after, most }: Step,
): Promise<number[]> {
  const wrong = isOver ? sql`l.held = 0` : sql`(l.held = 1 OR c.held = 1)`
  const rows = await reader.all<{ componentNo: number }>(sql`
    SELECT l.component_id AS "componentNo" FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND l.component_id > ${after} AND ${wrong} ORDER BY l.component_id LIMIT ${most}`)
  return rows.map(({ componentNo }) => componentNo)
}

/** Marks packages of a list that is over its limit. Puts a package on hold if all of its lists are over their limits. */
export async function hold(tx: Tx, listNo: number, components: readonly number[]): Promise<void> {
  await tx.run(sql`
    UPDATE list_components SET held = 1 WHERE list_id = ${listNo} AND component_id IN (${list(components)})`)
  await tx.run(sql`
    UPDATE components SET held = 1
     WHERE id IN (${list(components)})
       AND NOT EXISTS (SELECT 1 FROM list_components l WHERE l.component_id = components.id AND l.held = 0)`)
}

/**
 * Releases packages of a list that is within its limit. A package that was on hold is compared again, because some of its
 * findings are missing.
 */
export async function release(tx: Tx, listNo: number, components: readonly number[]): Promise<void> {
  await tx.run(sql`
    UPDATE list_components SET held = 0 WHERE list_id = ${listNo} AND component_id IN (${list(components)})`)
  await tx.run(sql`
    UPDATE components SET held = 0, match_time = '' WHERE id IN (${list(components)}) AND held = 1`)
}

/**
 * Number of open shared findings in some packages of a list after `after`. `last` is the last of these packages, or undefined at
 * the end of the list.
 */
export async function countOpen(
  reader: Reader,
  listNo: number,
  { after, most }: Step,
): Promise<{ open: number; last: number | undefined }> {
  const row = await reader.get<{ open: number; last: number | null }>(sql`
    SELECT count(f.id) AS open, max(p.component_id) AS last
      FROM (SELECT l.component_id FROM list_components l
             WHERE l.list_id = ${listNo} AND l.component_id > ${after} ORDER BY l.component_id LIMIT ${most}) p
      LEFT JOIN findings f ON f.component_id = p.component_id AND f.gone_time = '' AND f.place = ''`)
  return { open: row?.open ?? 0, last: row?.last ?? undefined }
}
