import { exists } from '#db/bulk.ts'
import { countAt, listPage } from '#db/listing.ts'
import { namedNodes, nodeTable } from '#db/node-table.ts'
import { ident, join, type Reader, sql, type Tx } from '#db/sql.ts'
import type { Branch, Page } from '#lib/lists/paging.ts'
import type { Resource } from '#lib/resource.ts'
import { parentOf } from '#lib/uid.ts'
import type { Group } from './groups.model.ts'

type Row = Omit<Group, 'verified' | 'resourceLimits'> & {
  verified: number
  resourceLimits: string
}

const columns = sql`
  t.uid, t.name, t.description, t.verified, t.kind, t.status, t.resource_limits AS "resourceLimits",
  t.create_time AS "createTime", t.update_time AS "updateTime"`
function fromRow({ verified, resourceLimits, ...row }: Row): Group {
  return { ...row, verified: verified === 1, resourceLimits: JSON.parse(resourceLimits) as Record<string, number> }
}

export type GroupFilter = { name: string }

const groups = nodeTable(
  {
    table: 'groups',
    columns,
    ...namedNodes,
    search: { source: 'groups', terms: ({ name }: Pick<Group, Sorted>) => [name] },
  },
  fromRow,
)

type Sorted = 'uid' | 'name' | 'createTime' | 'updateTime'

export const { list: groupList, find: findGroup, byUid: groupsByUid, delete: deleteGroup } = groups

const valuesOf = ({ name, description, verified, kind, updateTime }: Group) => {
  return { name, description, verified: verified ? 1 : 0, kind, update_time: updateTime }
}

/** Inserts a group. Returns false if another group with the same parent has the name. */
export function insertGroup(tx: Tx, group: Group): Promise<boolean> {
  const { uid, status, resourceLimits, createTime } = group
  const once = { tail: tailOf(uid), status, resource_limits: JSON.stringify(resourceLimits), create_time: createTime }
  return groups.insert(tx, group, { ...valuesOf(group), ...once })
}

/** Updates a group. Returns false if another group with the same parent has the new name. */
export function patchGroup(tx: Tx, before: Group, after: Group): Promise<boolean> {
  return groups.update(tx, before, after, valuesOf(after))
}

/** Uid of the group with this name and parent. The parent of organizations is `/`. */
export async function findGroupUid(reader: Reader, parent: string, name: string): Promise<string | undefined> {
  const row = await reader.get<{ uid: string }>(sql`
    SELECT uid FROM groups WHERE parent_uid = ${parent} AND name = ${name}`)
  return row?.uid
}

/** Names of groups with this parent that begin with a text, in order; at most `most`. */
export async function namesBeginning(
  reader: Reader,
  parent: string,
  beginning: string,
  most: number,
): Promise<string[]> {
  const rows = await reader.all<{ name: string }>(sql`
    SELECT name FROM groups
     WHERE parent_uid = ${parent} AND name >= ${beginning} AND name < ${`${beginning}~`} ORDER BY name LIMIT ${most}`)
  return rows.map(({ name }) => name)
}

/** Limits that were set for this organization, by quota. */
export async function findResourceLimits(reader: Reader, uid: string): Promise<Record<string, number>> {
  const row = await reader.get<{ limits: string }>(sql`SELECT resource_limits AS limits FROM groups WHERE uid = ${uid}`)
  return row ? (JSON.parse(row.limits) as Record<string, number>) : {}
}

export async function setResourceLimits(tx: Tx, before: Group, after: Group): Promise<void> {
  const { resourceLimits, updateTime } = after
  await groups.update(tx, before, after, { resource_limits: JSON.stringify(resourceLimits), update_time: updateTime })
}

export async function groupExists(reader: Reader, uid: string): Promise<boolean> {
  return exists(reader, sql`FROM groups WHERE uid = ${uid}`)
}

/**
 * Child group. `key` is its name with a slash at the end, as in a path. `filled` is 1 if the group or a group below it has
 * resources of the requested kind.
 */
export type ChildGroup = { uid: string; name: string; key: string; filled: number }

