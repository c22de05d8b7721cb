import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'

/** Queued fetch: of a manifest with missing content, or of a manifest whose referrers have to be looked up again. */
export type Fetch = { repo: string; digest: string; round: number; failures: number; dueTime: string }

/**
 * Number of first fetches (round 0) in the queue of one repository from which `queueFetch` adds no more. Content beyond it is fetched
 * only by pulls. `queueTags` has no limit.
 */
const mostWaiting = 20_000

/** Queues a fetch. Does nothing if the manifest is queued already. */
export async function queueFetch(tx: Tx, repo: string, digest: string, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO follow_fetches (repo_uid, organization, digest, round, failures, problem, due_time)
    SELECT CAST(${repo} AS TEXT), CAST(${rootOf(repo)} AS TEXT), CAST(${digest} AS TEXT), 0, 0, '', CAST(${now} AS TEXT)
     WHERE NOT EXISTS (
       SELECT 1 FROM follow_fetches WHERE repo_uid = ${repo} AND round = 0 LIMIT 1 OFFSET ${mostWaiting - 1})
        ON CONFLICT (repo_uid, digest) DO NOTHING`)
}

/**
 * Records why a manifest could not be fetched, and queues the manifest for another attempt. If it is queued already, its due time
 * does not change.
 */
export async function noteProblem(
  tx: Tx,
  repo: string,
  { digest, problem, dueTime }: { digest: string; problem: string; dueTime: string },
): Promise<void> {
  await queueFetch(tx, repo, digest, dueTime)
  await tx.run(sql`UPDATE follow_fetches SET problem = ${problem} WHERE repo_uid = ${repo} AND digest = ${digest}`)
}

/**
 * Queues the manifests of all watched tags. With `anew`, fetches that are queued already start again, for example because the
 * wanted platforms have changed.
 */
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

/** Organizations with fetches that are due. The organization whose fetch has waited longest comes first. */
export async function organizationsToFetch(reader: Reader, now: string, most: number): Promise<string[]> {
  return organizationsIn(reader, sql`follow_fetches`, now, most)
}

/**
 * Organizations with due rows in a queue table. The organization with the longest wait comes first. With the index of
 * organizations and times, each organization takes one look-up.
 */
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

/** Fetch of the organization that has been due for the longest time. */
export async function nextFetch(reader: Reader, organization: string, now: string): Promise<Fetch | undefined> {
  return reader.get<Fetch>(sql`
    SELECT repo_uid AS repo, digest, round, failures, due_time AS "dueTime" FROM follow_fetches
     WHERE organization = ${organization} AND due_time <= ${now} ORDER BY due_time, repo_uid, digest LIMIT 1`)
}

/**
 * Condition for a fetch that is unchanged since it was read. A fetch that was queued again meanwhile does not match and is kept.
 */
const asRead = ({ repo, digest, round, dueTime }: Fetch): Sql =>
  sql`repo_uid = ${repo} AND digest = ${digest} AND round = ${round} AND due_time = ${dueTime}`

/** Stores the result of a fetch, and the time at which the fetch is due again. */
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
