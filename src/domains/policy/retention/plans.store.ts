import { countRows } from '#db/bulk.ts'
import { pageTail, pastCursor } from '#db/listing-beyond.ts'
import { scopeList } from '#db/scope-lists.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import type { Page } from '#lib/lists/paging.ts'
import { type Outcome, outcomes, type Plan, type PlannedDeletion, planStates } from './plans.model.ts'

const columns = sql`
  t.id, t.uid, t.scope_uid AS "scopeUid", t.state, t.actor, t.applied_by AS "appliedBy", t.create_time AS "createTime",
  CASE WHEN t.update_time = '' THEN t.create_time ELSE t.update_time END AS "updateTime", t.expire_time AS "expireTime", t.repo, t.digest, t.manifests, t.bytes, t.dry_run_manifests AS "dryRunManifests",
  t.dry_run_bytes AS "dryRunBytes", t.undecided, t.truncated, t.deleted, t.left_over AS "leftOver"`

type NewPlan = Pick<Plan, 'uid' | 'state' | 'scopeUid' | 'actor' | 'createTime' | 'expireTime'>

export async function insertPlan(tx: Tx, owner: { organization: string; group: string }, plan: NewPlan): Promise<void> {
  const { uid, scopeUid, state, actor, createTime, expireTime } = plan
  await tx.run(sql`
    INSERT INTO retention_plans (uid, group_uid, scope_uid, organization, state, actor, create_time, update_time, expire_time)
    VALUES (${uid}, ${owner.group}, ${scopeUid}, ${owner.organization}, ${state}, ${actor}, ${createTime},
            ${createTime}, ${expireTime})`)
}

/** Number of unexpired plans of the organization. */
export async function countPlans(reader: Reader, organization: string, now: string): Promise<number> {
  return countRows(reader, sql`FROM retention_plans WHERE organization = ${organization} AND expire_time > ${now}`)
}

/** Lets the plans of a scope expire now. Plans in progress are left unchanged. */
export async function supersede(tx: Tx, scope: string, now: string): Promise<void> {
  await tx.run(sql`
    UPDATE retention_plans SET expire_time = ${now}, update_time = ${now}
     WHERE scope_uid = ${scope} AND expire_time > ${now} AND state IN (${planStates.READY}, ${planStates.APPLIED})`)
}

export async function findPlan(reader: Reader, uid: string): Promise<Plan | undefined> {
  return reader.get<Plan>(sql`SELECT ${columns} FROM retention_plans t WHERE t.uid = ${uid}`)
}

export const planList = scopeList(
  { table: 'retention_plans', columns },
  (row: Plan) => row,
  () => [],
)

/** Organizations with plans that are being computed or applied. */
export async function busyOrganizations(reader: Reader): Promise<string[]> {
  const rows = await reader.all<{ organization: string }>(sql`
    SELECT DISTINCT organization FROM retention_plans WHERE ${open} ORDER BY organization`)
  return rows.map(({ organization }) => organization)
}

const open = sql`state IN (1, 3)`

export async function nextOpen(reader: Reader, organization: string): Promise<Plan | undefined> {
  return reader.get<Plan>(sql`
    SELECT ${columns} FROM retention_plans t WHERE t.organization = ${organization} AND ${open} ORDER BY t.id LIMIT 1`)
}

/** Stores the progress of a plan. Returns false if another server has changed the plan since `before`. */
export async function noteProgress(tx: Tx, before: Plan, after: Plan, now: string): Promise<boolean> {
  const { state, appliedBy, repo, digest, manifests, bytes, dryRunManifests, dryRunBytes, truncated, undecided } = after
  const changed = await tx.run(sql`
    UPDATE retention_plans
       SET state = ${state}, applied_by = ${appliedBy}, repo = ${repo}, digest = ${digest}, manifests = ${manifests},
           bytes = ${bytes}, dry_run_manifests = ${dryRunManifests}, dry_run_bytes = ${dryRunBytes},
           truncated = ${truncated}, undecided = ${undecided}, deleted = ${after.deleted}, left_over = ${after.leftOver},
           update_time = ${now}
     WHERE id = ${before.id} AND state = ${before.state} AND repo = ${before.repo} AND digest = ${before.digest}
       AND deleted = ${before.deleted} AND left_over = ${before.leftOver}`)
  return changed === 1
}

