import { locking, meetAt, meetingAt, type RowLock } from '#db/row-locks.ts'
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

/** Those that the repo has, in no particular order. */
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

/** A page of the blobs of a repo, by their digests. */
export async function blobSizes(reader: Reader, repo: number, after: string, limit: number) {
  return reader.all<{ digest: string; size: number }>(sql`
    SELECT r.digest, b.size FROM repo_blobs r JOIN blobs b ON b.digest = r.digest
     WHERE r.repo_id = ${repo} AND r.digest > ${after} ORDER BY r.digest LIMIT ${limit}`)
}

export async function findBlob(reader: Reader, digest: string): Promise<Blob | undefined> {
  return reader.get<Blob>(sql`SELECT digest, size, location FROM blobs WHERE digest = ${digest}`)
}

/** `false` when there is one already, which then stays as it is. */
export async function insertBlob(tx: Tx, blob: Blob, now: string): Promise<boolean> {
  const inserted = await tx.run(sql`
    INSERT INTO blobs (digest, size, location, create_time)
    VALUES (${blob.digest}, ${blob.size}, ${blob.location}, ${now})
        ON CONFLICT (digest) DO NOTHING`)
  return inserted === 1
}

/** Gives a blob another location, unless it has one already. */
export async function moveBlob(tx: Tx, { digest, location }: Blob, to: string): Promise<boolean> {
  const moved = await tx.run(sql`
    UPDATE blobs SET location = ${to} WHERE digest = ${digest} AND location = ${location}`)
  return moved === 1
}

/** What is counted for the organisation of a repo. */
export type Counted = Pick<RepoRef, 'id' | 'uid'>

/**
 * Lets the repo serve the blob; where it does already, it counts as touched. Returns the bytes that this adds to the
 * organisation: none where another of its repos has the blob.
 */
export async function linkBlob(tx: Tx, { id, uid }: Counted, digest: string, now: string): Promise<number> {
  const linked = await tx.run(sql`
    INSERT INTO repo_blobs (repo_id, digest, touch_time) VALUES (${id}, ${digest}, ${now})
        ON CONFLICT (repo_id, digest) DO NOTHING`)
  if (linked === 1) return addLink(tx, rootOf(uid), digest)
  await touchBlob(tx, id, digest, now)
  return 0
}

/** `false` when the repo does not have it any more. */
export async function touchBlob(tx: Tx, repo: number, digest: string, now: string): Promise<boolean> {
  const touched = await tx.run(sql`
    UPDATE repo_blobs SET touch_time = ${now} WHERE repo_id = ${repo} AND digest = ${digest}`)
  return touched === 1
}

/** `false` when the repo does not have it. */
export async function unlinkBlob(tx: Tx, { id, uid }: Counted, digest: string): Promise<boolean> {
  if ((await tx.run(sql`DELETE FROM repo_blobs WHERE repo_id = ${id} AND digest = ${digest}`)) === 0) return false
  await removeLink(tx, rootOf(uid), digest)
  return true
}

/** The digests of manifests of the repo that need the blob, and of indexes that list it. */
export async function manifestsWithBlob(reader: Reader, repo: number, digest: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ manifest: string }>(sql`
    SELECT manifest FROM manifest_links
     WHERE repo_id = ${repo} AND digest = ${digest}
     ORDER BY manifest LIMIT ${most}`)
  return rows.map((row) => row.manifest)
}

/** Some of the repos that have the blob. */
export async function reposWithBlob(reader: Reader, digest: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT r.uid FROM repo_blobs b JOIN repos r ON r.id = b.repo_id
     WHERE b.digest = ${digest}
     ORDER BY b.repo_id LIMIT ${most}`)
  return rows.map((row) => row.uid)
}

/** The repo may be deleted while a client pushes to it; its number is never given to another one. One that is being removed has no ledger. */
export async function repoExists(reader: Reader, { id }: Pick<RepoRef, 'id'>): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM repos WHERE id = ${id} AND ledger_id IS NOT NULL`)) !== undefined
}

/**
 * The same, and locks the repo: `shared` for what adds blobs to it, which keeps it from being deleted; `alone` for whatever
 * reads its manifests, tags or links and writes what follows from them. Transactions of the isolation `rowLocks` meet there.
 * With the uid of the repo few of this process do at once; duties, which are one after the other, need none.
 */
export async function lockRepo(tx: Tx, { id, uid }: { id: number; uid?: string }, lock: RowLock): Promise<boolean> {
  if (uid !== undefined) await meetAt(tx, uid, lock)
  const row = await tx.get(sql`
    SELECT 1 AS found FROM repos WHERE id = ${id} AND ledger_id IS NOT NULL ${locking(tx, lock)}`)
  return row !== undefined
}

/** How transactions run that lock the repo which they are about. */
export const inRepo = { isolation: 'rowLocks' } as const

export { meetingAt }

/**
 * Repository that a push goes to, or the place where the push creates it. Each transaction of the push runs in `tx`. There,
 * `there` locks the repository and returns it, or `undefined` if it was deleted in the meantime. It creates a missing
 * repository, so that a refused push leaves none behind.
 */
export type PushTarget = {
  /** Uid of the repository, or of the lowest group that exists on the way to it. */
  uid: string
  /** Repository, unless the push creates it. */
  repo: RepoRef | undefined
  tx<T>(lock: PushLock, work: (tx: Tx, there: LockedRepo) => Promise<T>): Promise<T>
}

export type PushLock = 'shared' | 'alone'

/** A new repository comes with the limits of its organization, which its transaction has read. */
export type LockedRepo = () => Promise<(RepoRef & { limits?: QuotaLimits }) | undefined>

/** Returns how many blobs the repo had. */
export async function unlinkAll(tx: Tx, { id, uid }: Counted): Promise<number> {
  await removeLinksOf(tx, rootOf(uid), id)
  return tx.run(sql`DELETE FROM repo_blobs WHERE repo_id = ${id}`)
}

/** Some of the blobs, at most `limit`; which ones is as good as random. */
export async function someBlobs(reader: Reader, limit: number): Promise<Blob[]> {
  return reader.all(sql`SELECT digest, size, location FROM blobs ORDER BY digest LIMIT ${limit}`)
}
