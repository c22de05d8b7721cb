import {
  addToScopes,
  countNodes,
  type Keys,
  type Listing,
  listPage,
  moveInLists,
  removeFromLists,
  removeManyFromLists,
  scopeKeysOfLeaf,
} from '#db/listing.ts'
import { countBeyond, type GreaterThan, listBeyond } from '#db/listing-beyond.ts'
import { locking } from '#db/row-locks.ts'
import { queueForSearch } from '#db/search-queue.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import { everyShape, shapeOf, shapes, type Tag, type TagRepo, visibleShapes } from './tags.model.ts'

export type Row = Omit<Tag, 'deprecated' | 'inactive' | 'bundles'> & {
  deprecated: number
  inactive: number
  bundles: string
}

const columns = sql`
  t.uid, t.name, t.digest, t.deprecated, t.inactive, t.bundles,
  t.create_time AS "createTime", t.update_time AS "updateTime", t.assign_time AS "assignTime"`

// Each shape of names has its own counter and list, so that hidden tags cost nothing and are not counted.
const kindOf = (shape: number): string => `tags.${shape}`
const listingOf = (shape: number): Listing => ({
  kind: kindOf(shape),
  table: 'tags',
  columns,
  only: sql`t.shape = ${shape}`,
})
const keyColumns = ['name', 'digest', 'create_time', 'update_time']
const keysOf = (tag: Tag): Keys => ({
  name: tag.name,
  digest: tag.digest,
  create_time: tag.createTime,
  update_time: tag.updateTime,
})

export { columns as tagColumns }

export function fromRow(row: Row): Tag {
  const bundles = JSON.parse(row.bundles) as string[]
  return { ...row, deprecated: row.deprecated === 1, inactive: row.inactive === 1, bundles }
}

export async function findTag(reader: Reader, uid: string): Promise<Tag | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${columns} FROM tags t
     WHERE t.uid = ${uid} AND NOT EXISTS (SELECT 1 FROM repo_removals d WHERE d.id = t.repo_id)`)
  return row && fromRow(row)
}

export async function findTagNamed(reader: Reader, repo: number, name: string): Promise<Tag | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM tags t WHERE t.repo_id = ${repo} AND t.name = ${name}`)
  return row && fromRow(row)
}

/** Tag of this name, with its row locked until the transaction ends. */
export async function lockTagNamed(tx: Tx, repo: number, name: string): Promise<Tag | undefined> {
  const row = await tx.get<Row>(sql`
    SELECT ${columns} FROM tags t WHERE t.repo_id = ${repo} AND t.name = ${name} ${locking(tx, 'alone')}`)
  return row && fromRow(row)
}

