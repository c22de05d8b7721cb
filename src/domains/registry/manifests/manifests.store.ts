import { countRows, exists } from '#db/bulk.ts'
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { rootOf } from '#lib/uid.ts'
import type { Counted } from '../blobs/blobs.store.ts'
import { addUsage } from '../blobs/usage.store.ts'
import { indexTypes, type Manifest, type ManifestDocument, type Referrer } from './manifests.model.ts'

export async function findManifest(reader: Reader, repo: number, digest: string): Promise<Manifest | undefined> {
  return reader.get<Manifest>(sql`
    SELECT digest, media_type AS "mediaType", content FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)
}

export async function hasManifest(reader: Reader, repo: number, digest: string): Promise<boolean> {
  return exists(reader, sql`FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)
}

/**
 * Inserts a manifest. Returns the bytes that it adds to the usage of the organization: 0 if the repository has the manifest
 * already.
 */
export async function insertManifest(
  tx: Tx,
  repo: Counted,
  { digest, content }: Manifest,
  { mediaType, artifactType, subject, annotations }: ManifestDocument,
  levels: number,
  now: string,
): Promise<number> {
  const inserted = await tx.run(sql`
    INSERT INTO manifests (repo_id, digest, media_type, artifact_type, subject, size, annotations, create_time, content)
    VALUES (${repo.id}, ${digest}, ${mediaType}, ${artifactType}, ${subject}, ${content.length},
            ${JSON.stringify(annotations)}, ${now}, ${content})
        ON CONFLICT (repo_id, digest) DO NOTHING`)
  if (inserted === 0) return 0
  await raiseLevels(tx, repo.id, [digest], levels)
  await addUsage(tx, rootOf(repo.uid), { bytes: content.length })
  return content.length
}

const perStatement = 100

/**
 * Adds links for the content that a manifest needs: kind 0 for blobs, 1 for manifests. In the order of the key, since SQLite then
 * changes each page of the table only once. Otherwise, it writes pages of a large index early, and again at the commit.
 */
export async function insertLinks(tx: Tx, repo: number, manifest: string, kind: 0 | 1, needed: readonly string[]) {
  for (const some of chunks(needed.toSorted(), perStatement)) {
    const rows = some.map((digest) => sql`(${repo}, ${digest}, ${manifest}, ${kind})`)
    await tx.run(sql`
      INSERT INTO manifest_links (repo_id, digest, manifest, kind) VALUES ${join(rows, ', ')}
          ON CONFLICT (repo_id, digest, manifest) DO NOTHING`)
  }
}

/** A page of the manifests of a repository, by digest. */
export async function manifestSizes(reader: Reader, repo: number, after: string, limit: number) {
  return reader.all<{ digest: string; size: number }>(sql`
    SELECT digest, size FROM manifests WHERE repo_id = ${repo} AND digest > ${after} ORDER BY digest LIMIT ${limit}`)
}

export type StoredManifest = { digest: string; size: number; levels: number }

/** Manifests of these digests in the repository, by digest and without their content. */
export async function storedManifests(
  reader: Reader,
  repo: number,
  digests: readonly string[],
): Promise<Map<string, StoredManifest>> {
  const stored = new Map<string, StoredManifest>()
  for (const some of chunks(digests, perStatement)) {
    const rows = await reader.all<StoredManifest>(sql`
      SELECT m.digest, m.size, CASE WHEN ${isIndex} THEN coalesce(
               (SELECT n.levels FROM nested_indexes n WHERE n.repo_id = m.repo_id AND n.digest = m.digest), 1)
             ELSE 0 END AS levels
        FROM manifests m WHERE m.repo_id = ${repo} AND m.digest IN (${list(some)})`)
    for (const row of rows) stored.set(row.digest, row)
  }
  return stored
}

const isIndex = sql`m.media_type IN (${list(indexTypes)})`

/**
 * Manifests of these digests in the repository, in no particular order. Check their sizes first, since a manifest may have 4 MiB.
 */
export async function findManifests(reader: Reader, repo: number, digests: readonly string[]): Promise<Manifest[]> {
  const found: Manifest[] = []
  for (const some of chunks(digests, perStatement)) {
    const rows = await reader.all<Manifest>(sql`
      SELECT digest, media_type AS "mediaType", content FROM manifests
       WHERE repo_id = ${repo} AND digest IN (${list(some)})`)
    for (const row of rows) found.push(row)
  }
  return found
}

/** Indexes that list the manifest. `listed` is 1 if another index lists the index. */
export async function indexesWith(reader: Reader, repo: number, digest: string, most: number) {
  return reader.all<{ manifest: string; listed: number }>(sql`
    SELECT p.manifest,
           CASE WHEN EXISTS (SELECT 1 FROM manifest_links g
                              WHERE g.repo_id = p.repo_id AND g.digest = p.manifest AND g.kind = 1)
                THEN 1 ELSE 0 END AS listed
      FROM manifest_links p
     WHERE p.repo_id = ${repo} AND p.digest = ${digest} AND p.kind = 1
     ORDER BY p.manifest LIMIT ${most}`)
}

/**
 * Raises the number of levels of these indexes to at least `levels`. The table has no row for an index that lists only images.
 */
export async function raiseLevels(tx: Tx, repo: number, digests: readonly string[], levels: number): Promise<void> {
  if (levels < 2) return
  for (const some of chunks(digests, perStatement)) {
    const rows = some.map((digest) => sql`(${repo}, ${digest}, ${levels})`)
    await tx.run(sql`
      INSERT INTO nested_indexes (repo_id, digest, levels) VALUES ${join(rows, ', ')}
          ON CONFLICT (repo_id, digest) DO UPDATE SET levels = excluded.levels
       WHERE nested_indexes.levels < excluded.levels`)
  }
}

