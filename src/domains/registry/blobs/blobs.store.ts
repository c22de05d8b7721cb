import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { RepoRef } from '../repos/repos.model.ts'
import type { Blob } from './blobs.model.ts'

export type RepoBlob = Blob & { touchTime: string }

export async function findRepoBlob(reader: Reader, repo: number, digest: string): Promise<RepoBlob | undefined> {
  return reader.get<RepoBlob>(sql`
    SELECT b.digest, b.size, b.location, r.touch_time AS "touchTime"
      FROM repo_blobs r JOIN blobs b ON b.digest = r.digest
     WHERE r.repo_id = ${repo} AND r.digest = ${digest}`)
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

/** Lets the repo serve the blob; where it does already, it counts as touched. */
export async function linkBlob(tx: Tx, repo: number, digest: string, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO repo_blobs (repo_id, digest, touch_time) VALUES (${repo}, ${digest}, ${now})
        ON CONFLICT (repo_id, digest) DO UPDATE SET touch_time = excluded.touch_time`)
}

/** `false` when the repo does not have it any more. */
export async function touchBlob(tx: Tx, repo: number, digest: string, now: string): Promise<boolean> {
  const touched = await tx.run(sql`
    UPDATE repo_blobs SET touch_time = ${now} WHERE repo_id = ${repo} AND digest = ${digest}`)
  return touched === 1
}

export async function unlinkBlob(tx: Tx, repo: number, digest: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM repo_blobs WHERE repo_id = ${repo} AND digest = ${digest}`)) === 1
}

/** The digests of manifests of the repo that need the blob. */
export async function manifestsWithBlob(reader: Reader, repo: number, digest: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ manifest: string }>(sql`
    SELECT manifest FROM manifest_links
     WHERE repo_id = ${repo} AND digest = ${digest} AND kind = 0
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

/** The repo may be deleted while a client pushes to it; its number is never given to another one. */
export async function repoExists(reader: Reader, { id }: Pick<RepoRef, 'id'>): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM repos WHERE id = ${id}`)) !== undefined
}

export async function unlinkAll(tx: Tx, repo: number): Promise<void> {
  await tx.run(sql`DELETE FROM repo_blobs WHERE repo_id = ${repo}`)
}
