// Lists of nodes in any order, for any part of the hierarchy, and of any size. Every list is read from an index. Two tables serve
// all kinds of resources. `list_keys` has one row for each node, sortable member and list; its primary key has the order of the
// list. `list_counts` has the number of nodes in each list. Each database connection adds to a row of its own, so no row is a
// bottleneck.

import { type Branch, compareTexts, type Page } from '#lib/lists/paging.ts'
import { lineage, parentOf, top } from '#lib/uid.ts'
import { insertsOf } from './bulk.ts'
import { ident, join, list, quoted, type Reader, type Sql, sql, type Tx } from './sql.ts'

/**
 * Storage of one kind of node. `columns` are the selected columns, named as in the model, and `join` adds the tables that they
 * need. If several kinds share a table, `only` selects the rows of this kind. `unkeyed` is true for kinds with few nodes in each
 * group. They have no rows in `list_keys` and `list_counts`, so the database sorts their lists.
 */
export type Listing = {
  kind: string
  table: string
  columns: Sql
  join?: Sql
  only?: Sql
  keys?: KeyRange
  unkeyed?: boolean
}

/**
 * Range of keys for a filter that matches many nodes. `name` is the name of the key. If given, `from` is the first value, and
 * `before` is the first value after the range.
 */
export type KeyRange = { name: string; from?: string; before?: string }

/** Current values of the members that a list can be sorted by, except the uid. */
export type Keys = Record<string, string>

/** Node with the names of its lists. Lists outside of the hierarchy are possible, such as the list of an ecosystem. */
export type Entry = { uid: string; id: number; keys: Keys; scopes: readonly string[] }

/** Names of a node's lists: the list of everything, the descendants of each ancestor, and the children of its parent. */
export function scopeKeysOf(uid: string): string[] {
  const parent = parentOf(uid)
  const above = parent === top ? [] : lineage(parent)
  return [top, ...above, childrenScopeKey(parent)]
}

/** Like `scopeKeysOf`, for nodes without descendants. Their parent needs one list for both its children and its descendants. */
export function scopeKeysOfLeaf(uid: string): string[] {
  return [top, ...lineage(parentOf(uid))]
}

const childrenScopeKey = (uid: string): string => `${uid}:`

/** Adds a new node to its lists and their totals. Call it in the transaction that inserts the node. */
export async function addToLists(tx: Tx, kind: string, uid: string, id: number, keys: Keys): Promise<void> {
  await addToScopes(tx, kind, [{ uid, id, keys, scopes: scopeKeysOf(uid) }])
}

/** Adds many nodes at once to the lists that each entry names. */
export async function addToScopes(tx: Tx, kind: string, entries: readonly Entry[]): Promise<void> {
  const found = entries.flatMap(({ uid, id, keys, scopes }) =>
    scopes.flatMap((scope) => Object.entries(keys).map(([key, value]) => ({ key, scope, value, uid, id }))),
  )
  // Sorts the rows, so that neighbors in the index are written together.
  if (entries.length > 1) {
    found.sort((a, b) => compareTexts(a.key, b.key) || compareTexts(a.scope, b.scope) || compareTexts(a.value, b.value))
  }
  const rows = found.map(
    ({ key, scope, value, uid, id }) => sql`(${`${kind}.${key}`}, ${scope}, ${value}, ${uid}, ${id})`,
  )
  const into = sql`INSERT INTO list_keys (list, place, value, uid, id)`
  for (const insert of insertsOf(into, rows)) await tx.run(insert)
  await count(
    tx,
    kind,
    entries.flatMap(({ scopes }) => scopes),
    1,
  )
}

/** Updates the position of a node in the lists that are sorted by a changed member. */
export async function moveInLists(
  tx: Tx,
  kind: string,
  uid: string,
  before: Keys,
  after: Keys,
  scopes: readonly string[] = scopeKeysOf(uid),
): Promise<void> {
  const changed = Object.keys(after).filter((key) => before[key] !== after[key])
  for (const key of changed) {
    await tx.run(sql`
      UPDATE list_keys SET value = ${after[key]!}
       WHERE list = ${`${kind}.${key}`} AND place IN (${list(scopes)})
         AND value = ${before[key]!} AND uid = ${uid}`)
  }
}

