// Writes the search index from the queue of changed rows. Each row is read again, so that the index gets its present names, also
// after several changes and after a crash.

import { type SearchKind, searchKinds, searchSources } from '#db/search-queue.ts'
import { list, type Sql, sql, type Tx } from '#db/sql.ts'
import { lineage, parentOf, rootOf, top } from '#lib/uid.ts'
import { addSearchParts, everything, groupNumbers, removeSearchParts } from './parts.store.ts'
import { addTagGrams, dropTagGrams } from './tag-grams.store.ts'

export { fillSearch, stepBack } from '#db/search-fill.ts'

type Queued = { id: number; source: number; row: number; organization: string }

/** Updates the index for rows of one table. Returns rows that stay in the queue, since not all of their entries are deleted. */
type Update = (tx: Tx, rows: readonly number[], queued: readonly Queued[]) => Promise<readonly number[]>

/** Most index entries of a deleted repository, or packages of a deleted organization, that one transaction deletes. */
const mostDeleted = 500

/**
 * Updates the index for the first rows of the queue, and deletes these from the queue. Returns their number. Rows of other sources
 * belong to a server of a later release. Call it with the isolation `rowLocks`, in one transaction at a time.
 */
export async function indexQueued(tx: Tx, most: number): Promise<number> {
  const queued = await tx.all<Queued>(sql`
    SELECT id, source, row_id AS row, organization FROM search_queue
     WHERE source IN (${list(Object.values(searchSources))}) ORDER BY id LIMIT ${most}`)
  const done: number[] = []
  for (const [source, all] of Map.groupBy(queued, (one) => one.source)) {
    const left = await updates[source]!(tx, [...new Set(all.map(({ row }) => row))], all)
    done.push(...all.filter(({ row }) => !left.includes(row)).map(({ id }) => id))
  }
  if (done.length > 0) await tx.run(sql`DELETE FROM search_queue WHERE id IN (${list(done)})`)
  return queued.length
}

const updates: Readonly<Record<number, Update>> = {
  [searchSources.groups]: async (tx, rows) => {
    const kinds = [searchKinds.organizations, searchKinds.folders] as const
    const found = await indexNames(tx, { kinds, kindOf: (uid) => kinds[parentOf(uid) === top ? 0 : 1] }, rows, {
      // A group is found in itself too, since a caller with access to a group can list the group itself.
      query: sql`SELECT id, uid, uid AS scope, name, '' AS email FROM groups WHERE id IN (${list(rows)})`,
    })
    return leftOf(rows, found, (row) => forgetPackages(tx, row))
  },
  [searchSources.repos]: async (tx, rows) => {
    const found = await indexNames(tx, only(searchKinds.repos), rows, {
      query: sql`
        SELECT id, uid, parent_uid AS scope, name, '' AS email FROM repos
         WHERE id IN (${list(rows)}) AND ledger_id IS NOT NULL`,
    })
    return leftOf(rows, found, (row) => dropTagGrams(tx, row, mostDeleted))
  },
  [searchSources.identities]: async (tx, rows) => {
    await indexNames(tx, only(searchKinds.identities), rows, {
      query: sql`
        SELECT id, uid, parent_uid AS scope, name, '' AS email FROM identities
         WHERE id IN (${list(rows)}) AND parent_uid <> '/'`,
    })
    // A person is found by the role bindings of the person, since a person belongs to no group.
    await tx.run(sql`
      INSERT INTO search_queue (source, row_id, organization)
      SELECT ${searchSources.bindings}, b.id, ''
        FROM identities i JOIN role_bindings b ON b.identity_uid = i.uid
       WHERE i.id IN (${list(rows)}) AND i.parent_uid = '/'`)
    return []
  },
  [searchSources.bindings]: async (tx, rows) => {
    await indexNames(tx, only(searchKinds.persons), rows, {
      query: sql`
        SELECT b.id, b.uid, b.parent_uid AS scope, i.name, coalesce(i.email, '') AS email
          FROM role_bindings b JOIN identities i ON i.uid = b.identity_uid AND i.parent_uid = '/'
         WHERE b.id IN (${list(rows)}) AND b.accepted = 1`,
    })
    return []
  },
  [searchSources.tags]: async (tx, rows) => {
    const tags = await tx.all<{ repo: number; uid: string; name: string }>(sql`
      SELECT t.repo_id AS repo, r.uid, t.name
        FROM tags t JOIN repos r ON r.id = t.repo_id AND r.ledger_id IS NOT NULL
       WHERE t.id IN (${list(rows)})`)
    const organizations = await groupNumbers(tx, [...new Set(tags.map(({ uid }) => rootOf(uid)))])
    await addTagGrams(
      tx,
      tags.map(({ repo, uid, name }) => ({ repo, name, organization: organizations.get(rootOf(uid))! })),
    )
    return []
  },
  [searchSources.lists]: async (tx, _, queued) => {
    for (const { row, organization } of queued) {
      await tx.run(sql`
        INSERT INTO search_lists (list_id, org_id, after_id, done)
        SELECT l.id, g.id, 0, 0 FROM component_lists l, groups g WHERE l.id = ${row} AND g.uid = ${organization}
            ON CONFLICT DO NOTHING`)
    }
    return []
  },
}

