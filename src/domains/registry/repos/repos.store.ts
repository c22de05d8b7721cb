import { allOf } from '#db/bulk.ts'
import { addToLists, countAt, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from '#db/listing.ts'
import { servedUrl } from '#db/nodes.ts'
import { enterProcessLock, locking, type RowLock } from '#db/row-locks.ts'
import { queueForSearch } from '#db/search-queue.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { FollowMode } from '../repo-ref.model.ts'
import { openLedger } from './ledgers.store.ts'
import type { Repo } from './repos.model.ts'
import type { StoredSync, SyncConfig } from './sync-config.model.ts'

/** Catalog fields of a repository. If a repository has none, an empty text is stored. */
type Catalogue = Pick<Repo, 'catalogTier' | 'bundles' | 'aliases' | 'activeTags'>
type Row = Omit<Repo, keyof Catalogue | 'syncConfig'> & { catalogue: string; syncConfig: string; settings: number }

// Settings of the organization, as bits.
const settings = sql`
  CASE WHEN t.sync_config = '' THEN 0 ELSE coalesce(
    (SELECT s.unique_tags + 2 * s.eol_grace_period FROM registry_settings s WHERE s.org_uid = substr(t.uid, 1, 40)), 0) END`
const columns = sql`
  t.uid, t.name, t.description, t.catalogue, t.sync_config AS "syncConfig", ${settings} AS settings,
  t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'repos'
// Repositories that are being removed have no `ledger_id`.
const listing: Listing = { kind, table: 'repos', columns, only: sql`t.ledger_id IS NOT NULL` }

function fromRow(row: Row): Repo {
  const catalogue = row.catalogue === '' ? undefined : (JSON.parse(row.catalogue) as Catalogue)
  return {
    uid: row.uid,
    name: row.name,
    description: row.description,
    catalogTier: catalogue?.catalogTier ?? 0,
    bundles: catalogue?.bundles ?? [],
    aliases: catalogue?.aliases ?? [],
    activeTags: catalogue?.activeTags ?? [],
    syncConfig: row.syncConfig === '' ? undefined : syncOf(row),
    createTime: row.createTime,
    updateTime: row.updateTime,
  }
}

function syncOf({ syncConfig, settings }: Row): SyncConfig {
  const stored = JSON.parse(syncConfig) as StoredSync
  return { ...stored, uniqueTags: (settings & 1) !== 0, gracePeriod: (settings & 2) !== 0 }
}

function syncText({ syncConfig }: Repo): string {
  if (!syncConfig) return ''
  const { uniqueTags, gracePeriod, ...stored } = syncConfig
  return JSON.stringify(stored satisfies StoredSync)
}

function catalogueText({ catalogTier, bundles, aliases, activeTags }: Repo): string {
  const says = catalogTier !== 0 || bundles.length + aliases.length + activeTags.length > 0
  return says ? JSON.stringify({ catalogTier, bundles, aliases, activeTags }) : ''
}

const keysOf = (repo: Repo): Keys => ({ name: repo.name, create_time: repo.createTime, update_time: repo.updateTime })

export async function findRepo(reader: Reader, uid: string): Promise<Repo | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM repos t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** `ledger` is the number of the tag history of the repository. */
export type RepoRow = { id: number; uid: string; name: string; ledger: number }

/** `follow` is the mode of a mirror, and null for other repositories. */
export type FollowingRepoRow = RepoRow & { follow: FollowMode | null }

/** Repository with this name in a group, or with this uid. */
export async function findRepoRow(
  reader: Reader,
  by: { uid: string } | { group: string; name: string },
): Promise<FollowingRepoRow | undefined> {
  const where = 'uid' in by ? sql`uid = ${by.uid}` : sql`parent_uid = ${by.group} AND name = ${by.name}`
  return reader.get<FollowingRepoRow>(sql`
    SELECT id, uid, name, ledger_id AS ledger, (SELECT f.mode FROM follows f WHERE f.repo_uid = repos.uid) AS follow
      FROM repos WHERE ${where}`)
}

/** Repository with this uid, locked as by `lockRepo` in blobs.store.ts. */
export async function lockRepoRow(tx: Tx, uid: string, lock: RowLock): Promise<RepoRow | undefined> {
  await enterProcessLock(tx, uid, lock)
  return tx.get<RepoRow>(sql`
    SELECT id, uid, name, ledger_id AS ledger FROM repos WHERE uid = ${uid} ${locking(tx, lock)}`)
}

/** Names of the repositories in a group after this one. */
export async function repoNamesIn(reader: Reader, group: string, after: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ name: string }>(sql`
    SELECT name FROM repos
     WHERE parent_uid = ${group} AND name > ${after} AND ledger_id IS NOT NULL ORDER BY name LIMIT ${most}`)
  return rows.map(({ name }) => name)
}

/** Names of repositories. Missing repositories are left out. */
export function repoNames(reader: Reader, uids: readonly string[]): Promise<{ uid: string; name: string }[]> {
  return allOf(reader, uids, (some) => sql`SELECT uid, name FROM repos WHERE uid IN (${list(some)})`)
}

/** Some repositories with this name in a scope. */
export async function listReposNamed(reader: Reader, scope: string, name: string, most: number): Promise<RepoRow[]> {
  return reader.all<RepoRow>(sql`
    SELECT r.id, r.uid, r.name, r.ledger_id AS ledger
      FROM list_keys k JOIN repos r ON r.uid = k.uid
     WHERE k.list = 'repos.name' AND k.place = ${scope} AND k.value = ${name} ORDER BY k.uid LIMIT ${most}`)
}

/** Filter of a list of repositories. An empty name is a filter too; undefined is not. */
export type RepoFilter = { name: string | undefined }

export const repoList = nodeList(listing, fromRow, conditions)

/** Number of repositories in the group and below it. */
export async function countRepos(reader: Reader, group: string): Promise<number> {
  return countAt(reader, kind, [group])
}

function conditions(filter: RepoFilter): Sql[] {
  return filter.name === undefined ? [] : [sql`t.name = ${filter.name}`]
}

/** Inserts a repository. Returns false if another one in the group has the name. The transaction must then be rolled back. */
export async function insertRepo(tx: Tx, repo: Repo): Promise<boolean> {
  const { id } = (await tx.get<{ id: number }>(sql`INSERT INTO repo_ids DEFAULT VALUES RETURNING id`))!
  const group = parentOf(repo.uid)
  const ledger = await openLedger(tx, id, group, repo.name)
  const inserted = await tx.run(sql`
    INSERT INTO repos (id, uid, parent_uid, name, ledger_id, description, catalogue, sync_config, create_time, update_time)
    VALUES (${id}, ${repo.uid}, ${group}, ${repo.name}, ${ledger}, ${repo.description}, ${catalogueText(repo)},
            ${syncText(repo)},
            ${repo.createTime}, ${repo.updateTime})
        ON CONFLICT (parent_uid, name) DO NOTHING`)
  if (inserted === 0) return false
  await addToLists(tx, kind, repo.uid, id, keysOf(repo))
  await queueForSearch(tx, 'repos', id)
  return true
}

export async function patchRepo(tx: Tx, before: Repo, after: Repo): Promise<void> {
  await tx.run(sql`
    UPDATE repos
       SET description = ${after.description}, catalogue = ${catalogueText(after)},
           sync_config = ${syncText(after)}, update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
}

