import { insertsOf } from '#db/bulk.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { maxCallers, nobody, others, type Usage } from './digest-usage.model.ts'

const into = sql`INSERT INTO digest_usage (repo_id, digest, day, caller, gets, checks, last_time)`
const adding = sql`
  ON CONFLICT (repo_id, digest, day, caller) DO UPDATE
     SET gets = digest_usage.gets + excluded.gets, checks = digest_usage.checks + excluded.checks,
         last_time = CASE WHEN excluded.last_time > digest_usage.last_time THEN excluded.last_time
                          ELSE digest_usage.last_time END`

/** Adds counts to the stored counts. Each given row must have another key. */
export async function addUsage(tx: Tx, rows: readonly Usage[]): Promise<void> {
  const values = rows.map(({ repo, digest, day, caller, gets, checks, lastTime }) => {
    return sql`(${repo}, ${digest}, ${day}, ${caller}, ${gets}, ${checks}, ${lastTime})`
  })
  for (const statement of insertsOf(into, values, adding)) await tx.run(statement)
}

/** Callers with their own row for a digest and a day. */
export async function callersOf(
  reader: Reader,
  { repo, digest, day }: Pick<Usage, 'repo' | 'digest' | 'day'>,
): Promise<string[]> {
  const rows = await reader.all<{ caller: string }>(sql`
    SELECT caller FROM digest_usage
     WHERE repo_id = ${repo} AND digest = ${digest} AND day = ${day} AND caller <> ${nobody} AND caller <> ${others}
     LIMIT ${maxCallers}`)
  return rows.map(({ caller }) => caller)
}

export type UsageRowKey = { repo: number; digest: string }

/** Position of the row that follows after `rows` rows. Returns undefined if there are fewer rows. */
export async function usageRowAfter(
  reader: Reader,
  { repo, digest }: UsageRowKey,
  rows: number,
): Promise<UsageRowKey | undefined> {
  return reader.get<UsageRowKey>(sql`
    SELECT repo_id AS repo, digest FROM digest_usage WHERE (repo_id, digest) > (${repo}, ${digest})
     ORDER BY repo_id, digest LIMIT 1 OFFSET ${rows}`)
}

/**
 * Deletes rows from before `day` between two positions. Keeps the rows of the last day on which an existing manifest was pulled.
 */
export async function deleteBefore(
  tx: Tx,
  day: string,
  after: UsageRowKey,
  upTo: UsageRowKey | undefined,
): Promise<number> {
  return tx.run(sql`DELETE FROM digest_usage AS u WHERE ${outdated(day, after, upTo)}`)
}

/** Merges the rows of the callers of each day, between two positions and from before `day`. Returns the number of merged rows. */
export async function mergeCallers(
  tx: Tx,
  day: string,
  after: UsageRowKey,
  upTo: UsageRowKey | undefined,
): Promise<number> {
  const named = sql`${outdated(day, after, upTo)} AND u.caller <> ${nobody} AND u.caller <> ${others}`
  await noteLastPulls(tx, named)
  await tx.run(sql`
    ${into}
    SELECT u.repo_id, u.digest, u.day, CAST(${others} AS TEXT), sum(u.gets), sum(u.checks), max(u.last_time)
      FROM digest_usage AS u WHERE ${named}
     GROUP BY u.repo_id, u.digest, u.day ${adding}`)
  return tx.run(sql`DELETE FROM digest_usage AS u WHERE ${named}`)
}

/**
 * Stores the time of the last pull of each caller whose row is about to be merged. Also stores it for callers on the same days
 * without their own row. A later query can then still exclude a caller.
 */
async function noteLastPulls(tx: Tx, named: Sql): Promise<void> {
  const isLater = sql`
    ON CONFLICT (repo_id, digest, caller) DO UPDATE SET last_time = excluded.last_time
     WHERE digest_last_pulls.last_time < excluded.last_time`
  await tx.run(sql`
    INSERT INTO digest_last_pulls (repo_id, digest, caller, last_time)
    SELECT u.repo_id, u.digest, u.caller, max(u.last_time) FROM digest_usage AS u WHERE ${named} AND u.gets > 0
     GROUP BY u.repo_id, u.digest, u.caller ${isLater}`)
  await tx.run(sql`
    INSERT INTO digest_last_pulls (repo_id, digest, caller, last_time)
    SELECT o.repo_id, o.digest, o.caller, max(o.last_time)
      FROM digest_usage AS o JOIN digest_usage AS u ON u.repo_id = o.repo_id AND u.digest = o.digest AND u.day = o.day
     WHERE o.caller = ${others} AND o.gets > 0 AND ${named}
     GROUP BY o.repo_id, o.digest, o.caller ${isLater}`)
}

/** Deletes the last pulls of callers from before `day`, for manifests between two positions. */
export async function forgetLastPulls(
  tx: Tx,
  day: string,
  after: UsageRowKey,
  upTo: UsageRowKey | undefined,
): Promise<number> {
  const end = upTo ? sql`AND (repo_id, digest) <= (${upTo.repo}, ${upTo.digest})` : sql``
  return tx.run(sql`
    DELETE FROM digest_last_pulls WHERE (repo_id, digest) > (${after.repo}, ${after.digest}) ${end} AND last_time < ${day}`)
}

function outdated(day: string, after: UsageRowKey, upTo: UsageRowKey | undefined): Sql {
  const end = upTo ? sql`AND (u.repo_id, u.digest) <= (${upTo.repo}, ${upTo.digest})` : sql``
  return sql`
    (u.repo_id, u.digest) > (${after.repo}, ${after.digest}) ${end} AND u.day < ${day}
    AND (EXISTS (SELECT 1 FROM digest_usage n
                  WHERE n.repo_id = u.repo_id AND n.digest = u.digest AND n.day > u.day)
         OR NOT EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = u.repo_id AND m.digest = u.digest))`
}

/** True if the manifest was pulled with GET on one of these days. `until` is exclusive. */
export async function wasPulledOn(
  reader: Reader,
  { repo, digest }: UsageRowKey,
  { from, until }: { from: string; until: string },
): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM digest_usage
     WHERE repo_id = ${repo} AND digest = ${digest} AND day >= ${from} AND day < ${until} AND gets > 0 LIMIT 1`)
  return row !== undefined
}

/** True if the manifest was requested since then, with GET or HEAD. */
export async function wasAskedSince(
  reader: Reader,
  { repo, digest }: UsageRowKey,
  since: { day: string; time: string },
): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM digest_usage
     WHERE repo_id = ${repo} AND digest = ${digest} AND day >= ${since.day} AND last_time > ${since.time} LIMIT 1`)
  return row !== undefined
}
