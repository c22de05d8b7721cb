import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'

/** A manifest of which something is still to be brought, or what is about it is to be looked for again. */
export type Fetch = { repo: string; digest: string; round: number; failures: number; dueTime: string }

/** How many of one repo wait; what comes beyond that is brought by a pull alone. */
const mostWaiting = 20_000

/** Does nothing for what waits already. */
export async function queueFetch(tx: Tx, repo: string, digest: string, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO follow_fetches (repo_uid, organization, digest, round, failures, problem, due_time)
    SELECT CAST(${repo} AS TEXT), CAST(${rootOf(repo)} AS TEXT), CAST(${digest} AS TEXT), 0, 0, '', CAST(${now} AS TEXT)
     WHERE NOT EXISTS (
       SELECT 1 FROM follow_fetches WHERE repo_uid = ${repo} AND round = 0 LIMIT 1 OFFSET ${mostWaiting - 1})
        ON CONFLICT (repo_uid, digest) DO NOTHING`)
}

/** Shows why a manifest could not be brought, and has it tried again when it is due; one that waits already keeps its time. */
export async function noteProblem(
  tx: Tx,
  repo: string,
  { digest, problem, dueTime }: { digest: string; problem: string; dueTime: string },
): Promise<void> {
  await queueFetch(tx, repo, digest, dueTime)
  await tx.run(sql`UPDATE follow_fetches SET problem = ${problem} WHERE repo_uid = ${repo} AND digest = ${digest}`)
}

/** The same for what the tags that are looked at point to. With `anew`, what was all here by another measure is looked at again. */
export async function queueTags(tx: Tx, repo: { id: number; uid: string }, now: string, anew: boolean): Promise<void> {
  const renewal = sql`DO UPDATE SET round = 0, failures = 0, problem = '', due_time = excluded.due_time`
  await tx.run(sql`
    INSERT INTO follow_fetches (repo_uid, organization, digest, round, failures, problem, due_time)
    SELECT DISTINCT CAST(${repo.uid} AS TEXT), CAST(${rootOf(repo.uid)} AS TEXT), t.digest, 0, 0, '',
           CAST(${now} AS TEXT)
      FROM tags t JOIN follow_tags f ON f.repo_uid = ${repo.uid} AND f.tag = t.name
     WHERE t.repo_id = ${repo.id} AND t.digest <> ''
        ON CONFLICT (repo_uid, digest) ${anew ? renewal : sql`DO NOTHING`}`)
}

export async function forgetFetches(tx: Tx, repo: string): Promise<void> {
  await tx.run(sql`DELETE FROM follow_fetches WHERE repo_uid = ${repo}`)
}

/** The organisations with something to bring, the one that has waited longest first. */
export async function organizationsToFetch(reader: Reader, now: string, most: number): Promise<string[]> {
  return organizationsIn(reader, sql`follow_fetches`, now, most)
}

/** The same of any such queue, which has an index of organisations and times. One look-up each. */
export async function organizationsIn(reader: Reader, queue: Sql, now: string, most: number): Promise<string[]> {
  const next = (after: Sql): Sql =>
    sql`(SELECT organization FROM ${queue} WHERE organization > ${after} ORDER BY organization LIMIT 1)`
  const rows = await reader.all<{ organization: string }>(sql`
    WITH RECURSIVE names (organization) AS (
      SELECT ${next(sql`''`)}
       UNION ALL
      SELECT ${next(sql`names.organization`)} FROM names WHERE names.organization IS NOT NULL
    )
    SELECT found.organization FROM (
      SELECT names.organization, (
               SELECT f.due_time FROM ${queue} f
                WHERE f.organization = names.organization ORDER BY f.due_time LIMIT 1) AS due
        FROM names WHERE names.organization IS NOT NULL) AS found
     WHERE found.due <= ${now} ORDER BY found.due, found.organization LIMIT ${most}`)
  return rows.map(({ organization }) => organization)
}

/** Of an organisation, the one that has waited longest. */
export async function nextFetch(reader: Reader, organization: string, now: string): Promise<Fetch | undefined> {
  return reader.get<Fetch>(sql`
    SELECT repo_uid AS repo, digest, round, failures, due_time AS "dueTime" FROM follow_fetches
     WHERE organization = ${organization} AND due_time <= ${now} ORDER BY due_time, repo_uid, digest LIMIT 1`)
}

/** As it was read: what has been asked for anew meanwhile is still to be brought. */
const asRead = ({ repo, digest, round, dueTime }: Fetch): Sql =>
  sql`repo_uid = ${repo} AND digest = ${digest} AND round = ${round} AND due_time = ${dueTime}`

/** Notes how it went, and when to go on. */
export async function noteFetch(
  tx: Tx,
  fetch: Fetch,
  { round, failures, problem, dueTime }: Pick<Fetch, 'round' | 'failures' | 'dueTime'> & { problem: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE follow_fetches
       SET round = ${round}, failures = ${failures}, problem = ${problem}, due_time = ${dueTime}
     WHERE ${asRead(fetch)}`)
}

export async function endFetch(tx: Tx, fetch: Fetch): Promise<void> {
  await tx.run(sql`DELETE FROM follow_fetches WHERE ${asRead(fetch)}`)
}