export async function deleteRepo(tx: Tx, repo: Repo, id: number): Promise<void> {
  await tx.run(sql`DELETE FROM repos WHERE uid = ${repo.uid}`)
  await forgetRepo(tx, repo, id)
}

/** Removes the repository from all lists, and from the search. */
export async function forgetRepo(tx: Tx, repo: Repo, id: number): Promise<void> {
  await removeFromLists(tx, kind, repo.uid, keysOf(repo))
  await queueForSearch(tx, 'repos', id)
}

/** Readme of a repository. Empty if there is none. */
export async function readmeOf(reader: Reader, repo: string): Promise<string> {
  const row = await reader.get<{ content: string }>(sql`SELECT content FROM repo_readmes WHERE repo_uid = ${repo}`)
  return row?.content ?? ''
}

export async function deleteReadme(tx: Tx, repo: string): Promise<void> {
  await tx.run(sql`DELETE FROM repo_readmes WHERE repo_uid = ${repo}`)
}

export async function setReadme(tx: Tx, repo: string, content: string, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO repo_readmes (repo_uid, content, update_time) VALUES (${repo}, ${content}, ${now})
        ON CONFLICT (repo_uid) DO UPDATE SET content = excluded.content, update_time = excluded.update_time`)
}

/**
 * Host of the registry for clients, for work that has no request. The host comes from the setting `url`, or else from the running
 * servers. Empty if neither has one.
 */
export async function servedHost(reader: Reader, url: string): Promise<string> {
  const served = url || (await servedUrl(reader))
  return served === '' ? '' : new URL(served).host
}
