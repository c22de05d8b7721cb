import { countRows, exists, insertsOf } from '#db/bulk.ts'
import { after } from '#db/listing.ts'
import { pageTail } from '#db/listing-beyond.ts'
import { ident, list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { Page } from '#lib/lists/paging.ts'
import { rootOf } from '#lib/uid.ts'
import {
  type Follow,
  type FollowedTag,
  type FollowProgress,
  type FollowStatus,
  withCurrentState,
} from './follows.model.ts'
import { type SyncStatus, syncStates } from './sync-states.model.ts'

type Row = Omit<FollowStatus, 'tags' | 'platforms'> & { tags: string; platforms: string }

const columns = sql`
  f.repo_uid AS repo, f.upstream_uid AS upstream, f.path, f.mode, f.tags, f.platforms, f.interval_ms AS "intervalMs", f.stale_for_ms AS "staleForMs",
  f.create_time AS "createTime", f.update_time AS "updateTime", s.state, s.state_time AS "stateTime", s.problem,
  s.failures, s.list_time AS "listTime", s.list_due AS "listDue", s.due_time AS "dueTime", s.check_time AS "checkTime", f.setter,
  s.history_api AS "historyApi"`
const tagCount = sql`(SELECT count(*) FROM follow_tags t WHERE t.repo_uid = f.repo_uid) AS "tagCount"`
const fetchCounts = sql`
  (SELECT count(*) FROM follow_fetches w WHERE w.repo_uid = f.repo_uid AND w.round = 0) AS waiting,
  coalesce((SELECT w.problem FROM follow_fetches w
             WHERE w.repo_uid = f.repo_uid AND w.problem <> '' LIMIT 1), '') AS "fetchProblem"`
const historyCounts = sql`
  (SELECT count(*) FROM follow_histories q WHERE q.repo_uid = f.repo_uid) AS histories,
  coalesce(NULLIF(s.history_problem, ''), (SELECT q.problem FROM follow_histories q
             WHERE q.repo_uid = f.repo_uid AND q.problem <> '' LIMIT 1), '') AS "historyProblem"`
const noFetches = sql`0 AS waiting, '' AS "fetchProblem", 0 AS histories, '' AS "historyProblem"`
const noCounts = sql`0 AS "tagCount", ${noFetches}`
const from = sql`follows f JOIN follow_states s ON s.repo_uid = f.repo_uid`

function fromRow(row: Row): FollowStatus {
  return { ...row, tags: JSON.parse(row.tags) as string[], platforms: JSON.parse(row.platforms) as string[] }
}

export async function findFollow(reader: Reader, repo: string): Promise<FollowStatus | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${columns}, ${tagCount}, ${fetchCounts}, ${historyCounts} FROM ${from} WHERE f.repo_uid = ${repo}`)
  return row && fromRow(row)
}

/** Finds a mirror without counting its tags. Pulls do not need this number. */
export async function findFollowWithoutCounts(reader: Reader, repo: string): Promise<FollowStatus | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${columns}, ${noCounts} FROM ${from} WHERE f.repo_uid = ${repo}`)
  return row && fromRow(row)
}

/** A page of the mirrors below a group and one row more. The counts of queued fetches are left out. */
export async function followsBelow(reader: Reader, scope: string, page: Page): Promise<FollowStatus[]> {
  const isByUid = page.order.column === 'uid'
  const key = isByUid ? sql`f.repo_uid` : ident(`f.${page.order.column}`)
  const inside = isByUid ? isBelow(scope) : isInside(scope)
  const rows = await reader.all<Row>(sql`
    SELECT ${columns}, ${tagCount}, ${noFetches} FROM ${from}
     WHERE ${inside} AND ${after(page, key, sql`f.repo_uid`)} ${pageTail(page, [key, sql`f.repo_uid`])}`)
  return rows.map(fromRow)
}

export async function countFollowsBelow(reader: Reader, scope: string): Promise<number> {
  return countRows(reader, sql`FROM follows f WHERE ${isBelow(scope)}`)
}

