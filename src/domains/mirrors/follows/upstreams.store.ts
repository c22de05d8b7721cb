import { countRows } from '#db/bulk.ts'
import { namedNodes, nodeTable } from '#db/node-table.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { Upstream } from './upstreams.model.ts'

type Row = Omit<Upstream, 'hasPassword' | 'allow' | 'makeRepos'> & {
  hasPassword: number
  allow: string
  makeRepos: number
}

const columns = sql`
  t.uid, t.name, t.url, t.prefix, t.username, CASE WHEN length(t.password) > 0 THEN 1 ELSE 0 END AS "hasPassword",
  t.allow, t.requests_per_second AS "requestsPerSecond", t.make_repos AS "makeRepos", t.create_time AS "createTime", t.update_time AS "updateTime"`
function fromRow(row: Row): Upstream {
  const { hasPassword, makeRepos, allow } = row
  return { ...row, hasPassword: hasPassword === 1, makeRepos: makeRepos === 1, allow: JSON.parse(allow) as string[] }
}

export type UpstreamFilter = { name: string }

const upstreams = nodeTable({ table: 'upstreams', columns, ...namedNodes }, fromRow)

export const { list: upstreamList, find: findUpstream, delete: deleteUpstream } = upstreams

/** The encrypted password of an upstream. Empty if there is none. */
export async function encryptedPasswordOf(reader: Reader, uid: string): Promise<Uint8Array> {
  const row = await reader.get<{ password: Uint8Array }>(sql`SELECT password FROM upstreams WHERE uid = ${uid}`)
  return row?.password ?? new Uint8Array()
}

/** Upstreams of these groups that create repositories for pulls. The nearest group comes first. */
export async function upstreamsThatCreateRepos(reader: Reader, groups: readonly string[]): Promise<Upstream[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM upstreams t
     WHERE t.parent_uid IN (${list(groups)}) AND t.make_repos = 1
     ORDER BY length(t.parent_uid) DESC, t.name`)
  return rows.map(fromRow)
}

export async function countUpstreams(reader: Reader, organization: string): Promise<number> {
  return countRows(reader, sql`FROM upstreams WHERE uid > ${`${organization}/`} AND uid < ${`${organization}0`}`)
}

const valuesOf = (one: Upstream, password: Uint8Array) => ({
  name: one.name,
  url: one.url,
  prefix: one.prefix,
  username: one.username,
  password,
  allow: JSON.stringify(one.allow),
  requests_per_second: one.requestsPerSecond,
  make_repos: one.makeRepos ? 1 : 0,
  update_time: one.updateTime,
})

/** Inserts an upstream. Returns false if another upstream of the group has the name. */
export function insertUpstream(tx: Tx, one: Upstream, password: Uint8Array): Promise<boolean> {
  return upstreams.insert(tx, one, { ...valuesOf(one, password), create_time: one.createTime })
}

/** Updates an upstream. Returns false if another upstream of the group has the new name. */
export function patchUpstream(tx: Tx, before: Upstream, after: Upstream, password: Uint8Array): Promise<boolean> {
  return upstreams.update(tx, before, after, valuesOf(after, password))
}
