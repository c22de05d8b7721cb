import { insertsOf } from '#db/bulk.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { organizationsIn } from './fetches.store.ts'

/** Queued request for the upstream history of a tag. */
export type QueuedHistoryRequest = { repo: string; tag: string; failures: number; dueTime: string }

/**
 * Queues requests for the history of tags. A request that failed before keeps its due time. Does nothing while the upstream is
 * known to serve no history.
 */
export async function queueHistories(tx: Tx, repo: string, tags: readonly string[], now: string): Promise<void> {
  if (tags.length === 0) return
  const rests = await tx.get(
    sql`SELECT 1 AS found FROM follow_states WHERE repo_uid = ${repo} AND history_due > ${now}`,
  )
  if (rests) return
  const rows = tags.map((tag) => sql`(${repo}, ${rootOf(repo)}, ${tag}, 0, '', ${now})`)
  const into = sql`INSERT INTO follow_histories (repo_uid, organization, tag, failures, problem, due_time)`
  // The due time changes, so that a request in progress does not remove this new request.
  const orAnew = sql`
    ON CONFLICT (repo_uid, tag) DO UPDATE SET due_time = excluded.due_time WHERE follow_histories.failures = 0`
  for (const insert of insertsOf(into, rows, orAnew)) await tx.run(insert)
}

export async function forgetHistories(tx: Tx, repo: string): Promise<void> {
  await tx.run(sql`DELETE FROM follow_histories WHERE repo_uid = ${repo}`)
  await tx.run(sql`
    UPDATE follow_states SET history_api = 0, history_due = '', history_problem = '' WHERE repo_uid = ${repo}`)
}

/** Organizations with due requests. The organization with the longest wait comes first. */
export async function organizationsWithRequests(reader: Reader, now: string, most: number): Promise<string[]> {
  return organizationsIn(reader, sql`follow_histories`, now, most)
}

/** Request of the organization that has been due for the longest time. Requests to upstreams in `resting` are left out. */
export async function nextRequest(
  reader: Reader,
  organization: string,
  now: string,
  resting: readonly string[] = [],
): Promise<QueuedHistoryRequest | undefined> {
  const others = sql`repo_uid NOT IN (SELECT repo_uid FROM follows WHERE upstream_uid IN (${list(resting)}))`
  return reader.get<QueuedHistoryRequest>(sql`
    SELECT repo_uid AS repo, tag, failures, due_time AS "dueTime" FROM follow_histories
     WHERE organization = ${organization} AND due_time <= ${now} AND ${resting.length > 0 ? others : sql`1 = 1`}
     ORDER BY due_time, repo_uid, tag LIMIT 1`)
}

/**
 * Condition for a request that is unchanged since it was read. A request that was queued again meanwhile does not match and is
 * kept.
 */
const asRead = ({ repo, tag, dueTime }: QueuedHistoryRequest): Sql =>
  sql`repo_uid = ${repo} AND tag = ${tag} AND due_time = ${dueTime}`

export async function endRequest(tx: Tx, asking: QueuedHistoryRequest): Promise<void> {
  await tx.run(sql`DELETE FROM follow_histories WHERE ${asRead(asking)}`)
}

export async function noteRequest(
  tx: Tx,
  asking: QueuedHistoryRequest,
  { failures, problem, dueTime }: { failures: number; problem: string; dueTime: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE follow_histories SET failures = ${failures}, problem = ${problem}, due_time = ${dueTime}
     WHERE ${asRead(asking)}`)
}

/** Sum of the failures of all queued requests of a repository. */
export async function failuresOf(reader: Reader, repo: string): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT CAST(coalesce(sum(failures), 0) AS BIGINT) AS total FROM follow_histories WHERE repo_uid = ${repo}`)
  return row?.total ?? 0
}

/** Delays all queued requests of the repository to this time. */
export async function delayRequests(tx: Tx, repo: string, dueTime: string): Promise<void> {
  await tx.run(sql`
    UPDATE follow_histories SET failures = failures + 1, due_time = ${dueTime} WHERE repo_uid = ${repo}`)
}

/** Stores which history API the upstream of a repository has. If `due` is given, deletes the queued requests. */
export async function noteHistoryApi(
  tx: Tx,
  repo: string,
  { api, due, problem }: { api: number; due: string; problem: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE follow_states SET history_api = ${api}, history_due = ${due}, history_problem = ${problem}
     WHERE repo_uid = ${repo}`)
  if (due !== '') await tx.run(sql`DELETE FROM follow_histories WHERE repo_uid = ${repo}`)
}
