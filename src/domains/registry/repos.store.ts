import { addToLists, countNodes, type Keys, type Listing, listPage, moveInLists, removeFromLists } from '#db/listing.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Branch, Page } from '#lib/paging.ts'
import { parentOf } from '#lib/uid.ts'
import type { Repo } from './repos.model.ts'

type Row = Omit<Repo, 'bundles' | 'aliases' | 'activeTags'> & {
  bundles: string
  aliases: string
  activeTags: string
}

const columns = sql`
  t.uid, t.name, t.description, t.catalog_tier AS "catalogTier", t.bundles, t.aliases, t.active_tags AS "activeTags",
  t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'repos'
export const repoListing: Listing = { kind, table: 'repos', columns }

function fromRow(row: Row): Repo {
  return {
    uid: row.uid,
    name: row.name,
    description: row.description,
    catalogTier: row.catalogTier,
    bundles: readList(row.bundles),
    aliases: readList(row.aliases),
    activeTags: readList(row.activeTags),
    createTime: row.createTime,
    updateTime: row.updateTime,
  }
}

function readList(text: string): string[] {
  return text === '[]' ? [] : (JSON.parse(text) as string[])
}

const keysOf = (repo: Repo): Keys => ({ name: repo.name, create_time: repo.createTime, update_time: repo.updateTime })

export async function findRepo(reader: Reader, uid: string): Promise<Repo | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM repos t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** An empty name is a filter too, unlike no name. */
export type RepoFilter = { name: string | undefined }

/** One row more than the page has room for. */
export async function listRepos(reader: Reader, branches: readonly Branch[], page: Page, filter: RepoFilter) {
  const rows = await listPage<Row>(reader, repoListing, branches, page, conditions(filter))
  return rows.map((row) => ({ ...fromRow(row), sortKey: row.sortKey }))
}

export function countRepos(reader: Reader, branches: readonly Branch[], filter: RepoFilter): Promise<number> {
  return countNodes(reader, repoListing, branches, conditions(filter))
}

function conditions(filter: RepoFilter): Sql[] {
  return filter.name === undefined ? [] : [sql`t.name = ${filter.name}`]
}

/** `false` when a repo of the same group has the name. */
export async function insertRepo(tx: Tx, repo: Repo): Promise<boolean> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO repos (uid, parent_uid, name, description, catalog_tier, bundles, aliases, active_tags, create_time, update_time)
    VALUES (${repo.uid}, ${parentOf(repo.uid)}, ${repo.name}, ${repo.description}, ${repo.catalogTier},
            ${JSON.stringify(repo.bundles)}, ${JSON.stringify(repo.aliases)}, ${JSON.stringify(repo.activeTags)},
            ${repo.createTime}, ${repo.updateTime})
        ON CONFLICT (parent_uid, name) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, repo.uid, row.id, keysOf(repo))
  return true
}

export async function patchRepo(tx: Tx, before: Repo, after: Repo): Promise<void> {
  await tx.run(sql`
    UPDATE repos
       SET description = ${after.description}, catalog_tier = ${after.catalogTier},
           bundles = ${JSON.stringify(after.bundles)}, aliases = ${JSON.stringify(after.aliases)},
           active_tags = ${JSON.stringify(after.activeTags)}, update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
}

export async function deleteRepo(tx: Tx, repo: Repo): Promise<void> {
  await tx.run(sql`DELETE FROM repo_readmes WHERE repo_uid = ${repo.uid}`)
  await tx.run(sql`DELETE FROM repos WHERE uid = ${repo.uid}`)
  await removeFromLists(tx, kind, repo.uid, keysOf(repo))
}

/** Empty when none was written. */
export async function readmeOf(reader: Reader, repo: string): Promise<string> {
  const row = await reader.get<{ content: string }>(sql`SELECT content FROM repo_readmes WHERE repo_uid = ${repo}`)
  return row?.content ?? ''
}

export async function setReadme(tx: Tx, repo: string, content: string, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO repo_readmes (repo_uid, content, update_time) VALUES (${repo}, ${content}, ${now})
        ON CONFLICT (repo_uid) DO UPDATE SET content = excluded.content, update_time = excluded.update_time`)
}