/** Deletes a manifest. Returns false if the repository does not have it. */
export async function deleteManifest(tx: Tx, repo: Counted, digest: string): Promise<boolean> {
  await tx.run(sql`DELETE FROM manifest_links WHERE repo_id = ${repo.id} AND manifest = ${digest}`)
  await tx.run(sql`DELETE FROM nested_indexes WHERE repo_id = ${repo.id} AND digest = ${digest}`)
  const row = await tx.get<{ size: number }>(sql`
    DELETE FROM manifests WHERE repo_id = ${repo.id} AND digest = ${digest} RETURNING size`)
  if (!row) return false
  await addUsage(tx, rootOf(repo.uid), { bytes: -row.size })
  return true
}

/** Deletes all manifests of the repository. Returns the number of deleted manifests. */
export async function deleteManifestsOf(tx: Tx, repo: Counted): Promise<number> {
  const row = await tx.get<{ bytes: number }>(sql`
    SELECT CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes FROM manifests WHERE repo_id = ${repo.id}`)
  await tx.run(sql`DELETE FROM manifest_links WHERE repo_id = ${repo.id}`)
  await tx.run(sql`DELETE FROM nested_indexes WHERE repo_id = ${repo.id}`)
  const deleted = await tx.run(sql`DELETE FROM manifests WHERE repo_id = ${repo.id}`)
  await addUsage(tx, rootOf(repo.uid), { bytes: -row!.bytes })
  return deleted
}

export type ReferrerFilter = { subject: string; artifactType: string | undefined; after: string }

/** Digests of referrers in order, with the length of their annotations. */
export async function listReferrers(
  reader: Reader,
  repo: number,
  { subject, artifactType, after }: ReferrerFilter,
  most: number,
): Promise<{ digest: string; length: number }[]> {
  const typed = artifactType === undefined ? sql`1 = 1` : sql`artifact_type = ${artifactType}`
  return reader.all(sql`
    SELECT digest, octet_length(annotations) AS length FROM manifests
     WHERE repo_id = ${repo} AND subject = ${subject} AND subject <> '' AND ${typed} AND digest > ${after}
     ORDER BY digest LIMIT ${most}`)
}

export async function readReferrers(reader: Reader, repo: number, digests: readonly string[]): Promise<Referrer[]> {
  type Row = Omit<Referrer, 'annotations'> & { annotations: string }
  const found: Referrer[] = []
  for (const some of chunks(digests, perStatement)) {
    const rows = await reader.all<Row>(sql`
      SELECT digest, media_type AS "mediaType", artifact_type AS "artifactType", size, annotations FROM manifests
       WHERE repo_id = ${repo} AND digest IN (${list(some)})
       ORDER BY digest`)
    for (const row of rows) found.push({ ...row, annotations: JSON.parse(row.annotations) as Record<string, string> })
  }
  return found
}

/** Manifests with a subject, by time, after the given position. */
export async function referrersSince(
  reader: Reader,
  repo: number,
  after: { time: string; digest: string },
  most: number,
): Promise<{ digest: string; subject: string; createTime: string }[]> {
  return reader.all(sql`
    SELECT digest, subject, create_time AS "createTime" FROM manifests
     WHERE repo_id = ${repo} AND subject <> '' AND (create_time, digest) > (${after.time}, ${after.digest})
     ORDER BY create_time, digest LIMIT ${most}`)
}

/** Numbers of the repositories in a scope, ordered by uid, after this uid. */
export async function reposAt(reader: Reader, scope: string, after: string, most: number) {
  return reader.all<{ id: number; uid: string }>(sql`
    SELECT id, uid FROM repos WHERE uid >= ${scope} AND uid < ${`${scope}0`} AND uid > ${after} ORDER BY uid LIMIT ${most}`)
}

export async function countManifests(reader: Reader, repos: readonly number[]): Promise<number> {
  return countRows(reader, sql`FROM manifests WHERE repo_id IN (${list(repos)})`)
}

/**
 * Manifests that need or list a digest, the oldest first. Set kind 1 for the digest of a manifest, which only indexes list. Leave
 * the kind out for a blob: images need it (kind 0), and indexes such as a BuildKit cache list it.
 */
export async function linkedFrom(
  reader: Reader,
  repo: number,
  { digest, kind, most }: { digest: string; kind?: 1 | undefined; most: number },
): Promise<string[]> {
  const ofKind = kind === undefined ? sql`` : sql` AND kind = ${kind}`
  const rows = await reader.all<{ manifest: string }>(sql`
    SELECT l.manifest FROM (SELECT manifest FROM manifest_links
                             WHERE repo_id = ${repo} AND digest = ${digest}${ofKind}
                             ORDER BY manifest LIMIT ${mostLinks}) AS l
      JOIN manifests m ON m.repo_id = ${repo} AND m.digest = l.manifest
     ORDER BY m.create_time, m.id LIMIT ${most}`)
  return rows.map(({ manifest }) => manifest)
}

const mostLinks = 2000

/** Subject of a manifest. Empty if the manifest has no subject, or if the repository does not have the manifest. */
export async function subjectOf(reader: Reader, repo: number, digest: string): Promise<string> {
  const row = await reader.get<{ subject: string }>(sql`
    SELECT subject FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)
  return row?.subject ?? ''
}
