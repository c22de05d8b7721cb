import { list, type Reader, sql } from '#db/sql.ts'

/** Whether one of the tags ever pointed to an image or an index that needs the digest, however deep inside. */
export async function wasNeeded(reader: Reader, repo: number, digest: string, tags: readonly string[]) {
  const row = await reader.get(sql`
    WITH RECURSIVE up (digest) AS (
      SELECT manifest FROM manifest_links WHERE repo_id = ${repo} AND digest = ${digest}
       UNION
      SELECT l.manifest FROM up JOIN manifest_links l ON l.repo_id = ${repo} AND l.digest = up.digest
    )
    SELECT 1 AS found FROM up JOIN tag_history h ON h.repo_id = ${repo} AND h.digest = up.digest
     WHERE h.tag IN (${list(tags)}) LIMIT 1`)
  return row !== undefined
}