/** Existing tags of these names, in no particular order. */
export async function tagsNamed(reader: Reader, repo: number, names: readonly string[]): Promise<Tag[]> {
  if (names.length === 0) return []
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM tags t WHERE t.repo_id = ${repo} AND t.name IN (${list(names)})`)
  return rows.map(fromRow)
}

/** Digest and assignment time for a pull. Returns undefined if the tag points to nothing. */
export async function digestOf(reader: Reader, repo: number, name: string) {
  return reader.get<{ digest: string; since: string }>(sql`
    SELECT digest, assign_time AS since FROM tags WHERE repo_id = ${repo} AND name = ${name} AND digest <> ''`)
}

/** Names of tags after `last` that can be pulled, in byte order. If `among` is given, only names that are in it. */
export async function tagNames(
  reader: Reader,
  repo: number,
  last: string,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  const only = among ? sql`AND name IN (${list(among)})` : sql``
  const withoutDigest = sql`SELECT name FROM tags WHERE repo_id = ${repo} AND digest = ''`
  const rows = await reader.all<{ name: string }>(sql`
    SELECT name FROM tags
     WHERE repo_id = ${repo} AND name > ${last} AND name NOT IN (${withoutDigest}) ${only}
     ORDER BY name LIMIT ${limit}`)
  return rows.map((row) => row.name)
}

/** `asked` has the shapes of names that are not hidden. */
export type TagFilter = { name: string; digest: string; updatedSince: string; asked: number }

/** Part of a list of tags: everything below a group or a repository, or certain tags. */
export type TagBranch = { below: string } | { uids: readonly string[] }

/** A page of tags and one row more. */
export async function listTags(reader: Reader, branches: readonly TagBranch[], page: Page, filter: TagFilter) {
  const { listings, conditions, scopes, beyond } = planOf(branches, filter)
  // Tags of repositories that are being removed are not listed. The table of removals is usually empty, so this check is fast.
  const isRemoving = (await reader.get(sql`SELECT 1 AS found FROM repo_removals LIMIT 1`)) !== undefined
  if (isRemoving) {
    const since = beyond ? [sql`t.update_time > ${beyond.value}`] : []
    const rows = await listPage<Row>(
      reader,
      listings.map(withoutRemoved),
      branches,
      page,
      [...conditions, ...since],
      true,
    )
    return rows.map(fromRow)
  }
  const rows = beyond
    ? listBeyond<Row>(reader, listings, scopes, page, beyond)
    : listPage<Row>(reader, listings, branches, page, conditions)
  return (await rows).map(fromRow)
}

function withoutRemoved(listing: Listing): Listing {
  return { ...listing, join: sql`JOIN repos r ON r.id = t.repo_id AND r.ledger_id IS NOT NULL` }
}

export function countTags(reader: Reader, branches: readonly TagBranch[], filter: TagFilter): Promise<number> {
  const { listings, conditions, scopes, beyond } = planOf(branches, filter)
  return beyond ? countBeyond(reader, listings, scopes, beyond) : countNodes(reader, listings, branches, conditions)
}

type Plan = { listings: Listing[]; conditions: Sql[]; scopes: string[]; beyond?: GreaterThan }

function planOf(branches: readonly TagBranch[], { name, digest, updatedSince, asked }: TagFilter): Plan {
  const shapes = visibleShapes(asked)
  const scopes = branches.flatMap((branch) => ('below' in branch ? [branch.below] : []))
  const conditions: Sql[] = []
  if (name !== '') conditions.push(sql`t.name = ${name}`)
  if (digest !== '') conditions.push(sql`t.digest = ${digest}`)
  if (conditions.length === 0 && scopes.length === branches.length) {
    const listings = shapes.map(listingOf)
    const beyond = updatedSince === '' ? {} : { beyond: { column: 'update_time', value: updatedSince } }
    return { listings, conditions, scopes, ...beyond }
  }
  // These conditions select few tags, so one search is enough instead of one for each shape. The plus sign keeps SQLite from
  // searching by shape.
  if (updatedSince !== '') conditions.push(sql`t.update_time > ${updatedSince}`)
  return { listings: [{ ...listingOf(0), only: sql`+t.shape IN (${list(shapes)})` }], conditions, scopes }
}

/** Longest other name for the digest of this tag, among names of these shapes. Empty if there is none. */
export async function longestNameWith(
  reader: Reader,
  repo: Pick<TagRepo, 'id' | 'uid'>,
  { uid, digest }: Tag,
  { asked, without }: { asked: number; without: readonly string[] },
): Promise<string> {
  if (digest === '') return ''
  const row = await reader.get<{ name: string }>(sql`
    SELECT t.name FROM tags t
     WHERE ${ofRepo(repo, digest)} AND t.uid <> ${uid} AND t.name NOT IN (${list(without)})
       AND +t.shape IN (${list(visibleShapes(asked))})
     ORDER BY length(t.name) DESC, t.name DESC LIMIT 1`)
  return row?.name ?? ''
}

/** Names of some tags that point to the digest. */
export async function namesWith(
  reader: Reader,
  repo: Pick<TagRepo, 'id' | 'uid'>,
  digest: string,
  most: number,
): Promise<string[]> {
  const rows = await reader.all<{ name: string }>(sql`
    SELECT t.name FROM tags t WHERE ${ofRepo(repo, digest)} LIMIT ${most}`)
  return rows.map(({ name }) => name)
}

export async function insertTag(tx: Tx, repo: TagRepo, tag: Tag): Promise<void> {
  const shape = shapeOf(tag.name)
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO tags
           (uid, repo_id, name, digest, shape, deprecated, bundles, create_time, update_time, assign_time)
    VALUES (${tag.uid}, ${repo.id}, ${tag.name}, ${tag.digest}, ${shape}, ${Number(tag.deprecated)},
            ${JSON.stringify(tag.bundles)}, ${tag.createTime}, ${tag.updateTime}, ${tag.assignTime})
    RETURNING id`)
  const entry = { uid: tag.uid, id: row!.id, keys: keysOf(tag), scopes: scopeKeysOfLeaf(tag.uid) }
  await addToScopes(tx, kindOf(shape), [entry])
  // The search does not find tags of referrers.
  if ((shape & shapes.referrers) === 0) await queueForSearch(tx, 'tags', row!.id)
}

export async function patchTag(tx: Tx, before: Tag, after: Tag): Promise<void> {
  await tx.run(sql`
    UPDATE tags
       SET digest = ${after.digest}, deprecated = ${Number(after.deprecated)}, bundles = ${JSON.stringify(after.bundles)},
           inactive = ${Number(after.inactive)}, update_time = ${after.updateTime}, assign_time = ${after.assignTime}
     WHERE uid = ${before.uid}`)
  const { name, uid } = before
  await moveInLists(tx, kindOf(shapeOf(name)), uid, keysOf(before), keysOf(after), scopeKeysOfLeaf(uid))
}

