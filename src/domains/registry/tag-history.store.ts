import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { eventNumbers, type HistoryRecord, sourceNumbers } from './tag-history.model.ts'

/** Adds one row to the ledger. Nothing changes or takes away a row, but the deletion of the whole repo. */
export async function insertRecord(tx: Tx, repo: number, record: HistoryRecord): Promise<void> {
  const { tag, digest } = record
  await tx.run(sql`
    INSERT INTO tag_history
           (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
    VALUES (${repo}, ${tag}, ${record.time}, ${eventNumbers[record.event]}, ${digest}, ${record.previousDigest},
            ${described(repo, tag, digest, sql`media_type`, sql`''`)}, ${described(repo, tag, digest, sql`size`, sql`0`)},
            ${record.actor}, ${sourceNumbers[record.source]})`)
}

/** What the manifest says of itself, or once it is gone, what it said when the tag took it. */
function described(repo: number, tag: string, digest: string, column: Sql, otherwise: Sql): Sql {
  return sql`coalesce(
    (SELECT ${column} FROM manifests WHERE repo_id = ${repo} AND digest = ${digest}),
    (SELECT ${column} FROM tag_history WHERE repo_id = ${repo} AND digest = ${digest} AND tag = ${tag}
      ORDER BY time DESC LIMIT 1), ${otherwise})`
}

/** The deletion of every tag that `where` picks of the tags `t`, all at one time, which must be later than any of theirs. */
export async function insertDeletions(
  tx: Tx,
  repo: number,
  where: Sql,
  { time, actor, source }: Pick<HistoryRecord, 'time' | 'actor' | 'source'>,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO tag_history
           (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
    SELECT t.repo_id, t.name, CAST(${time} AS TEXT), CAST(${eventNumbers.deleted} AS BIGINT), t.digest, t.digest,
           h.media_type, h.size, CAST(${actor} AS TEXT), CAST(${sourceNumbers[source]} AS BIGINT)
      FROM tags t
      JOIN tag_history h ON h.repo_id = ${repo} AND h.tag = t.name AND h.time = t.assign_time
     WHERE ${where}`)
}

/** The time of the latest row of a tag; empty when the ledger has none. */
export async function lastTime(reader: Reader, repo: number, tag: string): Promise<string> {
  const row = await reader.get<{ time: string }>(sql`
    SELECT time FROM tag_history WHERE repo_id = ${repo} AND tag = ${tag} ORDER BY time DESC LIMIT 1`)
  return row?.time ?? ''
}

export async function wasEverTagged(reader: Reader, repo: number, digest: string, tags: readonly string[]) {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM tag_history
     WHERE repo_id = ${repo} AND digest = ${digest} AND tag IN (${list(tags)}) LIMIT 1`)
  return row !== undefined
}

/** With its repo. */
export async function deleteHistory(tx: Tx, repo: number): Promise<void> {
  await tx.run(sql`DELETE FROM tag_history WHERE repo_id = ${repo}`)
}
