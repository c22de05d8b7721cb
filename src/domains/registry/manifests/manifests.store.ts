import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { Manifest, ManifestDocument, Referrer } from './manifests.model.ts'

export async function findManifest(reader: Reader, repo: number, digest: string): Promise<Manifest | undefined> {
  return reader.get<Manifest>(sql`
    SELECT digest, media_type AS "mediaType", content FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)
}

export async function hasManifest(reader: Reader, repo: number, digest: string): Promise<boolean> {
  const row = await reader.get(sql`SELECT 1 AS found FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)
  return row !== undefined
}

/** `false` when the repo has it already. */
export async function insertManifest(
  tx: Tx,
  repo: number,
  { digest, content }: Manifest,
  { mediaType, artifactType, subject, annotations }: ManifestDocument,
  now: string,
): Promise<boolean> {
  const inserted = await tx.run(sql`
    INSERT INTO manifests (repo_id, digest, media_type, artifact_type, subject, size, annotations, create_time, content)
    VALUES (${repo}, ${digest}, ${mediaType}, ${artifactType}, ${subject}, ${content.length},
            ${JSON.stringify(annotations)}, ${now}, ${content})
        ON CONFLICT (repo_id, digest) DO NOTHING`)
  return inserted === 1
}

const perStatement = 100

/** What the manifest needs: blobs are of kind 0, manifests of kind 1. */
export async function insertLinks(tx: Tx, repo: number, manifest: string, kind: 0 | 1, needed: readonly string[]) {
  for (const some of chunks(needed)) {
    const rows = some.map((digest) => sql`(${repo}, ${digest}, ${manifest}, ${kind})`)
    await tx.run(sql`
      INSERT INTO manifest_links (repo_id, digest, manifest, kind) VALUES ${join(rows, ', ')}
          ON CONFLICT (repo_id, digest, manifest) DO NOTHING`)
  }
}

/** Of the digests, those that the repo has no blob for. */
export function missingBlobs(reader: Reader, repo: number, digests: readonly string[]): Promise<string[]> {
  return missing(digests, (some) => {
    return reader.all(sql`SELECT digest FROM repo_blobs WHERE repo_id = ${repo} AND digest IN (${list(some)})`)
  })
}

/** Of the digests, those that the repo has no manifest for. */
export function missingManifests(reader: Reader, repo: number, digests: readonly string[]): Promise<string[]> {
  return missing(digests, (some) => {
    return reader.all(sql`SELECT digest FROM manifests WHERE repo_id = ${repo} AND digest IN (${list(some)})`)
  })
}

async function missing(
  digests: readonly string[],
  find: (some: string[]) => Promise<{ digest: string }[]>,
): Promise<string[]> {
  const left = new Set(digests)
  for (const some of chunks(digests)) for (const { digest } of await find(some)) left.delete(digest)
  return [...left]
}

function* chunks(digests: readonly string[]): Iterable<string[]> {
  for (let done = 0; done < digests.length; done += perStatement) yield digests.slice(done, done + perStatement)
}

/** `false` when there was none. */
export async function deleteManifest(tx: Tx, repo: number, digest: string): Promise<boolean> {
  await tx.run(sql`DELETE FROM manifest_links WHERE repo_id = ${repo} AND manifest = ${digest}`)
  return (await tx.run(sql`DELETE FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}`)) === 1
}

export async function deleteManifestsOf(tx: Tx, repo: number): Promise<void> {
  await tx.run(sql`DELETE FROM manifest_links WHERE repo_id = ${repo}`)
  await tx.run(sql`DELETE FROM manifests WHERE repo_id = ${repo}`)
}

export type ReferrerFilter = { subject: string; artifactType: string | undefined; after: string }

/** Digests of referrers in their order, with how long their annotations are. */
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
  for (const some of chunks(digests)) {
    const rows = await reader.all<Row>(sql`
      SELECT digest, media_type AS "mediaType", artifact_type AS "artifactType", size, annotations FROM manifests
       WHERE repo_id = ${repo} AND digest IN (${list(some)})
       ORDER BY digest`)
    for (const row of rows) found.push({ ...row, annotations: JSON.parse(row.annotations) as Record<string, string> })
  }
  return found
}
