// SBOMs and statements that refer to an image.
import { type Reader, sql } from '#db/sql.ts'
import type { Manifest } from '../manifests/manifests.model.ts'
import { maxSboms, statementType } from './image-contents.model.ts'

/**
 * Condition for `sbomTypes` and `statementType`. The text must equal the condition of the partial index, or the database does not
 * use the index.
 */
const mayHaveSbom = sql`
  artifact_type IN ('application/spdx+json', 'text/spdx+json', 'application/vnd.cyclonedx+json',
                    'application/vnd.in-toto+json')`

/** Manifests of SBOMs that refer to the image, the newest first. */
export async function listSboms(reader: Reader, repo: number, subject: string): Promise<Manifest[]> {
  return reader.all(sql`
    SELECT digest, media_type AS "mediaType", content FROM manifests
     WHERE repo_id = ${repo} AND subject = ${subject} AND ${mayHaveSbom} AND artifact_type <> ${statementType}
     ORDER BY id DESC LIMIT ${maxSboms}`)
}

/** Manifests of SBOMs and statements that refer to the image, the newest first. */
export async function listSbomsAndStatements(
  reader: Reader,
  repo: number,
  subject: string,
  most: number,
): Promise<Attached[]> {
  return reader.all(sql`
    SELECT id, digest, media_type AS "mediaType", content FROM manifests
     WHERE repo_id = ${repo} AND subject = ${subject} AND ${mayHaveSbom} ORDER BY id DESC LIMIT ${most}`)
}

/** Manifest that refers to an image. Newer manifests have a higher `id`. */
export type Attached = Manifest & { id: number }

/**
 * Condition for the types of `isEnvelopeType`. The text must equal the condition of the partial index, or the database does not
 * use the index. Sigstore bundles before version 0.3 have a version parameter in the type.
 */
const isEnvelope = sql`
  artifact_type IN ('application/vnd.dsse.envelope.v1+json', 'application/vnd.dev.sigstore.bundle.v0.3+json',
                    'application/vnd.dev.sigstore.bundle+json;version=0.1',
                    'application/vnd.dev.sigstore.bundle+json;version=0.2',
                    'application/vnd.dev.sigstore.bundle+json;version=0.3')`

const maxAnnotations = 65_536

/** The newest signed envelopes with statements about the image, and their annotations. Long annotations are left out. */
export async function listEnvelopes(
  reader: Reader,
  repo: number,
  subject: string,
  most: number,
): Promise<{ id: number; digest: string; annotations: Record<string, string> }[]> {
  const rows = await reader.all<{ id: number; digest: string; annotations: string }>(sql`
    SELECT id, digest, CASE WHEN octet_length(annotations) > ${maxAnnotations} THEN '{}' ELSE annotations END AS annotations
      FROM manifests WHERE repo_id = ${repo} AND subject = ${subject} AND ${isEnvelope} ORDER BY id DESC LIMIT ${most}`)
  return rows.map(({ annotations, ...row }) => {
    return { ...row, annotations: JSON.parse(annotations) as Record<string, string> }
  })
}

/** Indexes that list the manifest, the newest first and at most `maxIndexesWith`. */
export async function listIndexesWith(reader: Reader, repo: number, digest: string): Promise<string[]> {
  const rows = await reader.all<{ id: number; digest: string }>(sql`
    SELECT m.id, m.digest
      FROM manifest_links l JOIN manifests m ON m.repo_id = l.repo_id AND m.digest = l.manifest
     WHERE l.repo_id = ${repo} AND l.digest = ${digest} AND l.kind = 1`)
  return rows.sort((one, other) => other.id - one.id).map((row) => row.digest)
}
