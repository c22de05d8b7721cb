import { insertsOf } from '#db/bulk.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { organizationsIn } from './fetches.store.ts'

/** A tag whose past at the upstream is still to be asked for. */
export type Asking = { repo: string; tag: string; failures: number; dueTime: string }

/** What has failed and rests goes on resting; does nothing while the upstream is known to tell nothing. */
export async function queueHistories(tx: Tx, repo: string, tags: readonly string[], now: string): Promise<void> {
  if (tags.length === 0) return
  const rests = await tx.get(
    sql`SELECT 1 AS found FROM follow_states WHERE repo_uid = ${repo} AND history_due > ${now}`,
  )
  if (rests) return
  const rows = tags.map((tag) => sql`(${repo}, ${rootOf(repo)}, ${tag}, 0, '', ${now})`)
  const into = sql`INSERT INTO follow_histories (repo_uid, organization, tag, failures, problem, due_time)`
  // Another time, so that a question which is under way does not end this one.
  const orAnew = sql`
    ON CONFLICT (repo_uid, tag) DO UPDATE SET due_time = excluded.due_time WHERE follow_histories.failures = 0`
  for (const insert of insertsOf(into, rows, orAnew)) await tx.run(insert)
}

export async function forgetHistories(tx: Tx, repo: string): Promise<void> {
  await tx.run(sql`DELETE FROM follow_histories WHERE repo_uid = ${repo}`)
  await tx.run(sql`
    UPDATE follow_states SET history_api = 0, history_due = '', history_problem = '' WHERE repo_uid = ${repo}`)
}

/** The organisations with something to ask for, the one that has waited longest first. */
export async function organizationsAsking(reader: Reader, now: string, most: number): Promise<string[]> {
  return organizationsIn(reader, sql`follow_histories`, now, most)
}

/** Of an organisation, the one that has waited longest, but for those whose upstream rests. */
export async function nextAsking(
  reader: Reader,
  organization: string,
  now: string,
  resting: readonly string[] = [],
): Promise<Asking | undefined> {
  const others = sql`repo_uid NOT IN (SELECT repo_uid FROM follows WHERE upstream_uid IN (${list(resting)}))`
  return reader.get<Asking>(sql`
    SELECT repo_uid AS repo, tag, failures, due_time AS "dueTime" FROM follow_histories
     WHERE organization = ${organization} AND due_time <= ${now} AND ${resting.length > 0 ? others : sql`1 = 1`}
     ORDER BY due_time, repo_uid, tag LIMIT 1`)
}

/** As it was read: what has been asked for anew meanwhile still waits. */
const asRead = ({ repo, tag, dueTime }: Asking): Sql =>
  sql`repo_uid = ${repo} AND tag = ${tag} AND due_time = ${dueTime}`

export async function endAsking(tx: Tx, asking: Asking): Promise<void> {
  await tx.run(sql`DELETE FROM follow_histories WHERE ${asRead(asking)}`)
}

export async function noteAsking(
  tx: Tx,
  asking: Asking,
  { failures, problem, dueTime }: { failures: number; problem: string; dueTime: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE follow_histories SET failures = ${failures}, problem = ${problem}, due_time = ${dueTime}
     WHERE ${asRead(asking)}`)
}

/** How often it has failed to ask for any of the tags of a repo that wait. */
export async function failuresOf(reader: Reader, repo: string): Promise<number> {
  const row = await reader.get<{ total: number }>(sql`
    SELECT CAST(coalesce(sum(failures), 0) AS BIGINT) AS total FROM follow_histories WHERE repo_uid = ${repo}`)
  return row?.total ?? 0
}

/** All tags of the repo that wait go on waiting until then. */
export async function delayAskings(tx: Tx, repo: string, dueTime: string): Promise<void> {
  await tx.run(sql`
    UPDATE follow_histories SET failures = failures + 1, due_time = ${dueTime} WHERE repo_uid = ${repo}`)
}

/** What is known of how the upstream of a repo tells of the past. */
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