/** Same condition, for the indexes with the mirrors of an organization in order. Otherwise the database would sort the mirrors. */
function isInside(scope: string): Sql {
  const root = rootOf(scope)
  const inRoot = sql`substr(f.repo_uid, 1, 40) = ${root}`
  const uid = sql`(f.repo_uid || '')`
  return scope === root ? inRoot : sql`${inRoot} AND ${uid} > ${`${scope}/`} AND ${uid} < ${`${scope}0`}`
}

const isBelow = (scope: string): Sql => sql`f.repo_uid > ${`${scope}/`} AND f.repo_uid < ${`${scope}0`}`

type StateRow = { repo: string } & Pick<FollowProgress, 'state' | 'stateTime' | 'dueTime'>

const stateColumns = sql`repo_uid AS repo, state, state_time AS "stateTime", due_time AS "dueTime"`

const statusAt =
  (now: string) =>
  (row: StateRow): SyncStatus => {
    const { state, stateTime: since } = withCurrentState(row, now)
    return { repo: row.repo, state, since }
  }

/** State of a mirror in the same form as the state of a copied repository. */
export async function findFollowState(reader: Reader, repo: string, now: string): Promise<SyncStatus | undefined> {
  const row = await reader.get<StateRow>(sql`SELECT ${stateColumns} FROM follow_states WHERE repo_uid = ${repo}`)
  return row && statusAt(now)(row)
}

/** States of the mirrors below a group, ordered by the uids of the repositories. */
export async function followStatesBelow(
  reader: Reader,
  scope: string,
  now: string,
  most: number,
): Promise<SyncStatus[]> {
  const rows = await reader.all<StateRow>(sql`
    SELECT ${stateColumns} FROM follow_states
     WHERE repo_uid > ${`${scope}/`} AND repo_uid < ${`${scope}0`} ORDER BY repo_uid LIMIT ${most}`)
  return rows.map(statusAt(now))
}

export async function countByUpstream(reader: Reader, upstream: string): Promise<number> {
  return countRows(reader, sql`FROM follows WHERE upstream_uid = ${upstream}`)
}

/** Stores a mirror. If it has another source than before, its progress starts from the beginning. */
export async function saveFollow(tx: Tx, one: Follow, progress: FollowProgress): Promise<void> {
  await tx.run(sql`
    INSERT INTO follows
           (repo_uid, upstream_uid, path, mode, tags, interval_ms, stale_for_ms, create_time, update_time, setter,
            platforms)
    VALUES (${one.repo}, ${one.upstream}, ${one.path}, ${one.mode}, ${JSON.stringify(one.tags)}, ${one.intervalMs},
            ${one.staleForMs}, ${one.createTime}, ${one.updateTime}, ${one.setter}, ${JSON.stringify(one.platforms)})
        ON CONFLICT (repo_uid) DO UPDATE SET upstream_uid = excluded.upstream_uid, path = excluded.path,
           mode = excluded.mode, tags = excluded.tags, interval_ms = excluded.interval_ms,
           stale_for_ms = excluded.stale_for_ms, setter = excluded.setter, platforms = excluded.platforms,
           create_time = excluded.create_time, update_time = excluded.update_time`)
  await tx.run(sql`
    INSERT INTO follow_states (repo_uid, state, state_time, problem, failures, list_time, list_due, due_time)
    VALUES (${one.repo}, ${progress.state}, ${progress.stateTime}, ${progress.problem}, ${progress.failures},
            ${progress.listTime}, ${progress.listDue}, ${progress.dueTime})
        ON CONFLICT (repo_uid) DO UPDATE SET state = excluded.state, state_time = excluded.state_time,
           problem = excluded.problem, failures = excluded.failures, list_time = excluded.list_time,
           list_due = excluded.list_due, due_time = excluded.due_time`)
}

