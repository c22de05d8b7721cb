// Batches of work on retention plans. A planning batch examines some manifests of one repository. An applying batch deletes some
// manifests, and checks each one again in the transaction of its deletion.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { inRepo, lockRepo } from '#domains/registry/blobs/blobs.store.ts'
import { removeManifest } from '#domains/registry/deletions/deletions.service.ts'
import { pathIn } from '#domains/registry/repos/paths.service.ts'
import { findRepoRow, type RepoRow, servedHost } from '#domains/registry/repos/repos.store.ts'
import { wasAskedSince } from '#domains/registry/usage/digest-usage.store.ts'
import { groupOfRow } from '#domains/rules/scopes.service.ts'
import { ownCause } from '#lib/cause.ts'
import { parentOf } from '#lib/uid.ts'
import { DeletionDecisions } from './deletable.service.ts'
import {
  mostDeletions,
  type Outcome,
  outcomes,
  type Plan,
  type PlannedDeletion,
  planStates,
  toRetentionPlanResource,
} from './plans.model.ts'
import * as store from './plans.store.ts'
import { RetentionSearch } from './protection.service.ts'
import { contentRulesAt, enforced } from './retention.model.ts'
import { factsOf } from './retention-locks.store.ts'

const manifestsAtOnce = 500
const reposAtOnce = 100
const deletionsAtOnce = 20
/** Longest time in ms for which one transaction may block other writers. */
const longestMs = 100

/** Examines some manifests of the next repository, and adds the manifests to delete to the plan. */
export async function planSome({ app, lease }: { app: App; lease: Lease }, plan: Plan): Promise<void> {
  const { db } = app
  const repo = await nextRepo(app, plan)
  if (repo === 'none') return void (await lease.tx((tx) => endPlanning(tx, app, plan)))
  if ('skipped' in repo) {
    await lease.tx((tx) => note(tx, app, plan, { ...plan, repo: repo.skipped, digest: '' }))
    return
  }
  const digest = plan.repo === repo.uid ? plan.digest : ''
  const digests = await store.manifestsAfter(db, repo.id, digest, manifestsAtOnce)
  const { deletions, last, undecided } = await judge(app, repo, digests)
  const room = mostDeletions - plan.manifests - plan.dryRunManifests
  const kept = deletions.slice(0, room).map((one, i) => {
    return { ...one, repoUid: repo.uid, position: plan.manifests + plan.dryRunManifests + i + 1 }
  })
  const isDone = digests.length < manifestsAtOnce && last === digests.at(-1)
  const next: Plan = {
    ...counted(plan, kept),
    undecided: plan.undecided + undecided,
    repo: isDone ? `${repo.uid}.` : repo.uid,
    digest: isDone ? '' : (last ?? digest),
    truncated: deletions.length > room ? 1 : 0,
  }
  await lease.tx(async (tx) => {
    if (!(await note(tx, app, plan, next))) return
    await store.insertDeletions(tx, plan.id, kept)
    if (next.truncated === 1) await endPlanning(tx, app, next)
  })
}

/** Current repository of the plan, or the next repository with an active rule. One batch skips at most 100 repositories. */
async function nextRepo(app: App, plan: Plan): Promise<RepoRow | { skipped: string } | 'none'> {
  const contentRules = await app.contentRules.of(app.db, plan.scopeUid)
  const repos = await store.reposFrom(app.db, plan.scopeUid, plan.repo, reposAtOnce)
  const ruled = repos.find(({ uid }) => contentRulesAt(contentRules, uid).rules.some(({ says }) => says.mode !== 'OFF'))
  if (ruled) return (await findRepoRow(app.db, { uid: ruled.uid })) ?? { skipped: `${ruled.uid}.` }
  return repos.length < reposAtOnce ? 'none' : { skipped: `${repos.at(-1)!.uid}.` }
}

type Found = Omit<PlannedDeletion, 'repoUid' | 'position'>

/**
 * Examines manifests until the row limit of one search is reached. `last` is the last examined digest. `undecided` is the number
 * of examined manifests without a decision.
 */
async function judge(
  app: App,
  repo: RepoRow,
  digests: readonly string[],
): Promise<{ deletions: Found[]; last: string | undefined; undecided: number }> {
  const now = app.clock().toISOString()
  const contentRules = contentRulesAt(await app.contentRules.of(app.db, repo.uid), repo.uid)
  const dryRules = contentRules.rules.filter(({ says }) => says.mode !== 'OFF')
  const real = new DeletionDecisions(new RetentionSearch(app.db, contentRules, repo, now))
  const dry = new DeletionDecisions(
    new RetentionSearch(app.db, contentRules, repo, now, { rules: dryRules, moves: real.look }),
  )
  const hasDry = dryRules.length > enforced(contentRules).length
  const deletions: Found[] = []
  let last: string | undefined
  let undecided = 0
  for (const digest of digests) {
    for (const [judging, dryRun] of hasDry
      ? ([
          [real, 0],
          [dry, 1],
        ] as const)
      : ([[real, 0]] as const)) {
      const goes = await judging.of(digest)
      if (!goes) continue
      deletions.push({ ...goes, digest, bytes: await judging.bytesOf(digest), dryRun, outcome: outcomes.NONE })
      break
    }
    // If the limit was reached during a manifest, the next batch examines the manifest again. If it was the first manifest of
    // this batch, it stays undecided.
    const isCut = real.look.isOver || dry.look.isOver
    if (isCut && last !== undefined) {
      return { deletions: deletions.filter((one) => one.digest !== digest), last, undecided }
    }
    last = digest
    if (real.undecided.has(digest) || dry.undecided.has(digest)) undecided++
    if (isCut) break
  }
  return { deletions, last, undecided }
}

