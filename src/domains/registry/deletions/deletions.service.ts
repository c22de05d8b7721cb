// Deletes repositories and manifests, with everything that refers to them.
import type { Call, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emitDeleted } from '#domains/outbox/emit.ts'
import { emitDeletion, type Origin } from '#domains/outbox/emit-registry.ts'
import { found } from '#lib/errors.ts'
import { parentOf } from '#lib/uid.ts'
import { inRepo, lockRepo } from '../blobs/blobs.store.ts'
import { deleteCharts } from '../deployments/deployments.store.ts'
import * as manifests from '../manifests/manifests.store.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import { insertDeletedRepo } from '../repos/ledgers.store.ts'
import { pathIn } from '../repos/paths.service.ts'
import { mostAtOnce, type Removal } from '../repos/removals.model.ts'
import { beginRemoval, isLarge } from '../repos/removals.store.ts'
import { repoType } from '../repos/repos.model.ts'
import * as store from '../repos/repos.store.ts'
import { timeAfter } from '../tags/tag-history.model.ts'
import { lastMoveIn, removeTagsOf } from '../tags/tag-moves.service.ts'
import { leaveAll } from '../tags/tag-parts.store.ts'
import type { TagRepo } from '../tags/tags.model.ts'
import { actorOf } from '../tags/tags.model.ts'
import { removeAll } from './removals.service.ts'

/** Check that runs in the transaction of a deletion, in place of the hooks that could refuse the deletion. */
export type RetentionOverride = (tx: Tx, repo: TagRepo) => Promise<void>

async function requireDeletion(
  tx: Tx,
  work: Work,
  { repo, digest, insteadOfRules }: { repo: TagRepo; digest?: string; insteadOfRules: RetentionOverride | undefined },
): Promise<void> {
  if (insteadOfRules) await insteadOfRules(tx, repo)
  else for (const mayDelete of work.app.hooks.mayDelete) await mayDelete(tx, work, repo, digest)
}

/**
 * Deletes a repository with its tags. The tag history remains and records the deletion. Throws FAILED_PRECONDITION if some
 * content is retained.
 */
export async function deleteRepo(call: Call, uid: string, insteadOfRules?: RetentionOverride): Promise<void> {
  const [{ app, now }, actor] = [call, call.caller.uid]
  await app.db.tx(async (tx) => {
    const row = found(await store.lockRepoRow(tx, uid, 'deleting'), repoType, uid)
    const repo = (await store.findRepo(tx, uid))!
    const { id, ledger } = row
    await requireDeletion(tx, call, { repo: row, insteadOfRules })
    const path = await pathIn(tx, parentOf(uid), repo.name)
    const large = await isLarge(tx, id, mostAtOnce)
    // Time of the deletion of all tags. It is later than the last change of each tag.
    const removal: Removal = { id, uid, ledger, actor, deleteTime: timeAfter(now, await lastMoveIn(tx, row)) }
    await hideRepo(tx, call, removal)
    if (large) {
      await beginRemoval(tx, removal)
      await store.forgetRepo(tx, repo, id)
    } else {
      await removeAll(tx, app, removal)
      await store.deleteRepo(tx, repo, id)
    }
    const { createTime } = repo
    await insertDeletedRepo(tx, { uid, id, ledger, path, actor, createTime, deleteTime: removal.deleteTime })
    await emitDeleted(tx, call, 'registry.repo.deleted', uid)
  }, inRepo)
  call.log.info('repo deleted', { uid })
}

/** Hides the repository and ends everything that must not outlast it. The remaining rows are removed later. */
async function hideRepo(tx: Tx, { app, now }: Call, removal: Removal): Promise<void> {
  const { id, uid } = removal
  await store.deleteReadme(tx, uid)
  await deleteCharts(tx, uid)
  await leaveAll(tx, id)
  for (const repoHidden of app.hooks.repoHidden) await repoHidden(tx, removal, now)
}

/**
 * Deletes the manifest and every tag that points to it. Returns false if the repository does not have it. Throws
 * FAILED_PRECONDITION if it is retained.
 */
export async function deleteManifest(
  work: Work,
  repo: RepoRef,
  digest: string,
  origin: Origin,
  insteadOfRules?: RetentionOverride,
): Promise<boolean> {
  const isFound = await work.app.db.tx(async (tx) => {
    if (!(await lockRepo(tx, repo, 'alone')) || !(await manifests.hasManifest(tx, repo.id, digest))) return false
    await requireDeletion(tx, work, { repo, digest, insteadOfRules })
    await removeTagsOf(tx, work, digest, { repo, now: work.cause.now, actor: actorOf(work), source: 'oci' })
    return removeManifest(tx, work, repo, digest, origin)
  }, inRepo)
  if (isFound) work.log.info('manifest deleted', { repo: repo.uid, digest })
  return isFound
}

/** Deletes a manifest without tags that is not retained. Returns false if the repository does not have it. */
export async function removeManifest(
  tx: Tx,
  by: Pick<Work, 'app' | 'cause'>,
  repo: RepoRef,
  digest: string,
  origin: Origin,
): Promise<boolean> {
  if (!(await manifests.deleteManifest(tx, repo, digest))) return false
  for (const manifestDeleted of by.app.hooks.manifestDeleted) await manifestDeleted(tx, repo, digest)
  await emitDeletion(tx, by, repo, origin, { type: 'manifest', digest })
  return true
}
