import { addToLists, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from '#db/listing.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { Upstream } from './upstreams.model.ts'

type Row = Omit<Upstream, 'hasPassword' | 'allow' | 'makeRepos'> & {
  hasPassword: number
  allow: string
  makeRepos: number
}

const columns = sql`
  t.uid, t.name, t.url, t.prefix, t.username, CASE WHEN length(t.password) > 0 THEN 1 ELSE 0 END AS "hasPassword",
  t.allow, t.requests_per_second AS "requestsPerSecond", t.make_repos AS "makeRepos", t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'upstreams'
const listing: Listing = { kind, table: 'upstreams', columns }

function fromRow(row: Row): Upstream {
  const { hasPassword, makeRepos, allow } = row
  return { ...row, hasPassword: hasPassword === 1, makeRepos: makeRepos === 1, allow: JSON.parse(allow) as string[] }
}

const keysOf = ({ name, createTime, updateTime }: Upstream): Keys => ({
  name,
  create_time: createTime,
  update_time: updateTime,
})

export async function findUpstream(reader: Reader, uid: string): Promise<Upstream | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM upstreams t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** Sealed; empty when there is none. */
export async function sealedPasswordOf(reader: Reader, uid: string): Promise<Uint8Array> {
  const row = await reader.get<{ password: Uint8Array }>(sql`SELECT password FROM upstreams WHERE uid = ${uid}`)
  return row?.password ?? new Uint8Array()
}

/** Those of these groups that make repos, the nearest group first. */
export async function upstreamsMaking(reader: Reader, groups: readonly string[]): Promise<Upstream[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM upstreams t
     WHERE t.parent_uid IN (${list(groups)}) AND t.make_repos = 1
     ORDER BY length(t.parent_uid) DESC, t.name`)
  return rows.map(fromRow)
}

export type UpstreamFilter = { name: string }

export const upstreamList = nodeList(listing, fromRow, conditions)

function conditions({ name }: UpstreamFilter): Sql[] {
  return name === '' ? [] : [sql`t.name = ${name}`]
}

export async function countUpstreams(reader: Reader, organization: string): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM upstreams WHERE uid > ${`${organization}/`} AND uid < ${`${organization}0`}`)
  return row!.total
}

/** `false` when another upstream of the group has the name. */
export async function insertUpstream(tx: Tx, one: Upstream, password: Uint8Array): Promise<boolean> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO upstreams
           (uid, parent_uid, name, url, prefix, username, password, allow, requests_per_second, make_repos, create_time,
            update_time)
    VALUES (${one.uid}, ${parentOf(one.uid)}, ${one.name}, ${one.url}, ${one.prefix}, ${one.username}, ${password},
            ${JSON.stringify(one.allow)}, ${one.requestsPerSecond}, ${one.makeRepos ? 1 : 0}, ${one.createTime},
            ${one.updateTime})
        ON CONFLICT (parent_uid, name) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, one.uid, row.id, keysOf(one))
  return true
}

/** `false` when another upstream of the group has the new name. */
export async function patchUpstream(tx: Tx, before: Upstream, after: Upstream, password: Uint8Array): Promise<boolean> {
  const taken = await tx.get(sql`
    SELECT 1 AS found FROM upstreams
     WHERE parent_uid = ${parentOf(after.uid)} AND name = ${after.name} AND uid <> ${after.uid}`)
  if (taken) return false
  await tx.run(sql`
    UPDATE upstreams
       SET name = ${after.name}, url = ${after.url}, prefix = ${after.prefix}, username = ${after.username},
           password = ${password}, allow = ${JSON.stringify(after.allow)},
           requests_per_second = ${after.requestsPerSecond}, make_repos = ${after.makeRepos ? 1 : 0}, update_time = ${after.updateTime}
     WHERE uid = ${after.uid}`)
  await moveInLists(tx, kind, after.uid, keysOf(before), keysOf(after))
  return true
}

export async function deleteUpstream(tx: Tx, one: Upstream): Promise<void> {
  await tx.run(sql`DELETE FROM upstreams WHERE uid = ${one.uid}`)
  await removeFromLists(tx, kind, one.uid, keysOf(one))
}