const deletionColumns = sql`
  position, repo_uid AS "repoUid", level, digest, why, rule, until_time AS until, part_of AS "partOf", bytes,
  dry_run AS "dryRun", outcome`

export async function insertDeletions(tx: Tx, plan: number, deletions: readonly PlannedDeletion[]): Promise<void> {
  for (const { position, repoUid, level, digest, why, rule, until, partOf, bytes, dryRun } of deletions) {
    await tx.run(sql`
      INSERT INTO planned_deletions (plan_id, position, repo_uid, level, digest, why, rule, until_time, part_of, bytes, dry_run)
      VALUES (${plan}, ${position}, ${repoUid}, ${level}, ${digest}, ${why}, ${rule}, ${until}, ${partOf}, ${bytes}, ${dryRun})`)
  }
}

/** One page of the planned deletions, ordered by position, and one more row. */
export async function deletionPage(reader: Reader, plan: number, page: Page): Promise<PlannedDeletion[]> {
  const keys = [sql`position`]
  const past = pastCursor(page, keys, [Number(page.after?.uid ?? 0)])
  return reader.all<PlannedDeletion>(sql`
    SELECT ${deletionColumns} FROM planned_deletions WHERE plan_id = ${plan} AND ${past}
     ${pageTail(page, keys)}`)
}

/** Number of deletions in a plan. Counting is fast, since a plan has at most 100,000. */
export async function countDeletions(reader: Reader, plan: number): Promise<number> {
  return countRows(reader, sql`FROM planned_deletions WHERE plan_id = ${plan}`)
}

/** Next manifests to delete. Parents come before the manifests that belong to them. */
export async function nextDeletions(reader: Reader, plan: number, most: number): Promise<PlannedDeletion[]> {
  return reader.all<PlannedDeletion>(sql`
    SELECT ${deletionColumns} FROM planned_deletions WHERE plan_id = ${plan} AND outcome = 0 AND dry_run = 0
     ORDER BY repo_uid, level, position LIMIT ${most}`)
}

export async function setOutcome(tx: Tx, plan: number, position: number, outcome: Outcome): Promise<void> {
  await tx.run(sql`
    UPDATE planned_deletions SET outcome = ${outcome} WHERE plan_id = ${plan} AND position = ${position}`)
}

/** True if the plan has deleted this manifest. */
export async function wasDeleted(reader: Reader, plan: number, repo: string, digest: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM planned_deletions
     WHERE plan_id = ${plan} AND repo_uid = ${repo} AND digest = ${digest} AND outcome = ${outcomes.DELETED} LIMIT 1`)
  return row !== undefined
}

export type PlannedRepo = { id: number; uid: string; ledger: number; name: string }

/** Repositories of a scope, ordered by uid, starting at the uid `from`. */
export async function reposFrom(reader: Reader, scope: string, from: string, most: number): Promise<PlannedRepo[]> {
  const begin: Sql = from > scope ? sql`uid >= ${from}` : sql`uid >= ${scope}`
  return reader.all<PlannedRepo>(sql`
    SELECT id, uid, ledger_id AS ledger, name FROM repos WHERE ${begin} AND uid < ${`${scope}0`} ORDER BY uid LIMIT ${most}`)
}

export async function manifestsAfter(reader: Reader, repo: number, after: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ digest: string }>(sql`
    SELECT digest FROM manifests WHERE repo_id = ${repo} AND digest > ${after} ORDER BY digest LIMIT ${most}`)
  return rows.map(({ digest }) => digest)
}

/** Deletes some rows of an expired plan. When no rows are left, deletes the plan. Returns the number of deleted rows. */
export async function forgetEnded(tx: Tx, now: string, most: number): Promise<number> {
  const plan = await tx.get<{ id: number }>(sql`
    SELECT id FROM retention_plans WHERE expire_time <= ${now} AND state <> ${planStates.APPLYING} ORDER BY expire_time LIMIT 1`)
  if (!plan) return 0
  const some = await tx.run(sql`
    DELETE FROM planned_deletions WHERE plan_id = ${plan.id} AND position IN (
      SELECT position FROM planned_deletions WHERE plan_id = ${plan.id} ORDER BY position LIMIT ${most})`)
  return some > 0 ? some : tx.run(sql`DELETE FROM retention_plans WHERE id = ${plan.id}`)
}
