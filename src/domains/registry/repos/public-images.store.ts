import { list, type Reader, sql } from '#db/sql.ts'
import { beganAfter } from '../tags/tag-history.store.ts'
import type { RepoRef } from './repos.model.ts'

/** Whether one of the tags of this repo ever pointed to an image or an index that needs the digest, however deep inside. */
export async function wasNeeded(
  reader: Reader,
  { id, ledger }: Pick<RepoRef, 'id' | 'ledger'>,
  digest: string,
  tags: readonly string[],
) {
  const row = await reader.get(sql`
    WITH RECURSIVE up (digest) AS (
      SELECT manifest FROM manifest_links WHERE repo_id = ${id} AND digest = ${digest}
       UNION
      SELECT l.manifest FROM up JOIN manifest_links l ON l.repo_id = ${id} AND l.digest = up.digest
    )
    SELECT 1 AS found FROM up JOIN tag_history h ON h.repo_id = ${ledger} AND h.digest = up.digest
     WHERE h.tag IN (${list(tags)}) AND h.time > ${beganAfter(ledger)} LIMIT 1`)
  return row !== undefined
}
