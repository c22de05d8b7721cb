import { join, type Reader, type Sql, sql } from '#db/sql.ts'

export type UnpulledRow = { digest: string; mediaType: string; size: number; createTime: string }

/** Of rows `p`: not of these identities or their push tokens. */
function others(except: readonly string[]): Sql {
  if (except.length === 0) return sql`1 = 1`
  const ofThem = except.map((uid) => sql`p.caller = ${uid} OR (p.caller > ${`${uid}/`} AND p.caller < ${`${uid}0`})`)
  return sql`NOT (${join(ofThem, ' OR ')})`
}

/** Rows `p` of usage that tell of a pull with GET: those that became one are in the table of last pulls. */
const counted = sql`
  p.gets > 0 AND (p.caller <> '*' OR NOT EXISTS (
    SELECT 1 FROM digest_last_pulls l
     WHERE l.repo_id = p.repo_id AND l.digest = p.digest AND l.last_time >= p.day))`

type Pull = { time: string; caller: string }

/** The last of so many manifests behind a digest; `undefined` when there are not as many. */
export async function endOfWindow(reader: Reader, repo: number, after: string, most: number) {
  const row = await reader.get<{ digest: string }>(sql`
    SELECT digest FROM manifests WHERE repo_id = ${repo} AND digest > ${after} ORDER BY digest LIMIT 1 OFFSET ${most - 1}`)
  return row?.digest
}

/** Manifests behind one digest, and up to another, which were there and have not been pulled since. */
export async function unpulledIn(
  reader: Reader,
  repo: number,
  asked: { after: string; upTo: string | undefined; since: string; except: readonly string[]; most: number },
): Promise<UnpulledRow[]> {
  const { after, upTo, since, except, most } = asked
  return reader.all<UnpulledRow>(sql`
    SELECT m.digest, m.media_type AS "mediaType", m.size, m.create_time AS "createTime" FROM manifests m
     WHERE m.repo_id = ${repo} AND m.digest > ${after} AND ${upTo === undefined ? sql`1 = 1` : sql`m.digest <= ${upTo}`}
       AND m.create_time <= ${since}
       AND NOT EXISTS (
             SELECT 1 FROM digest_usage p
              WHERE p.repo_id = m.repo_id AND p.digest = m.digest AND p.day >= ${since.slice(0, 10)}
                AND p.last_time > ${since} AND ${counted} AND ${others(except)})
       AND NOT EXISTS (
             SELECT 1 FROM digest_last_pulls p
              WHERE p.repo_id = m.repo_id AND p.digest = m.digest AND p.last_time > ${since} AND ${others(except)})
     ORDER BY m.digest LIMIT ${most}`)
}

/** Who pulled it last, as far as that is known. */
export async function lastPull(
  reader: Reader,
  repo: number,
  digest: string,
  except: readonly string[],
): Promise<Pull | undefined> {
  const inUsage = await reader.get<Pull>(sql`
    SELECT p.last_time AS time, p.caller FROM digest_usage p
     WHERE p.repo_id = ${repo} AND p.digest = ${digest} AND ${counted} AND ${others(except)}
     ORDER BY p.day DESC, p.last_time DESC, p.caller LIMIT 1`)
  const before = await reader.get<Pull>(sql`
    SELECT p.last_time AS time, p.caller FROM digest_last_pulls p
     WHERE p.repo_id = ${repo} AND p.digest = ${digest} AND ${others(except)}
     ORDER BY p.last_time DESC, p.caller LIMIT 1`)
  return !inUsage || (before && before.time > inUsage.time) ? before : inUsage
}

/** When it was last asked for with HEAD. */
export async function lastCheck(reader: Reader, repo: number, digest: string): Promise<string | undefined> {
  const row = await reader.get<{ time: string }>(sql`
    SELECT u.last_time AS time FROM digest_usage u
     WHERE u.repo_id = ${repo} AND u.digest = ${digest} AND u.checks > 0
     ORDER BY u.day DESC, u.last_time DESC LIMIT 1`)
  return row?.time
}