/** Removes a node from its lists. Call it when the node is deleted. */
export async function removeFromLists(
  tx: Tx,
  kind: string,
  uid: string,
  keys: Keys,
  scopes: readonly string[] = scopeKeysOf(uid),
): Promise<void> {
  for (const [key, value] of Object.entries(keys)) {
    await tx.run(sql`
      DELETE FROM list_keys
       WHERE list = ${`${kind}.${key}`} AND place IN (${list(scopes)}) AND value = ${value} AND uid = ${uid}`)
  }
  await count(tx, kind, scopes, -1)
}

/** Nodes of one kind in the same lists, to be deleted together. `where` selects their rows in `table`, named `t`. */
export type NodesToRemove = { kind: string; scopes: readonly string[]; table: string; where: Sql; total: number }

/** Removes many nodes from lists, before their rows are deleted. `columns` are the sortable columns of the kind. */
export async function removeManyFromLists(tx: Tx, many: NodesToRemove, columns: readonly string[]): Promise<void> {
  for (const column of columns) {
    const gone = sql`SELECT ${ident(`t.${column}`)}, t.uid FROM ${ident(many.table)} t WHERE ${many.where}`
    for (const scope of many.scopes) {
      await tx.run(sql`
        DELETE FROM list_keys
         WHERE list = ${`${many.kind}.${column}`} AND place = ${scope} AND (value, uid) IN (${gone})`)
    }
  }
  await count(tx, many.kind, many.scopes, -many.total)
}

async function count(tx: Tx, kind: string, scopes: readonly string[], by: number): Promise<void> {
  const totals = new Map<string, number>()
  for (const scope of scopes) totals.set(scope, (totals.get(scope) ?? 0) + by)
  const rows = [...totals].map(([scope, total]) => sql`(${kind}, ${scope}, ${tx.shard}, ${total})`)
  const into = sql`INSERT INTO list_counts (kind, place, shard, total)`
  const add = sql`ON CONFLICT (kind, place, shard) DO UPDATE SET total = list_counts.total + excluded.total`
  for (const insert of insertsOf(into, rows, add)) await tx.run(insert)
}

/**
 * Returns a page and one extra row, which shows that another page follows. Merges several listings into one list. With `walk`,
 * reads nodes in the order of the list and filters each, for filters that match many nodes.
 */
export async function listPage<T>(
  reader: Reader,
  listings: Listing | readonly Listing[],
  branches: readonly Branch[],
  page: Page,
  filters: readonly Sql[] = [],
  walk = false,
): Promise<T[]> {
  const kinds = [listings].flat()
  const skipped = page.skip > 0 && filters.length === 0 ? skippedFrom(kinds, branches, page) : undefined
  if (skipped) return skippedPage(reader, skipped, page)
  const queries = kinds.flatMap((listing) => {
    return branches.map((branch) => branchQuery(listing, branch, page, filters, walk))
  })
  return queries.length === 0 ? [] : reader.all<T>(mergedPage(queries, page))
}

/** Page of the merged rows of several queries. Each query has the order of the page and starts after its cursor. */
export function mergedPage(queries: readonly Sql[], page: Page): Sql {
  const [only, ...more] = queries
  if (only && more.length === 0) return sql`${only} LIMIT ${page.size + 1} OFFSET ${page.skip}`

  const dir = direction(page)
  return sql`
    ${mergeQueries(queries, page.skip + page.size + 1, sql`${quoted(page.order.field)} ${dir}, uid ${dir}`)}
     LIMIT ${page.size + 1} OFFSET ${page.skip}`
}