/**
 * Sets `inactive` of a tag. Does nothing if the tag was assigned to another digest meanwhile. Returns the number of changed tags.
 */
export async function setInactive(
  tx: Tx,
  { uid, digest }: Pick<Tag, 'uid' | 'digest'>,
  inactive: boolean,
): Promise<number> {
  return tx.run(sql`
    UPDATE tags SET inactive = ${Number(inactive)}
     WHERE uid = ${uid} AND digest = ${digest} AND inactive <> ${Number(inactive)}`)
}

export async function deleteTag(tx: Tx, tag: Tag): Promise<void> {
  await tx.run(sql`DELETE FROM tags WHERE uid = ${tag.uid}`)
  await removeFromLists(tx, kindOf(shapeOf(tag.name)), tag.uid, keysOf(tag), scopeKeysOfLeaf(tag.uid))
}

/** Condition for all tags of a repository, or for its tags that point to one digest. */
export function ofRepo(repo: Pick<TagRepo, 'id' | 'uid'>, digest?: string): Sql {
  if (digest === undefined) return sql`t.repo_id = ${repo.id}`
  return sql`t.digest = ${digest} AND t.uid > ${`${repo.uid}/`} AND t.uid < ${`${repo.uid}0`}`
}

export function ofUids(uids: readonly string[]): Sql {
  return sql`t.uid IN (${list(uids)})`
}

/** Time of the last change of a tag of a repository. Empty if the repository has no tags. */
export async function lastUpdateIn(reader: Reader, repo: string): Promise<string> {
  let last = ''
  for (const shape of visibleShapes(everyShape)) {
    const row = await reader.get<{ value: string }>(sql`
      SELECT value FROM list_keys WHERE list = ${`${kindOf(shape)}.update_time`} AND place = ${repo}
       ORDER BY value DESC LIMIT 1`)
    if (row && row.value > last) last = row.value
  }
  return last
}

export function ofUid(uid: string): Sql {
  return sql`t.uid = ${uid}`
}

export async function tagsWhere(reader: Reader, where: Sql): Promise<Tag[]> {
  return (await reader.all<Row>(sql`SELECT ${columns} FROM tags t WHERE ${where} ORDER BY t.uid`)).map(fromRow)
}

/** Uids of tags after `after`, in order and at most `limit`. */
export async function uidsWhere(reader: Reader, where: Sql, after: string, limit: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT t.uid FROM tags t WHERE ${where} AND t.uid > ${after} ORDER BY t.uid LIMIT ${limit}`)
  return rows.map(({ uid }) => uid)
}

/** Uids of some tags of a repository. */
export async function someUids(reader: Reader, repo: number, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`SELECT uid FROM tags WHERE repo_id = ${repo} LIMIT ${most}`)
  return rows.map(({ uid }) => uid)
}

/** Time of the last change of the tags that `where` selects. Empty if there are no such tags. */
export async function lastUpdateOf(reader: Reader, where: Sql): Promise<string> {
  const row = await reader.get<{ time: string | null }>(
    sql`SELECT max(t.update_time) AS time FROM tags t WHERE ${where}`,
  )
  return row?.time ?? ''
}

/** For at most this many rows, PostgreSQL locks only these rows, so other writers do not wait. */
const few = 100

/**
 * Deletes the tags of a repository that `where` selects, with a few statements for any number of tags. Returns the number of
 * deleted tags.
 */
export async function deleteTagsWhere(tx: Tx, repo: TagRepo, where: Sql): Promise<number> {
  const found = await tx.all<{ shape: number; total: number }>(sql`
    SELECT t.shape AS shape, count(*) AS total FROM tags t WHERE ${where} GROUP BY t.shape`)
  const sum = found.reduce((all, { total }) => all + total, 0)
  if (sum <= few) {
    for (const tag of await tagsWhere(tx, where)) await deleteTag(tx, tag)
    return sum
  }
  for (const { shape, total } of found) {
    const ofShape = found.length === 1 ? where : sql`${where} AND t.shape = ${shape}`
    const many = { kind: kindOf(shape), scopes: scopeKeysOfLeaf(`${repo.uid}/`), table: 'tags', where: ofShape, total }
    await removeManyFromLists(tx, many, keyColumns)
  }
  await tx.run(sql`DELETE FROM tags WHERE id IN (SELECT t.id FROM tags t WHERE ${where})`)
  return sum
}
