// Manifests against the rows of what they need, and those rows against manifests.
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import type { Manifest } from '../manifests/manifests.model.ts'

export type ManifestKey = { id: number; repo: number; digest: string; mediaType: string; size: number }

export function manifestsAfter(reader: Reader, after: number, most: number): Promise<ManifestKey[]> {
  return reader.all(sql`
    SELECT m.id, m.repo_id AS repo, m.digest, m.media_type AS "mediaType", m.size FROM manifests m
     WHERE m.id > ${after} ORDER BY m.id LIMIT ${most}`)
}

export type StoredLink = { digest: string; kind: number }

/** Those of the manifests of a repo that are there still. */
export function manifestsOf(reader: Reader, repo: number, digests: readonly string[]): Promise<Manifest[]> {
  return reader.all(sql`
    SELECT digest, media_type AS "mediaType", content FROM manifests
     WHERE repo_id = ${repo} AND digest IN (${list(digests)})`)
}

/** What each of the manifests of a repo needs. */
export function linksOf(
  reader: Reader,
  repo: number,
  digests: readonly string[],
): Promise<(StoredLink & { manifest: string })[]> {
  return reader.all(sql`
    SELECT manifest, digest, kind FROM manifest_links WHERE repo_id = ${repo} AND manifest IN (${list(digests)})`)
}

export async function deleteLinksOf(tx: Tx, { repo, digest }: Pick<ManifestKey, 'repo' | 'digest'>): Promise<number> {
  return tx.run(sql`DELETE FROM manifest_links WHERE repo_id = ${repo} AND manifest = ${digest}`)
}

export type LinkKey = { repo: number; digest: string; manifest: string }

/** A page of what manifests need, with whether it is the first of a manifest that is gone; those of repos that are gone are left out. */
export function linksAfter(reader: Reader, after: LinkKey, most: number) {
  return reader.all<LinkKey & { isLoose: number }>(sql`
    SELECT l.repo_id AS repo, l.digest, l.manifest,
           CASE WHEN EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = l.repo_id AND m.digest = l.manifest)
                  OR NOT EXISTS (SELECT 1 FROM repos r WHERE r.id = l.repo_id AND r.ledger_id IS NOT NULL)
                  OR EXISTS (SELECT 1 FROM manifest_links b
                              WHERE b.repo_id = l.repo_id AND b.manifest = l.manifest AND b.digest < l.digest)
                THEN 0 ELSE 1 END AS "isLoose"
      FROM manifest_links l
     WHERE (l.repo_id, l.digest, l.manifest) > (${after.repo}, ${after.digest}, ${after.manifest})
     ORDER BY l.repo_id, l.digest, l.manifest LIMIT ${most}`)
}
