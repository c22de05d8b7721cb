// Restores of tags to a former digest. Each has a reason, which the tag history shows.
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { digestPattern } from '#lib/digest.ts'
import { failedPrecondition, found, refuseIfAny } from '#lib/errors.ts'
import { kindOf } from '#lib/events/event-body.ts'
import { tagPattern } from '#lib/oci-names.ts'
import { parentOf, rootOf } from '#lib/uid.ts'
import { inRepo } from '../blobs/blobs.store.ts'
import { hasManifest } from '../manifests/manifests.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { lockRepoRow } from '../repos/repos.store.ts'
import * as history from './tag-history.store.ts'
import { assignTag } from './tag-moves.service.ts'
import { type TagRepo, toTagResource } from './tags.model.ts'

type Restore = { repoUid: string; tag: string; digest: string; reason: string }
export type TagRestore = Restore & { tagUid: string; previousDigest: string; time: string }

export const toRestoreResource = kindOf<TagRestore>('tag restore')

const maxReason = 500

/** Points the tag to a digest that it had before. Creates the tag if it was deleted. */
export async function restoreTag(call: Call, input: Restore): Promise<TagRestore> {
  const restore = { ...input, reason: input.reason.trim() }
  checkRestore(restore)
  const { repoUid, tag: name, digest, reason } = restore
  const restored = await call.app.db.tx(async (tx) => {
    const repo = found(await lockRepoRow(tx, repoUid, 'alone'), repoType, repoUid)
    for (const mayChangeTags of call.app.hooks.mayChangeTags) await mayChangeTags(tx, repo.uid)
    await requireRestorable(tx, repo, name, digest)
    const by = { now: call.now, actor: call.caller.uid, source: 'api' } as const
    const { tag, previousDigest, changed } = await assignTag(tx, call, { ...by, repo, name, digest })
    if (!changed) throw unchanged(name, digest)
    const made: TagRestore = { ...restore, tagUid: tag.uid, previousDigest, time: tag.assignTime }
    await history.insertRestore(tx, repo.ledger, { tag: name, time: tag.assignTime, reason })
    const subject = tag.uid
    await emit(tx, call, 'registry.tag.created', { subject, group: rootOf(subject), resource: toTagResource(tag) })
    // The audit entry belongs to the folder of the repository.
    const event = { subject, group: parentOf(repoUid), resource: toRestoreResource(made) }
    await emit(tx, call, 'control.registry.tag.restored', event)
    return made
  }, inRepo)
  call.log.info('tag restored', { repo: repoUid, tag: name })
  return restored
}

function checkRestore({ tag, digest, reason }: Restore): void {
  const reasonProblem =
    reason === ''
      ? 'is required'
      : reason.length > maxReason
        ? `must be at most ${maxReason} characters long`
        : undefined
  refuseIfAny([
    ...(tagPattern.test(tag) ? [] : [{ field: 'tag', description: `tag must match "${tagPattern.source}"` }]),
    ...(digestPattern.test(digest)
      ? []
      : [{ field: 'digest', description: `digest must match "${digestPattern.source}"` }]),
    ...(reasonProblem === undefined ? [] : [{ field: 'reason', description: reasonProblem }]),
  ])
}

async function requireRestorable(tx: Tx, repo: TagRepo, name: string, digest: string): Promise<void> {
  if (!(await history.hadDigest(tx, repo.ledger, name, digest))) {
    const description = `the tag ${name} never had the digest ${digest}; to assign it, update the tag instead`
    throw failedPrecondition({ type: 'NOT_IN_TAG_HISTORY', subject: name, description })
  }
  if (!(await hasManifest(tx, repo.id, digest))) {
    const description = `the repository no longer stores the manifest ${digest}; push it again first`
    throw failedPrecondition({ type: 'MANIFEST_NOT_FOUND', subject: digest, description })
  }
}

function unchanged(name: string, digest: string) {
  const description = `the tag ${name} already has the digest ${digest}; there is nothing to restore`
  return failedPrecondition({ type: 'TAG_UNCHANGED', subject: name, description })
}