/** Child groups in the order of the paths below them. Begins at a key, and returns at most `most`. */
export async function childGroupsByPath(
  reader: Reader,
  parent: string,
  { from, including, named, of, most }: ChildrenByPath,
): Promise<ChildGroup[]> {
  const list = `${of}.name`
  return reader.all<ChildGroup>(sql`
    SELECT g.uid, g.name, g.name || '/' AS key,
           CASE WHEN EXISTS (SELECT 1 FROM list_keys k WHERE k.list = ${list} AND k.place = g.uid)
                THEN 1 ELSE 0 END AS filled
      FROM groups g
     WHERE g.parent_uid = ${parent} AND g.name || '/' ${including ? sql`>=` : sql`>`} ${from}
       ${named === undefined ? sql`` : sql`AND g.name = ${named}`}
     ORDER BY g.name || '/' LIMIT ${most}`)
}

/** Selects child groups. `of` is the kind of resources, such as `repos`. `named` selects only the group with this name. */
export type ChildrenByPath = { from: string; including: boolean; named?: string | undefined; of: string; most: number }

/** Number of groups below a group, at all levels. */
export async function countGroups(reader: Reader, group: string): Promise<number> {
  return countAt(reader, 'groups', [group])
}

/** Kinds of resources, out of `among`, of which the group or a group below has at least one. */
export async function resourcesBelow(reader: Reader, uid: string, among: readonly Resource[]): Promise<Resource[]> {
  const found: Resource[] = []
  for (const one of among) if ((await isBelow(reader, uid, one)) || (await isInGroup(reader, uid, one))) found.push(one)
  return found
}

async function isBelow(reader: Reader, group: string, { kinds }: Resource): Promise<boolean> {
  return (await countAt(reader, kinds, [group])) > 0
}

/** Uids of resources that must be released before the group can be deleted, at most `most`. */
export async function unreleasedOf(reader: Reader, uid: string, table: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT uid FROM ${ident(table)} WHERE group_uid = ${uid} AND release_time = '' ORDER BY uid LIMIT ${most}`)
  return rows.map((row) => row.uid)
}

/** True if the group has a resource with the same uid as the group. Such a resource is not below the group. */
async function isInGroup(reader: Reader, group: string, { table, uid }: Resource): Promise<boolean> {
  if (uid !== 'group') return false
  return exists(reader, sql`FROM ${ident(table)} WHERE uid = ${group}`)
}

/**
 * Groups in the branches, found by name, by the last segments of the uid, or by the beginning of the uid's last segment; at most
 * `limit`.
 */
export async function findGroups(
  reader: Reader,
  branches: readonly Branch[],
  by: { name: string } | { tail: string } | { start: string },
  limit: number,
): Promise<Group[]> {
  const filter =
    'name' in by
      ? sql`t.name = ${by.name}`
      : 'tail' in by
        ? sql`t.tail = ${tailOf(by.tail)}`
        : sql`t.parent_uid = ${parentOf(by.start)} AND t.uid >= ${by.start} AND t.uid < ${`${by.start}g`}`
  const order = { field: 'uid', column: 'uid', desc: false }
  const page: Page = { order, after: undefined, size: limit, skip: 0, binding: '' }
  const rows = await listPage<Row>(reader, groups.listing, branches, page, [filter])
  return rows.map(fromRow)
}

function tailOf(uid: string): string {
  return uid.slice(uid.lastIndexOf('/') + 1)
}

/** Sets the kind of all folders of an organization, since folders show the kind of their organization. */
export async function setKindBelow(tx: Tx, root: string, orgKind: number): Promise<void> {
  await tx.run(sql`UPDATE groups SET kind = ${orgKind} WHERE uid > ${`${root}/`} AND uid < ${`${root}0`}`)
}

/** True if a resource of any type has this uid. */
export async function nodeExists(reader: Reader, resources: readonly Resource[], uid: string): Promise<boolean> {
  const tables = resources.filter((one) => one.uid === 'node').map(({ table }) => ident(table))
  const found = tables.map((table) => sql`SELECT 1 AS found FROM ${table} WHERE uid = ${uid}`)
  return (await reader.get(sql`${join(found, ' UNION ALL ')} LIMIT 1`)) !== undefined
}
