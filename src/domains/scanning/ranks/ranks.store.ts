import { allOf, insertsOf } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { PutCounts, Rank, SourceRun } from '../records/records.model.ts'

type RankRow = {
  cve: string
  exploited: number
  addDate: string
  dueDate: string
  ransomware: number
  epss: number
  percentile: number
}

/** Probabilities and shares are stored in millionths, so that they compare exactly. A missing value is below all others. */
const millionths = (share: number): number => Math.round(share * 1e6)
const unrated = -1

function toRow({ cve, exploited, likelihood }: Rank): RankRow {
  return {
    cve,
    exploited: exploited ? 1 : 0,
    addDate: exploited?.addDate ?? '',
    dueDate: exploited?.dueDate ?? '',
    ransomware: exploited?.ransomware ? 1 : 0,
    epss: likelihood ? millionths(likelihood.epss) : unrated,
    percentile: likelihood ? millionths(likelihood.percentile) : unrated,
  }
}

function fromRow({ cve, exploited, addDate, dueDate, ransomware, epss, percentile }: RankRow): Rank {
  return {
    cve,
    ...(exploited === 1 && { exploited: { addDate, dueDate, ransomware: ransomware === 1 } }),
    ...(epss !== unrated && { likelihood: { epss: epss / 1e6, percentile: percentile / 1e6 } }),
  }
}

const columns = sql`cve, exploited, add_date AS "addDate", due_date AS "dueDate", ransomware, epss, percentile`
const textOf = (row: RankRow): string => JSON.stringify(fromRow(row))

/** Inserts or updates the exploitation data of a source. Each CVE must occur once. */
export async function putRanks(tx: Tx, run: SourceRun, ranks: readonly Rank[]): Promise<PutCounts> {
  const ofSource = (some: readonly Rank[]) => sql`
    SELECT ${columns} FROM vulnerability_ranks
     WHERE cve IN (${list(some.map(({ cve }) => cve))}) AND source_id = ${run.sourceNo}`
  const known = new Map((await allOf<RankRow, Rank>(tx, ranks, ofSource)).map((row) => [row.cve, textOf(row)]))
  const rows = ranks.map(toRow)
  const into = sql`
    INSERT INTO vulnerability_ranks (cve, source_id, generation, exploited, add_date, due_date, ransomware, epss, percentile)`
  const values = rows.map(
    (one) => sql`(${one.cve}, ${run.sourceNo}, ${run.generation}, ${one.exploited}, ${one.addDate}, ${one.dueDate},
      ${one.ransomware}, ${one.epss}, ${one.percentile})`,
  )
  const then = sql`ON CONFLICT (cve, source_id) DO UPDATE SET generation = excluded.generation,
    exploited = excluded.exploited, add_date = excluded.add_date, due_date = excluded.due_date,
    ransomware = excluded.ransomware, epss = excluded.epss, percentile = excluded.percentile`
  for (const insert of insertsOf(into, values, then)) await tx.run(insert)
  const same = rows.filter((one) => known.get(one.cve) === textOf(one)).length
  return { created: rows.length - known.size, updated: known.size - same, unchanged: same }
}

/** Deletes some exploitation data that no run since `generation` contained. Returns the number of deleted rows. */
export async function deleteOutdated(tx: Tx, { sourceNo, generation }: SourceRun, most: number): Promise<number> {
  const rows = await tx.all<{ cve: string }>(sql`
    SELECT cve FROM vulnerability_ranks WHERE source_id = ${sourceNo} AND generation < ${generation}
     ORDER BY source_id, generation, cve LIMIT ${most}`)
  for (const some of chunks(rows, 400)) {
    await tx.run(sql`
      DELETE FROM vulnerability_ranks
       WHERE cve IN (${list(some.map(({ cve }) => cve))}) AND source_id = ${sourceNo}`)
  }
  return rows.length
}

/** Exploitation data of some vulnerabilities by CVE ID. */
export async function ranksOf(reader: Reader, cves: readonly string[]): Promise<Map<string, Rank>> {
  const found = new Map<string, Rank>()
  const named = (some: readonly string[]) => sql`
    SELECT ${columns} FROM vulnerability_ranks WHERE cve IN (${list(some)}) ORDER BY cve, source_id`
  for (const row of await allOf<RankRow, string>(reader, cves, named)) {
    found.set(row.cve, { ...found.get(row.cve), ...fromRow(row) })
  }
  return found
}

export async function countRanks(reader: Reader): Promise<Map<number, number>> {
  const rows = await reader.all<{ sourceNo: number; total: number }>(sql`
    SELECT source_id AS "sourceNo", count(*) AS total FROM vulnerability_ranks GROUP BY source_id`)
  return new Map(rows.map(({ sourceNo, total }) => [sourceNo, total]))
}