/** Kinds that rows of one table have in the index. `kindOf` returns the kind of a row with this uid. */
type Kinds = { kinds: readonly SearchKind[]; kindOf(uid: string): SearchKind }
/** Row that is found in the group `scope`, and in all groups above it. */
type Named = { id: number; uid: string; scope: string; name: string; email: string }

const only = (kind: SearchKind): Kinds => ({ kinds: [kind], kindOf: () => kind })

/** Replaces the names of rows in the index. Returns the rows that exist. The names of others are removed. */
async function indexNames(
  tx: Tx,
  { kinds, kindOf }: Kinds,
  rows: readonly number[],
  { query }: { query: Sql },
): Promise<ReadonlySet<number>> {
  const found = await tx.all<Named>(query)
  await removeSearchParts(tx, kinds, rows)
  const groups = new Map(found.map(({ scope }) => [scope, scope === top ? [] : lineage(scope)]))
  const numbers = await groupNumbers(tx, [...new Set([...groups.values()].flat())])
  const scopesOf = (scope: string) => groups.get(scope)!.flatMap((uid) => numbers.get(uid) ?? [])
  await addSearchParts(
    tx,
    found.map(({ id, uid, scope, name, email }) => {
      return { kind: kindOf(uid), id, names: [name, email], scopes: [everything, ...scopesOf(scope)] }
    }),
  )
  return new Set(found.map(({ id }) => id))
}

/** Deletes other entries of rows that no longer exist. Returns the rows that may have more of them. */
async function leftOf(
  rows: readonly number[],
  found: ReadonlySet<number>,
  remove: (row: number) => Promise<number>,
): Promise<number[]> {
  const left: number[] = []
  for (const row of rows) if (!found.has(row) && (await remove(row)) === mostDeleted) left.push(row)
  return left
}

/** Deletes some package names of a deleted organization. Returns their number. The last ones go with the package lists. */
async function forgetPackages(tx: Tx, organization: number): Promise<number> {
  const packages = await tx.all<{ id: number }>(sql`
    SELECT id FROM search_packages WHERE org_id = ${organization} ORDER BY name LIMIT ${mostDeleted}`)
  const ids = packages.map(({ id }) => id)
  if (ids.length > 0) {
    await removeSearchParts(tx, [searchKinds.packages], ids)
    await tx.run(sql`DELETE FROM search_packages WHERE id IN (${list(ids)})`)
  }
  if (ids.length < mostDeleted) {
    await tx.run(sql`DELETE FROM search_lists WHERE done IN (0, 1) AND org_id = ${organization}`)
  }
  return ids.length
}
