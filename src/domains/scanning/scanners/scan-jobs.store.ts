import { atMost } from '#db/bulk.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { mostBegun, type ScanJob, type ScanRequest } from './scanners.model.ts'

type Job = Omit<ScanJob, 'id' | 'repo' | 'attempts' | 'remote' | 'beginTime' | 'problem'>

/** Number of jobs of an organization that a scanner has not started, at most `most`. */
export async function countWaiting(
  reader: Reader,
  scanner: number,
  organization: string,
  most: number,
): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM (
      SELECT 1 FROM scan_jobs
       WHERE scanner_id = ${scanner} AND organization = ${organization} AND remote = '' LIMIT ${most}) AS waiting`)
  return row!.total
}

/** Inserts a job. Returns false if the image is queued already. */
export async function insertJob(tx: Tx, scanner: number, repo: number, one: Job): Promise<boolean> {
  const inserted = await tx.run(sql`
    INSERT INTO scan_jobs (scanner_id, repo_id, organization, digest, media_type, actor, request_time, due_time)
    VALUES (${scanner}, ${repo}, ${one.organization}, ${one.digest}, ${one.mediaType}, ${one.actor}, ${one.requestTime},
            ${one.requestTime})
        ON CONFLICT (repo_id, digest, scanner_id) DO NOTHING`)
  return inserted === 1
}

/**
 * Organizations with due jobs for the scanner, in order, beginning after `after`. After the last organization, the first one
 * follows.
 */
export async function organizationsDue(reader: Reader, scanner: number, after: string, now: string): Promise<string[]> {
  const found = new Set([
    ...(await dueOf(reader, scanner, sql`remote <> ''`, now)),
    ...(await dueOf(reader, scanner, sql`remote = ''`, now)),
  ])
  const all = [...found].sort()
  return [...all.filter((one) => one > after), ...all.filter((one) => one <= after)]
}

/** Finds organizations with due jobs. One index lookup finds one organization. */
async function dueOf(reader: Reader, scanner: number, which: Sql, now: string): Promise<string[]> {
  const next = (after: Sql): Sql => sql`
    (SELECT organization FROM scan_jobs WHERE scanner_id = ${scanner} AND ${which} AND organization > ${after}
      ORDER BY organization LIMIT 1)`
  const rows = await reader.all<{ organization: string }>(sql`
    WITH RECURSIVE matches (organization) AS (
      SELECT ${next(sql`''`)}
       UNION ALL
      SELECT ${next(sql`matches.organization`)} FROM matches WHERE matches.organization IS NOT NULL
    )
    SELECT found.organization FROM (
      SELECT matches.organization, (
               SELECT j.due_time FROM scan_jobs j
                WHERE j.scanner_id = ${scanner} AND ${which} AND j.organization = matches.organization
                ORDER BY j.due_time LIMIT 1) AS due
        FROM matches WHERE matches.organization IS NOT NULL) AS found
     WHERE found.due <= ${now} LIMIT 1000`)
  return rows.map(({ organization }) => organization)
}

const columns = sql`
  id, repo_id AS repo, organization, digest, media_type AS "mediaType", actor, request_time AS "requestTime", remote,
  begin_time AS "beginTime", attempts, problem`

/**
 * The next due job of an organization. Started scans come first. A new scan follows only if the organization is below its limit
 * on concurrent scans.
 */
export async function nextJob(
  reader: Reader,
  scanner: number,
  organization: string,
  now: string,
): Promise<ScanJob | undefined> {
  const due = (which: Sql) =>
    reader.get<ScanJob>(sql`
      SELECT ${columns} FROM scan_jobs
       WHERE scanner_id = ${scanner} AND organization = ${organization} AND due_time <= ${now} AND ${which}
       ORDER BY due_time, id LIMIT 1`)
  const begun = await due(sql`remote <> ''`)
  if (begun) return begun
  const begins = await reader.all(sql`
    SELECT 1 AS found FROM scan_jobs
     WHERE scanner_id = ${scanner} AND organization = ${organization} AND remote <> '' LIMIT ${mostBegun}`)
  return begins.length < mostBegun ? due(sql`remote = ''`) : undefined
}

/** Stores the state of a job and the time of its next request. */
export async function noteJob(
  tx: Tx,
  { id, remote, beginTime, attempts, problem }: Pick<ScanJob, 'id' | 'remote' | 'beginTime' | 'attempts' | 'problem'>,
  dueTime: string,
): Promise<void> {
  await tx.run(sql`
    UPDATE scan_jobs SET remote = ${remote}, begin_time = ${beginTime}, attempts = ${attempts}, problem = ${problem},
           due_time = ${dueTime}
     WHERE id = ${id}`)
}

/** True if the job still exists. A job is deleted together with its image. */
export async function isWaiting(reader: Reader, id: number): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM scan_jobs WHERE id = ${id}`)) !== undefined
}

/** Deletes a job. Returns false if the job was deleted before, for example with its image. */
export async function deleteJob(tx: Tx, id: number): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM scan_jobs WHERE id = ${id}`)) === 1
}

/** The uid and name of a job's repository. Returns undefined while the repository is being deleted. */
export async function repoOf(reader: Reader, id: number): Promise<{ uid: string; name: string } | undefined> {
  return reader.get(sql`SELECT uid, name FROM repos WHERE id = ${id} AND ledger_id IS NOT NULL`)
}

export async function jobsOf(reader: Reader, repo: number, digests: readonly string[]): Promise<ScanRequest[]> {
  const all: ScanRequest[] = []
  for (const digest of digests) {
    const rows = await reader.all<ScanRequest>(sql`
      SELECT s.name AS scanner, j.digest, j.request_time AS "requestTime", j.begin_time AS "beginTime", j.attempts, j.problem
        FROM scan_jobs j JOIN scanners s ON s.id = j.scanner_id
       WHERE j.repo_id = ${repo} AND j.digest = ${digest} ORDER BY j.scanner_id`)
    all.push(...rows)
  }
  return all
}

/** Number of jobs for each scanner, by its number. */
export async function countJobs(reader: Reader): Promise<Map<number, number>> {
  const rows = await reader.all<{ scanner: number; total: number }>(sql`
    SELECT scanner_id AS scanner, count(*) AS total FROM scan_jobs GROUP BY scanner_id`)
  return new Map(rows.map(({ scanner, total }) => [scanner, total]))
}

/** Deletes the jobs of one image. */
export async function deleteJobsOfImage(tx: Tx, repo: number, digest: string): Promise<void> {
  await tx.run(sql`DELETE FROM scan_jobs WHERE repo_id = ${repo} AND digest = ${digest}`)
}

/** Deletes some jobs that a scanner has not started. Returns their number. */
export async function deleteSomeJobsFor(tx: Tx, scanner: number, most: number): Promise<number> {
  return tx.run(sql`
    DELETE FROM scan_jobs WHERE id IN (
      SELECT id FROM scan_jobs WHERE scanner_id = ${scanner} AND remote = '' ORDER BY organization, due_time LIMIT ${most})`)
}

/** Deletes at most `limit` jobs of a repository. Returns their number. */
export async function deleteJobsOf(tx: Tx, repo: number, limit: number): Promise<number> {
  return tx.run(sql`DELETE FROM scan_jobs WHERE ${atMost(limit, 'scan_jobs', 'id', sql`repo_id = ${repo}`)}`)
}
