// Deletes protected content, with a reason for the audit log. Also finds the rule or hold that protects a manifest.
import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import { deleteManifest, deleteRepo, type RetentionOverride } from '#domains/registry/deletions/deletions.service.ts'
import { imageType } from '#domains/registry/images/images.model.ts'
import { pathIn } from '#domains/registry/repos/paths.service.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound, refuseIfAny } from '#lib/errors.ts'
import { parentOf } from '#lib/uid.ts'
import { protectionOf, RetentionSearch } from './protection.service.ts'
import { type BrokenPromise, type Kept, mostTagsNamed, toBrokenPromiseResource } from './retention.model.ts'
import { problemsOfReason } from './retention.service.ts'
import { requireNoHold } from './retention-locks.service.ts'
import { factsOf } from './retention-locks.store.ts'

/**
 * Deletes a manifest that a retention rule protects. With an empty `digest`, deletes the whole repository. Throws
 * FAILED_PRECONDITION with the reason CONTENT_KEPT if a hold applies.
 */
export async function breakPromises(
  call: Call,
  { repo, digest, reason }: Pick<BrokenPromise, 'repo' | 'digest' | 'reason'>,
): Promise<BrokenPromise> {
  refuseIfAny(problemsOfReason(reason, 'reason'))
  if (digest !== '' && !isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  let broken: BrokenPromise = { repo, digest, reason, until: '', rule: '' }
  const breaking: RetentionOverride = async (tx, row) => {
    const kept = await requireNoHold(tx, call, row, digest || undefined)
    broken = { ...broken, until: kept?.until ?? '', rule: kept?.rule ?? '' }
    const about = { subject: repo, resource: toBrokenPromiseResource(broken) }
    await emit(tx, call, 'control.registry.retention.promise.broken', about)
  }
  if (digest === '') await deleteRepo(call, repo, breaking)
  else {
    const { db } = call.app
    const row = found(await findRepoRow(db, { uid: repo }), repoType, repo)
    const group = parentOf(repo)
    const path = await pathIn(db, group, row.name)
    const origin = { host: new URL(call.url).host, subdomain: '', repository: path }
    if (
      !(await deleteManifest(
        call,
        { id: row.id, uid: repo, ledger: row.ledger, group, path },
        digest,
        origin,
        breaking,
      ))
    )
      throw notFound(imageType, digest)
  }
  call.log.info('retained content deleted with a reason', { repo, digest })
  return broken
}

/**
 * Returns the protection of a manifest. If nothing protects it, `tags` has some of the tags that point to it. Throws NOT_FOUND if
 * the repository does not have the manifest.
 */
export async function getPromise(
  call: Call,
  uid: string,
  digest: string,
): Promise<{ kept: Kept | undefined; tags: readonly string[] }> {
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const { db } = call.app
  const repo = found(await findRepoRow(db, { uid }), repoType, uid)
  if (!(await factsOf(db, repo.id, digest))) throw notFound(imageType, digest)
  const kept = await protectionOf(await RetentionSearch.at(db, call, repo, call.now), digest)
  return { kept, tags: kept?.tags ?? (await namesWith(db, repo, digest, mostTagsNamed)) }
}
