import { enterProcessLock, locking, processLockOf, type RowLock } from '#db/row-locks.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { QuotaLimits } from '#domains/iam/groups/quotas.model.ts'
import { chunks } from '#lib/chunks.ts'
import { rootOf } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Blob } from './blobs.model.ts'
import { addLink, removeLink, removeLinksOf } from './usage.store.ts'

export type RepoBlob = Blob & { touchTime: string }

export async function findRepoBlob(reader: Reader, repo: number, digest: string): Promise<RepoBlob | undefined> {
  return reader.get<RepoBlob>(sql`
    SELECT b.digest, b.size, b.location, r.touch_time AS "touchTime"
      FROM repo_blobs r JOIN blobs b ON b.digest = r.digest
     WHERE r.repo_id = ${repo} AND r.digest = ${digest}`)
}

const perStatement = 100

/** Blobs of these digests that the repository has, in no particular order. */
export async function findRepoBlobs(reader: Reader, repo: number, digests: readonly string[]): Promise<Blob[]> {
  const found: Blob[] = []
  for (const some of chunks(digests, perStatement)) {
    const rows = await reader.all<Blob>(sql`
      SELECT b.digest, b.size, b.location
        FROM repo_blobs r JOIN blobs b ON b.digest = r.digest
       WHERE r.repo_id = ${repo} AND r.digest IN (${list(some)})`)
    for (const row of rows) found.push(row)
  }
  return found
}

/** A page of the blobs of a repository, by digest. */
export async function blobSizes(reader: Reader, repo: number, after: string, limit: number) {
  return reader.all<{ digest: string; size: number }>(sql`
    SELECT r.digest, b.size FROM repo_blobs r JOIN blobs b ON b.digest = r.digest
     WHERE r.repo_id = ${repo} AND r.digest > ${after} ORDER BY r.digest LIMIT ${limit}`)
}

export async function findBlob(reader: Reader, digest: string): Promise<Blob | undefined> {
  return reader.get<Blob>(sql`SELECT digest, size, location FROM blobs WHERE digest = ${digest}`)
}

/** Inserts a blob. Returns false and changes nothing if the blob exists. */
export async function insertBlob(tx: Tx, blob: Blob, now: string): Promise<boolean> {
  const inserted = await tx.run(sql`
    INSERT INTO blobs (digest, size, location, create_time)
    VALUES (${blob.digest}, ${blob.size}, ${blob.location}, ${now})
        ON CONFLICT (digest) DO NOTHING`)
  return inserted === 1
}

/** Changes the location of a blob. Returns false if another request has changed its location meanwhile. */
export async function moveBlob(tx: Tx, { digest, location }: Blob, to: string): Promise<boolean> {
  const moved = await tx.run(sql`
    UPDATE blobs SET location = ${to} WHERE digest = ${digest} AND location = ${location}`)
  return moved === 1
}

/** Repository whose blobs are counted for its organization. */
export type Counted = Pick<RepoRef, 'id' | 'uid'>

/**
 * Links the blob to the repository, or updates the touch time of the link. Returns the bytes added to the organization: 0 if
 * another of its repositories has the blob.
 */
export async function linkBlob(tx: Tx, { id, uid }: Counted, digest: string, now: string): Promise<number> {
  const linked = await tx.run(sql`
    INSERT INTO repo_blobs (repo_id, digest, touch_time) VALUES (${id}, ${digest}, ${now})
        ON CONFLICT (repo_id, digest) DO NOTHING`)
  if (linked === 1) return addLink(tx, rootOf(uid), digest)
  await touchBlob(tx, id, digest, now)
  return 0
}

/** Updates the touch time. Returns false if the repository no longer has the blob. */
export async function touchBlob(tx: Tx, repo: number, digest: string, now: string): Promise<boolean> {
  const touched = await tx.run(sql`
    UPDATE repo_blobs SET touch_time = ${now} WHERE repo_id = ${repo} AND digest = ${digest}`)
  return touched === 1
}