/** Deletes the mirror with its progress and its watched tags. Returns false if the repository is not a mirror. */
export async function deleteFollow(tx: Tx, repo: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM follows WHERE repo_uid = ${repo}`)) > 0
}

/** True if the configuration of the mirror is unchanged. Each change of it locks the repository. */
export async function isCurrentFollow(reader: Reader, { repo, updateTime }: Follow): Promise<boolean> {
  return exists(reader, sql`FROM follows WHERE repo_uid = ${repo} AND update_time = ${updateTime}`)
}

export async function forgetTags(tx: Tx, repo: string): Promise<void> {
  await tx.run(sql`DELETE FROM follow_tags WHERE repo_uid = ${repo}`)
}

const dueNow = (now: string): Sql => sql`s.due_time <= ${now}`

/** Organizations with mirrors that are due. The organization with the longest wait comes first. */
export async function organizationsWithDue(reader: Reader, now: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ organization: string }>(sql`
    SELECT substr(s.repo_uid, 1, 40) AS organization FROM follow_states s
     WHERE ${dueNow(now)} GROUP BY 1 ORDER BY min(s.due_time), 1 LIMIT ${most}`)
  return rows.map(({ organization }) => organization)
}

/** Mirror of the organization that has been due for the longest time. */
export async function nextDueFollow(
  reader: Reader,
  organization: string,
  now: string,
): Promise<FollowStatus | undefined> {
  const row = await reader.get<Row>(sql`
    SELECT ${columns}, ${noCounts} FROM ${from}
     WHERE ${dueNow(now)} AND s.repo_uid > ${`${organization}/`} AND s.repo_uid < ${`${organization}0`}
     ORDER BY s.due_time, s.repo_uid LIMIT 1`)
  return row && fromRow(row)
}

/** Clears the check times of all mirrors of the upstream. Results of checks in progress become invalid. */
export async function resetChecks(tx: Tx, upstream: string, now: string): Promise<void> {
  const followers = sql`(SELECT repo_uid FROM follows WHERE upstream_uid = ${upstream})`
  await tx.run(sql`UPDATE follow_tags SET checked_time = '', missed = 0 WHERE repo_uid IN ${followers}`)
  await tx.run(sql`DELETE FROM follow_histories WHERE repo_uid IN ${followers}`)
  await tx.run(sql`
    UPDATE follow_states
       SET list_time = '', list_due = ${now}, history_api = 0, history_due = '', history_problem = ''
     WHERE repo_uid IN ${followers}`)
  await tx.run(sql`UPDATE follows SET update_time = ${now} WHERE upstream_uid = ${upstream}`)
}

/**
 * Makes the tags of a mirror due now, except tags that a recent check did not find. Otherwise repeated requests could make a tag
 * count as deleted too soon. Returns false and does nothing if a check was requested after `before`.
 */
export async function makeTagsDue(tx: Tx, repo: string, now: string, before: string): Promise<boolean> {
  const asked = await tx.run(sql`
    UPDATE follow_states SET check_time = ${now} WHERE repo_uid = ${repo} AND check_time <= ${before}`)
  if (asked === 0) return false
  await tx.run(
    sql`UPDATE follow_tags SET due_time = ${now} WHERE repo_uid = ${repo} AND due_time > ${now} AND missed = 0`,
  )
  await tx.run(sql`
    UPDATE follow_states
       SET state = ${syncStates.queued}, list_due = ${now}, due_time = ${now}, failures = 0,
           state_time = CASE WHEN state = ${syncStates.queued} THEN state_time ELSE ${now} END
     WHERE repo_uid = ${repo}`)
  return true
}

/**
 * Sets the state of a mirror to in progress. A failed state remains until a check succeeds. Does nothing if the configuration has
 * changed.
 */
export async function recordCheckStart(tx: Tx, { repo, updateTime }: Follow, now: string): Promise<void> {
  await tx.run(sql`
    UPDATE follow_states SET state = ${syncStates.inProgress}, state_time = ${now}
     WHERE repo_uid = ${repo} AND state <> ${syncStates.failed} AND ${isStill(repo, updateTime)}`)
}

const isStill = (repo: string, updateTime: string): Sql =>
  sql`EXISTS (SELECT 1 FROM follows f WHERE f.repo_uid = ${repo} AND f.update_time = ${updateTime})`

export type ProgressPatch = Omit<FollowProgress, 'stateTime'> & { now: string }

/** Stores the progress of a mirror. Does nothing if its configuration has changed. */
export async function noteFollowProgress(tx: Tx, { repo, updateTime }: Follow, patch: ProgressPatch): Promise<void> {
  const { state, problem, failures, listTime, listDue, dueTime, now } = patch
  await tx.run(sql`
    UPDATE follow_states
       SET state_time = CASE WHEN state = ${state} THEN state_time ELSE ${now} END,
           state = ${state}, problem = ${problem}, failures = ${failures}, list_time = ${listTime},
           list_due = ${listDue}, due_time = ${dueTime}
     WHERE repo_uid = ${repo} AND ${isStill(repo, updateTime)}`)
}

/** Watched tags of a mirror that are due, the longest wait first. */
export async function dueTags(reader: Reader, repo: string, now: string, most: number): Promise<FollowedTag[]> {
  return reader.all<FollowedTag>(sql`
    SELECT tag, checked_time AS "checkedTime", missed FROM follow_tags
     WHERE repo_uid = ${repo} AND due_time <= ${now} ORDER BY due_time, tag LIMIT ${most}`)
}

/** Due time of the next watched tag. Empty if the mirror watches no tags. */
export async function nextTagDue(reader: Reader, repo: string): Promise<string> {
  const row = await reader.get<{ due: string }>(sql`
    SELECT due_time AS due FROM follow_tags WHERE repo_uid = ${repo} ORDER BY due_time LIMIT 1`)
  return row?.due ?? ''
}

export async function findFollowedTag(reader: Reader, repo: string, tag: string): Promise<FollowedTag | undefined> {
  return reader.get<FollowedTag>(sql`
    SELECT tag, checked_time AS "checkedTime", missed FROM follow_tags WHERE repo_uid = ${repo} AND tag = ${tag}`)
}

export async function countFollowedTags(reader: Reader, repo: string): Promise<number> {
  return countRows(reader, sql`FROM follow_tags WHERE repo_uid = ${repo}`)
}

export async function followedTagNames(reader: Reader, repo: string): Promise<string[]> {
  const rows = await reader.all<{ tag: string }>(sql`SELECT tag FROM follow_tags WHERE repo_uid = ${repo} ORDER BY tag`)
  return rows.map(({ tag }) => tag)
}

/** Adds watched tags. Tags that are watched already stay unchanged. */
export async function addFollowedTags(
  tx: Tx,
  repo: string,
  tags: readonly string[],
  { checkedTime, now }: { checkedTime: string; now: string },
): Promise<void> {
  const rows = tags.map((tag) => sql`(${repo}, ${tag}, ${checkedTime}, 0, ${now})`)
  const into = sql`INSERT INTO follow_tags (repo_uid, tag, checked_time, missed, due_time)`
  const orNothing = sql`ON CONFLICT (repo_uid, tag) DO NOTHING`
  for (const insert of insertsOf(into, rows, orNothing)) await tx.run(insert)
}

export async function dropFollowedTags(tx: Tx, repo: string, tags: readonly string[]): Promise<void> {
  for (const some of chunks(tags, 1000)) {
    await tx.run(sql`DELETE FROM follow_tags WHERE repo_uid = ${repo} AND tag IN (${list(some)})`)
  }
}

/** Stores that a check found the tags with the digests of our tag history. A later stored check time is kept. */
export async function noteChecked(
  tx: Tx,
  repo: string,
  tags: readonly string[],
  { checkedTime, dueTime }: { checkedTime: string; dueTime: string },
): Promise<void> {
  if (tags.length === 0) return
  await tx.run(sql`
    UPDATE follow_tags
       SET checked_time = CASE WHEN checked_time > ${checkedTime} THEN checked_time ELSE ${checkedTime} END,
           missed = 0, due_time = ${dueTime}
     WHERE repo_uid = ${repo} AND tag IN (${list(tags)})`)
}

export async function noteMissed(tx: Tx, repo: string, tag: string, missed: number, dueTime: string): Promise<void> {
  await tx.run(sql`
    UPDATE follow_tags SET missed = ${missed}, due_time = ${dueTime} WHERE repo_uid = ${repo} AND tag = ${tag}`)
}

/**
 * Stores the time of the last check before an assignment. The row in the tag history has no such time, and rows are never
 * changed.
 */
export async function insertObservation(
  tx: Tx,
  ledger: number,
  { tag, time, checkedBefore }: { tag: string; time: string; checkedBefore: string },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO tag_observations (repo_id, tag, time, checked_before)
    VALUES (${ledger}, ${tag}, ${time}, ${checkedBefore})`)
}
