import { join, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import type { Severity, Vulnerability } from './vulnerabilities.model.ts'

type Row = Omit<Vulnerability, 'aliases' | 'references' | 'severities'> & {
  aliases: string
  references: string
  severities: string
}

const columns = sql`
  v.id, v.aliases, v.summary, v.details, v."references", v.severities,
  v.publish_time AS "publishTime", v.modify_time AS "modifyTime"`
const kind = 'vulnerabilities'
const everywhere = '/'

function fromRow(row: Row): Vulnerability {
  return {
    ...row,
    aliases: JSON.parse(row.aliases) as string[],
    references: JSON.parse(row.references) as Vulnerability['references'],
    severities: JSON.parse(row.severities) as Severity[],
  }
}

/** One page of vulnerabilities, and one more row. If `names` is not empty, lists only vulnerabilities with one of the names. */
export async function listVulnerabilities(
  reader: Reader,
  page: Page,
  names: readonly string[],
): Promise<Vulnerability[]> {
  const dir = page.order.desc ? sql`DESC` : sql`ASC`
  const past = page.order.desc ? sql`<` : sql`>`
  const conditions = [...named(names), ...(page.after ? [sql`v.id ${past} ${page.after.value}`] : [])]
  const where = conditions.length > 0 ? sql`WHERE ${join(conditions, ' AND ')}` : sql``
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM vulnerabilities v ${where}
     ORDER BY v.id ${dir} LIMIT ${page.size + 1} OFFSET ${page.skip}`)
  return rows.map(fromRow)
}

export async function countVulnerabilities(reader: Reader, names: readonly string[]): Promise<number> {
  const query =
    names.length > 0
      ? sql`SELECT count(*) AS total FROM vulnerabilities v WHERE ${join(named(names), ' AND ')}`
      : sql`SELECT CAST(coalesce(sum(total), 0) AS BIGINT) AS total
              FROM list_counts WHERE kind = ${kind} AND place = ${everywhere}`
  return Number((await reader.get<{ total: number }>(query))?.total ?? 0)
}

function named(names: readonly string[]): Sql[] {
  if (names.length === 0) return []
  return [sql`v.id IN (SELECT n.vulnerability_id FROM vulnerability_names n WHERE n.name IN (${list(names)}))`]
}

export async function findVulnerabilities(reader: Reader, ids: readonly string[]): Promise<Map<string, Vulnerability>> {
  const rows = await reader.all<Row>(sql`SELECT ${columns} FROM vulnerabilities v WHERE v.id IN (${list(ids)})`)
  return new Map(rows.map((row) => [row.id, fromRow(row)]))
}

/** Severities of vulnerabilities. The keys are the names. */
export async function severitiesOf(
  reader: Reader,
  names: readonly string[],
): Promise<{ name: string; severities: Severity[] }[]> {
  const rows = await reader.all<{ name: string; severities: string }>(sql`
    SELECT n.name, v.severities
      FROM vulnerability_names n JOIN vulnerabilities v ON v.id = n.vulnerability_id
     WHERE n.name IN (${list(names)}) AND v.severities <> '[]'
     ORDER BY n.name, v.id`)
  return rows.map(({ name, severities }) => ({ name, severities: JSON.parse(severities) as Severity[] }))
}

/** Inserts or replaces vulnerabilities. `known` contains the present rows with the same IDs. */
export async function saveVulnerabilities(
  tx: Tx,
  saved: readonly Vulnerability[],
  known: ReadonlyMap<string, Vulnerability>,
  now: string,
): Promise<void> {
  for (const one of saved) {
    await tx.run(sql`
      INSERT INTO vulnerabilities (id, aliases, summary, details, "references", severities, publish_time, modify_time,
             create_time, update_time)
      VALUES (${one.id}, ${JSON.stringify(one.aliases)}, ${one.summary}, ${one.details},
              ${JSON.stringify(one.references)}, ${JSON.stringify(one.severities)}, ${one.publishTime},
              ${one.modifyTime}, ${now}, ${now})
          ON CONFLICT (id) DO UPDATE SET aliases = excluded.aliases, summary = excluded.summary,
             details = excluded.details, "references" = excluded."references", severities = excluded.severities,
             publish_time = excluded.publish_time, modify_time = excluded.modify_time,
             update_time = excluded.update_time`)
    if (known.has(one.id)) {
      await tx.run(sql`DELETE FROM vulnerability_names WHERE vulnerability_id = ${one.id}`)
    }
    const names = [...new Set([one.id, ...one.aliases])].map((name) => sql`(${name}, ${one.id})`)
    await tx.run(sql`INSERT INTO vulnerability_names (name, vulnerability_id) VALUES ${join(names, ', ')}`)
  }
  const created = saved.filter(({ id }) => !known.has(id)).length
  await tx.run(sql`
    INSERT INTO list_counts (kind, place, shard, total) VALUES (${kind}, ${everywhere}, ${tx.shard}, ${created})
        ON CONFLICT (kind, place, shard) DO UPDATE SET total = list_counts.total + excluded.total`)
}
