// Rows of the ledger that wait for their entry in the log: written with each of them, whatever door asked.
import { insertsOf } from '#db/bulk.ts'
import { join, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { lineage, parentOf } from '#lib/uid.ts'
import { eventNumbers, type HistoryRecord, kindNumbers } from './tag-history.model.ts'
import type { Source, TagRepo } from './tags.model.ts'

const into = sql`INSERT INTO ledger_pending (ledger_id, tag, time, path, kind)`

function kindOf(source: Source): number {
  return source === 'import' ? kindNumbers.import : kindNumbers.live
}

/** Where the repo is now, in names. */
function pathNow({ id, uid }: Pick<TagRepo, 'id' | 'uid'>): Sql {
  const groups = lineage(parentOf(uid)).reverse()
  const names = groups.map((group) => sql`(SELECT name FROM groups WHERE uid = ${group})`)
  return sql`coalesce(${join([...names, sql`(SELECT name FROM repos WHERE id = ${id})`], ` || '/' || `)}, '')`
}

/** The same of one that is being removed, under the name that it had. */
function lastPath(repo: Pick<TagRepo, 'id' | 'uid'>): Sql {
  return sql`coalesce((SELECT path FROM deleted_repos WHERE id = ${repo.id}), ${pathNow(repo)})`
}

/** Of rows that the transaction has just added. */
export async function notePending(tx: Tx, repo: TagRepo, records: readonly HistoryRecord[]): Promise<void> {
  const path = records.length === 1 ? pathNow(repo) : sql`${await readPath(tx, repo)}`
  const rows = records.map(
    ({ tag, time, source }) => sql`(${repo.ledger}, ${tag}, ${time}, ${path}, ${kindOf(source)})`,
  )
  for (const insert of insertsOf(into, rows)) await tx.run(insert)
}

async function readPath(reader: Reader, repo: TagRepo): Promise<string> {
  const row = await reader.get<{ path: string }>(sql`SELECT ${pathNow(repo)} AS path`)
  return row!.path
}

/** Of the deletions, all at one time, of the tags `t` that `where` picks. */
export async function notePendingDeletions(
  tx: Tx,
  repo: TagRepo,
  where: Sql,
  { time, source }: Pick<HistoryRecord, 'time' | 'source'>,
): Promise<void> {
  await tx.run(sql`
    ${into}
    SELECT h.repo_id, h.tag, h.time, ${lastPath(repo)}, CAST(${kindOf(source)} AS BIGINT)
      FROM tags t
      JOIN tag_history h ON h.repo_id = ${repo.ledger} AND h.tag = t.name AND h.time = ${time}
     WHERE h.event = ${eventNumbers.deleted} AND ${where}`)
}