/** Unlinks the blob. Returns false if the repository does not have it. */
export async function unlinkBlob(tx: Tx, { id, uid }: Counted, digest: string): Promise<boolean> {
  if ((await tx.run(sql`DELETE FROM repo_blobs WHERE repo_id = ${id} AND digest = ${digest}`)) === 0) return false
  await removeLink(tx, rootOf(uid), digest)
  return true
}

/** Digests of manifests of the repository that need the blob, and of indexes that list it. */
export async function manifestsWithBlob(reader: Reader, repo: number, digest: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ manifest: string }>(sql`
    SELECT manifest FROM manifest_links
     WHERE repo_id = ${repo} AND digest = ${digest}
     ORDER BY manifest LIMIT ${most}`)
  return rows.map((row) => row.manifest)
}

/** Some repositories that have the blob. */
export async function reposWithBlob(reader: Reader, digest: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT r.uid FROM repo_blobs b JOIN repos r ON r.id = b.repo_id
     WHERE b.digest = ${digest}
     ORDER BY b.repo_id LIMIT ${most}`)
  return rows.map((row) => row.uid)
}

/**
 * True if the repository exists. A repository can be deleted during a push, and numbers of repositories are never reused. A
 * repository that is being removed has no `ledger_id`.
 */
export async function repoExists(reader: Reader, { id }: Pick<RepoRef, 'id'>): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM repos WHERE id = ${id} AND ledger_id IS NOT NULL`)) !== undefined
}

/**
 * Locks the repository until the transaction ends. Returns false if the repository was deleted. A `shared` lock is for adding
 * blobs: it only prevents the deletion of the repository. An `alone` lock is for writes that depend on manifests, tags or links.
 * Transactions with the isolation `rowLocks` wait for each other here. With `uid`, only a few of these transactions run at once
 * in this process. Background jobs leave out `uid`.
 */
export async function lockRepo(tx: Tx, { id, uid }: { id: number; uid?: string }, lock: RowLock): Promise<boolean> {
  if (uid !== undefined) await enterProcessLock(tx, uid, lock)
  const row = await tx.get(sql`
    SELECT 1 AS found FROM repos WHERE id = ${id} AND ledger_id IS NOT NULL ${locking(tx, lock)}`)
  return row !== undefined
}

/** Options of transactions that lock the repository they change. */
export const inRepo = { isolation: 'rowLocks' } as const

export { processLockOf }

/**
 * Repository of a push, or the group in which the push creates the repository. `tx` runs a transaction of the push. In the
 * transaction, `there` locks the repository and returns it. `there` returns `undefined` if the repository was deleted meanwhile.
 * `there` also creates a missing repository, so that a refused push leaves none behind.
 */
export type PushTarget = {
  /** Uid of the repository, or of the lowest existing group on its path. */
  uid: string
  /** The repository. Undefined if the push creates it. */
  repo: RepoRef | undefined
  tx<T>(lock: PushLock, work: (tx: Tx, there: LockedRepo) => Promise<T>): Promise<T>
}

export type PushLock = 'shared' | 'alone'

/**
 * Locks the repository of a push and returns it. For a new repository, `limits` are the limits of the organization that the
 * transaction has read.
 */
export type LockedRepo = () => Promise<(RepoRef & { limits?: QuotaLimits }) | undefined>

/** Unlinks all blobs of the repository. Returns how many it had. */
export async function unlinkAll(tx: Tx, { id, uid }: Counted): Promise<number> {
  await removeLinksOf(tx, rootOf(uid), id)
  return tx.run(sql`DELETE FROM repo_blobs WHERE repo_id = ${id}`)
}

/** The first `limit` blobs by digest. Digests are hashes, so this sample is as good as a random one. */
export async function someBlobs(reader: Reader, limit: number): Promise<Blob[]> {
  return reader.all(sql`SELECT digest, size, location FROM blobs ORDER BY digest LIMIT ${limit}`)
}