/** Merges queries. Each is limited to the rows that the page can need, and the rows of all of them are sorted. */
function mergeQueries(queries: readonly Sql[], enough: number, order: Sql): Sql {
  const arms = queries.map((query, i) => sql`SELECT * FROM (${query} LIMIT ${enough}) AS ${ident(`b${i}`)}`)
  return sql`SELECT * FROM (${union(arms)}) AS merged ORDER BY ${order}`
}

/** Combines queries in groups of 400. SQLite combines at most 500, and a caller may have bindings on more groups. */
export function union(arms: readonly Sql[]): Sql {
  if (arms.length <= 400) return join(arms, ' UNION ALL ')
  const some = Array.from({ length: Math.ceil(arms.length / 400) }, (_, i) => arms.slice(i * 400, (i + 1) * 400))
  return union(some.map((part, i) => sql`SELECT * FROM (${join(part, ' UNION ALL ')}) AS ${ident(`u${i}`)}`))
}

function branchQuery(listing: Listing, branch: Branch, page: Page, filters: readonly Sql[], walk: boolean): Sql {
  return 'uids' in branch || !byKeys(listing, page, filters, walk)
    ? tableQuery(listing, branch, page, filters)
    : scopeQuery(listing, scopeKeyOf(branch), page, filters)
}

function byKeys({ keys, unkeyed }: Listing, page: Page, filters: readonly Sql[], walk: boolean): boolean {
  if (unkeyed) return false
  return keys !== undefined || (page.order.column !== 'uid' && (filters.length === 0 || walk))
}

/** Query for the nodes of one list, in the order of the page and after its cursor. Each row is filtered. */
export function scopeQuery(listing: Listing, scope: string, page: Page, filters: readonly Sql[] = []): Sql {
  const dir = direction(page)
  return sql`
    SELECT ${listing.columns}
      FROM list_keys k JOIN ${ident(listing.table)} t ON t.id = k.id ${listing.join ?? sql``}
     WHERE ${join([...inScope(listing, scope, page), ...filters], ' AND ')}
     ORDER BY k.value ${dir}, k.uid ${dir}`
}

/** Listings of one table, and the lists to read, for a page that skips nodes. They are read in the order of their keys. */
type Skipped = { kinds: readonly [Listing, ...Listing[]]; scopes: readonly string[] }

function skippedFrom(kinds: readonly Listing[], branches: readonly Branch[], page: Page): Skipped | undefined {
  const [first, ...others] = kinds
  if (!first || others.some(({ columns }) => columns !== first.columns)) return undefined
  if (kinds.some((kind) => kind.join || !byKeys(kind, page, [], false))) return undefined
  const scopes = branches.map((branch) => ('uids' in branch ? '' : scopeKeyOf(branch)))
  return scopes.length === 0 || scopes.includes('') ? undefined : { kinds: [first, ...others], scopes }
}

/** Returns a page after skipped nodes. Reads only keys of skipped nodes, from the end of the list if that is nearer. */
async function skippedPage<T>(reader: Reader, { kinds, scopes }: Skipped, page: Page): Promise<T[]> {
  const names = kinds.map(({ kind }) => kind)
  // With a cursor or a range of keys, the number of remaining nodes is unknown, so the list is read from its start.
  const isCounted = !page.after && !kinds.some(({ keys }) => keys)
  const total = isCounted ? await countAt(reader, names, scopes) : Number.POSITIVE_INFINITY
  const left = Math.max(0, total - page.skip)
  const isFromEnd = left < page.skip
  const most = Math.min(left, page.size + 1)
  const passed = isFromEnd ? left - most : page.skip
  const walked = isFromEnd === page.order.desc ? sql`ASC` : sql`DESC`
  const [only, ...more] = kinds.flatMap((kind) => {
    return scopes.map(
      (scope) => sql`
        SELECT k.id, k.value, k.uid FROM list_keys k WHERE ${join(inScope(kind, scope, page), ' AND ')}
         ORDER BY k.value ${walked}, k.uid ${walked}`,
    )
  })
  const keys =
    more.length === 0 ? only! : mergeQueries([only!, ...more], passed + most, sql`value ${walked}, uid ${walked}`)
  const rows = await reader.all<T>(sql`
    SELECT ${kinds[0].columns}
      FROM (${keys} LIMIT ${most} OFFSET ${passed}) AS found JOIN ${ident(kinds[0].table)} t ON t.id = found.id
     ORDER BY found.value ${walked}, found.uid ${walked}`)
  return isFromEnd ? rows.reverse() : rows
}