function counted(plan: Plan, deletions: readonly { dryRun: number; bytes: number }[]): Plan {
  const sum = { ...plan }
  for (const { dryRun, bytes } of deletions) {
    if (dryRun === 1) {
      sum.dryRunManifests++
      sum.dryRunBytes += bytes
    } else {
      sum.manifests++
      sum.bytes += bytes
    }
  }
  return sum
}

function note(tx: Tx, app: App, before: Plan, after: Plan): Promise<boolean> {
  return store.noteProgress(tx, before, after, app.clock().toISOString())
}

async function endPlanning(tx: Tx, app: App, before: Plan): Promise<void> {
  const plan: Plan = { ...before, state: planStates.READY, repo: '', digest: '' }
  if (await note(tx, app, before, plan)) await tell(tx, app, 'control.registry.retention.planned', plan, plan.actor)
}

async function tell(
  tx: Tx,
  app: App,
  name: 'control.registry.retention.planned' | 'control.registry.retention.deleted',
  plan: Plan,
  actor: string,
): Promise<void> {
  const about = { subject: plan.uid, group: await groupOfRow(tx, plan), resource: toRetentionPlanResource(plan) }
  await emit(tx, { app, cause: ownCause(app.clock, actor) }, name, about)
}

/** Deletes some manifests of a plan. Returns the number of deleted manifests. */
export async function applySome({ app, lease }: { app: App; lease: Lease }, plan: Plan): Promise<number> {
  // Lets requests run between batches.
  await nextTurn()
  const [first, ...others] = await store.nextDeletions(app.db, plan.id, deletionsAtOnce)
  if (!first) {
    await lease.tx(async (tx) => {
      const applied: Plan = { ...plan, state: planStates.APPLIED }
      if (await note(tx, app, plan, applied))
        await tell(tx, app, 'control.registry.retention.deleted', applied, plan.appliedBy)
    })
    return 0
  }
  const some = [first, ...others.filter(({ repoUid }) => repoUid === first.repoUid)]
  return lease.tx((tx) => deleteSome(tx, app, plan, some), inRepo)
}

async function deleteSome(tx: Tx, app: App, plan: Plan, some: readonly PlannedDeletion[]): Promise<number> {
  const uid = some[0]!.repoUid
  const repo = await findRepoRow(tx, { uid })
  const locked = repo && (await lockRepo(tx, repo, 'alone')) ? repo : undefined
  const outcomesOf = locked ? await deleteEach(tx, app, plan, locked, some) : some.map(() => outcomes.GONE)
  for (const [i, outcome] of outcomesOf.entries()) await store.setOutcome(tx, plan.id, some[i]!.position, outcome)
  const deleted = outcomesOf.filter((outcome) => outcome === outcomes.DELETED).length
  const left = outcomesOf.length - deleted
  await note(tx, app, plan, { ...plan, deleted: plan.deleted + deleted, leftOver: plan.leftOver + left })
  return deleted
}

/**
 * Checks each manifest again by the current rules and deletes it, in one transaction. Stops at the limit on rows or after 100 ms.
 * Returns the outcomes so far, at least one.
 */
async function deleteEach(
  tx: Tx,
  app: App,
  plan: Plan,
  repo: RepoRow,
  some: readonly PlannedDeletion[],
): Promise<Outcome[]> {
  const cause = ownCause(app.clock, plan.appliedBy)
  const look = await RetentionSearch.at(tx, { app }, repo, cause.now)
  const judging = new DeletionDecisions(look)
  const group = parentOf(repo.uid)
  const path = await pathIn(tx, group, repo.name)
  const origin = { host: (await servedHost(tx, app.config.url)) || 'localhost', subdomain: '', repository: path }
  const at = { id: repo.id, uid: repo.uid, ledger: repo.ledger, group, path }
  const gone = new Set<string>()
  const isGone = async (digest: string) => gone.has(digest) || (await store.wasDeleted(tx, plan.id, repo.uid, digest))
  const wasAsked = (digest: string) => wasAskedSince(tx, { repo: repo.id, digest }, hourBefore(cause.now))
  const done: Outcome[] = []
  const end = performance.now() + longestMs
  for (const one of some) {
    if (!(await factsOf(tx, repo.id, one.digest))) {
      done.push(outcomes.GONE)
      continue
    }
    const mayGo = (await judging.mayGo(one.digest, one, isGone)) && !(await wasAsked(one.digest))
    // The next batch checks this manifest again with a full limit on rows.
    if (look.isOver && done.length > 0) break
    const isDeleted = mayGo && (await removeManifest(tx, { app, cause }, at, one.digest, origin))
    if (isDeleted) gone.add(one.digest)
    done.push(isDeleted ? outcomes.DELETED : outcomes.KEPT)
    if (performance.now() > end) break
  }
  return done
}

/** Time one hour ago. A client that requested a digest within the last hour may rely on that digest in its next push. */
function hourBefore(now: string): { day: string; time: string } {
  const time = new Date(Date.parse(now) - 3_600_000).toISOString()
  return { day: time.slice(0, 10), time }
}
