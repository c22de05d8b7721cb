import { list, type Reader, sql } from '#db/sql.ts'
import type { StoredImage } from './summaries.model.ts'

/** Manifests of a repository with these digests, without their content. */
export async function storedImages(reader: Reader, repo: number, digests: readonly string[]): Promise<StoredImage[]> {
  const rows = await reader.all<StoredImage>(sql`
    SELECT digest, media_type AS "mediaType", artifact_type AS "artifactType", size, create_time AS "createTime"
      FROM manifests WHERE repo_id = ${repo} AND digest IN (${list(digests)})`)
  return rows.map((row) => ({ ...row, size: Number(row.size) }))
}

/** Annotations of a referrer that are longer than this many bytes are left out. */
const maxAnnotations = 4096

/** At most `most` referrers of an image with one of the artifact types. */
export async function referrersOfTypes(
  reader: Reader,
  { repo, subject, types }: { repo: number; subject: string; types: readonly string[] },
  most: number,
): Promise<{ artifactType: string; annotations: string }[]> {
  return reader.all(sql`
    SELECT artifact_type AS "artifactType",
           CASE WHEN octet_length(annotations) > ${maxAnnotations} THEN '{}' ELSE annotations END AS annotations
      FROM manifests
     WHERE repo_id = ${repo} AND subject = ${subject} AND subject <> '' AND artifact_type IN (${list(types)})
     LIMIT ${most}`)
}

/** Number of pulls with GET since a day, by digest. Images without a pull are left out. */
export async function pullsSince(
  reader: Reader,
  { repo, digests, day }: { repo: number; digests: readonly string[]; day: string },
): Promise<Map<string, number>> {
  const rows = await reader.all<{ digest: string; gets: number }>(sql`
    SELECT digest, sum(gets) AS gets FROM digest_usage
     WHERE repo_id = ${repo} AND digest IN (${list(digests)}) AND day >= ${day}
     GROUP BY digest`)
  return new Map(rows.map(({ digest, gets }) => [digest, Number(gets)]))
}