/** Conditions for the keys of a list that come after the cursor of the page. */
function inScope({ kind, keys }: Listing, scope: string, page: Page): Sql[] {
  const { column, desc } = page.order
  // The cursor is inside the range, so one of the two bounds is not needed.
  const from = page.after && !desc ? undefined : keys?.from
  const before = page.after && desc ? undefined : keys?.before
  const at = sql`k.list = ${`${kind}.${keys?.name ?? column}`} AND k.place = ${scope}`
  return [at, ...keyBounds(from, before), afterKey(page, sql`k.value`, sql`k.uid`)]
}

function keyBounds(from: string | undefined, before: string | undefined): Sql[] {
  const low = from === undefined ? [] : [sql`k.value >= ${from}`]
  return before === undefined ? low : [...low, sql`k.value < ${before}`]
}

/** Query on the table of the nodes, for the order of the uid and for filters that match few rows. */
function tableQuery(listing: Listing, branch: Branch, page: Page, filters: readonly Sql[]): Sql {
  const column = ident(`t.${page.order.column}`)
  const dir = direction(page)
  const order = page.order.column === 'uid' ? sql`t.uid ${dir}` : sql`${column} ${dir}, t.uid ${dir}`
  return sql`
    SELECT ${listing.columns}
      FROM ${ident(listing.table)} t ${listing.join ?? sql``}
     WHERE ${join([...bounds(branch, page), ...ofKind(listing), ...filters], ' AND ')}
     ORDER BY ${order}`
}

function ofKind({ only }: Pick<Listing, 'only'>): Sql[] {
  return only ? [only] : []
}

/**
 * Conditions for the rows of a branch. In the order of the uid, branch and cursor become one range, since SQLite searches only by
 * the first of two lower bounds.
 */
export function bounds(branch: Branch, page: Page): Sql[] {
  if (!('below' in branch) || page.order.column !== 'uid' || !page.after) {
    return [within(branch), after(page, ident(`t.${page.order.column}`), sql`t.uid`)]
  }
  const { uid } = page.after
  const [first, last] = branch.below === top ? ['', undefined] : [`${branch.below}/`, `${branch.below}0`]
  const low = !page.order.desc && uid > first ? uid : first
  const high = page.order.desc && (last === undefined || uid < last) ? uid : last
  return [sql`t.uid > ${low}`, ...(high === undefined ? [] : [sql`t.uid < ${high}`])]
}

/** Sort direction of the page. */
export function direction(page: Pick<Page, 'order'>): Sql {
  return page.order.desc ? sql`DESC` : sql`ASC`
}

export function after(page: Page, key: Sql, uid: Sql): Sql {
  if (!page.after || page.order.column !== 'uid') return afterKey(page, key, uid)
  return sql`${uid} ${page.order.desc ? sql`<` : sql`>`} ${page.after.uid}`
}

/** Condition for rows after the cursor. If two rows have the same `key`, their order is that of `uid`. */
export function afterKey(page: Page, key: Sql, uid: Sql): Sql {
  if (!page.after) return sql`1 = 1`
  return sql`(${key}, ${uid}) ${page.order.desc ? sql`<` : sql`>`} (${page.after.value}, ${page.after.uid})`
}

export function scopeKeyOf(branch: { below: string } | { childrenOf: string }): string {
  return 'below' in branch ? branch.below : childrenScopeKey(branch.childrenOf)
}

