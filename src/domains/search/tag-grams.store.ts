// Repositories by the character sequences of their tags. A search for a part of a tag looks only at repositories that have each
// sequence of the text. The rows are few, since the tags of a repository have the same sequences again and again.

import { atMost, insertsOf } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { foldText } from '#lib/lists/search-text.ts'

/** Length of a sequence. Shorter texts are searched only at the start of a tag. */
export const gramLength = 3

/** Sequences of three characters of a text, in lower case and without duplicates. */
export function gramsOf(text: string): string[] {
  const characters = [...foldText(text)]
  const grams = new Set<string>()
  for (let at = 0; at + gramLength <= characters.length; at++) {
    grams.add(characters.slice(at, at + gramLength).join(''))
  }
  return [...grams]
}

/** Tag of a repository, which belongs to the organization with the number `organization`. */
export type TagName = { repo: number; organization: number; name: string }

/** Adds the sequences of tags to those of their repositories. */
export async function addTagGrams(tx: Tx, tags: readonly TagName[]): Promise<void> {
  const rows = [...Map.groupBy(tags, ({ repo }) => repo)].flatMap(([repo, some]) =>
    [...new Set(some.flatMap(({ name }) => gramsOf(name)))].map(
      (gram) => sql`(${repo}, ${gram}, ${some[0]!.organization})`,
    ),
  )
  const into = sql`INSERT INTO tag_grams (repo_id, gram, org_id)`
  for (const insert of insertsOf(into, rows, sql`ON CONFLICT DO NOTHING`)) await tx.run(insert)
}

/** The sequence that the fewest repositories of an organization have. Counting stops at `most`. */
export async function rarestGram(
  reader: Reader,
  organization: number,
  grams: readonly string[],
  most: number,
): Promise<{ gram: string; total: number }> {
  let rarest = { gram: grams[0]!, total: most }
  for (const gram of grams) {
    const row = await reader.get<{ total: number }>(sql`
      SELECT CAST(count(*) AS BIGINT) AS total FROM (
        SELECT repo_id FROM tag_grams WHERE org_id = ${organization} AND gram = ${gram} LIMIT ${rarest.total}) AS matches`)
    const total = row?.total ?? 0
    if (total < rarest.total) rarest = { gram, total }
    if (rarest.total === 0) break
  }
  return rarest
}

/** Repositories of an organization with this sequence and a number below `before`, the newest first. */
export async function reposWithGram(
  reader: Reader,
  { organization, gram }: { organization: number; gram: string },
  before: number,
  most: number,
): Promise<number[]> {
  const rows = await reader.all<{ repo: number }>(sql`
    SELECT repo_id AS repo FROM tag_grams
     WHERE org_id = ${organization} AND gram = ${gram} AND repo_id < ${before} ORDER BY repo_id DESC LIMIT ${most}`)
  return rows.map(({ repo }) => repo)
}

/** The given repositories that have all of these sequences. */
export async function reposWithGrams(
  reader: Reader,
  repos: readonly number[],
  grams: readonly string[],
): Promise<Set<number>> {
  if (repos.length === 0) return new Set()
  const rows = await reader.all<{ repo: number }>(sql`
    SELECT repo_id AS repo FROM tag_grams
     WHERE repo_id IN (${list(repos)}) AND gram IN (${list(grams)})
     GROUP BY repo_id HAVING count(*) = ${grams.length}`)
  return new Set(rows.map(({ repo }) => repo))
}

/** Deletes at most `limit` sequences of a repository. Returns the number of deleted rows. */
export async function dropTagGrams(tx: Tx, repo: number, limit: number): Promise<number> {
  return tx.run(sql`DELETE FROM tag_grams WHERE ${atMost(limit, 'tag_grams', 'gram', sql`repo_id = ${repo}`)}`)
}