/** Condition for the nodes of a branch. Descendants are a range of uids, since `0` is the character after `/`. */
function within(branch: Branch): Sql {
  if ('uids' in branch) return sql`t.uid IN (${list(branch.uids)})`
  if ('childrenOf' in branch) return sql`t.parent_uid = ${branch.childrenOf}`
  return branch.below === top ? sql`1 = 1` : sql`t.uid > ${`${branch.below}/`} AND t.uid < ${`${branch.below}0`}`
}

type Counted = Pick<Listing, 'kind' | 'table' | 'only' | 'unkeyed'>

/** Total number of nodes in the branches: from the counters, or from index entries if there is a filter. */
export async function countNodes(
  reader: Reader,
  listings: Counted | readonly Counted[],
  branches: readonly Branch[],
  filters: readonly Sql[] = [],
): Promise<number> {
  const kinds = [listings].flat()
  const isSearched = filters.length > 0 || kinds.some(({ unkeyed }) => unkeyed)
  const searched = isSearched ? branches : branches.filter((branch) => 'uids' in branch)
  const scopes = isSearched ? [] : branches.flatMap((branch) => ('uids' in branch ? [] : [scopeKeyOf(branch)]))
  const names = kinds.map(({ kind }) => kind)
  let total = scopes.length > 0 ? await countAt(reader, names, scopes) : 0
  for (const kind of kinds) {
    for (const branch of searched) {
      const where = join([within(branch), ...ofKind(kind), ...filters], ' AND ')
      const row = await reader.get<{ total: number }>(sql`
        SELECT count(*) AS total FROM ${ident(kind.table)} t WHERE ${where}`)
      total += row?.total ?? 0
    }
  }
  return total
}

/** Like `countNodes`, for filters that may match many nodes. Returns `undefined` if there are more than `most`. */
export async function countUpTo(
  reader: Reader,
  listing: Pick<Listing, 'kind' | 'table' | 'keys'>,
  branches: readonly Branch[],
  filters: readonly Sql[],
  most: number,
): Promise<number | undefined> {
  let total = 0
  for (const branch of branches) {
    const { keys } = listing
    const byKeys = keys && !('uids' in branch)
    const where = byKeys
      ? [
          sql`k.list = ${`${listing.kind}.${keys.name}`}`,
          sql`k.place = ${scopeKeyOf(branch)}`,
          ...keyBounds(keys.from, keys.before),
        ]
      : [within(branch)]
    const rows = byKeys
      ? sql`list_keys k JOIN ${ident(listing.table)} t ON t.id = k.id`
      : sql`${ident(listing.table)} t`
    const row = await reader.get<{ total: number }>(sql`
      SELECT count(*) AS total
        FROM (SELECT 1 AS one FROM ${rows} WHERE ${join([...where, ...filters], ' AND ')} LIMIT ${most + 1 - total}) AS matches`)
    total += row?.total ?? 0
    if (total > most) return undefined
  }
  return total
}

/** Lists and counts nodes. `list` returns a page and one extra row. `where` returns the conditions of a filter. */
export function nodeList<Row, T, F>(listing: Listing, fromRow: (row: Row) => T, where: (filter: F) => Sql[]) {
  return {
    async list(reader: Reader, branches: readonly Branch[], page: Page, filter: F): Promise<T[]> {
      return (await listPage<Row>(reader, listing, branches, page, where(filter))).map(fromRow)
    },
    async count(reader: Reader, branches: readonly Branch[], filter: F): Promise<number> {
      return countNodes(reader, listing, branches, where(filter))
    },
  }
}

/** Total number of nodes in these lists. */
export async function countAt(
  reader: Reader,
  kinds: string | readonly string[],
  scopes: readonly string[],
): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT CAST(coalesce(sum(total), 0) AS BIGINT) AS total
      FROM list_counts WHERE kind IN (${list([kinds].flat())}) AND place IN (${list(scopes)})`)
  return row?.total ?? 0
}
