// Writes an assignment that was observed at an upstream to the tag history. The background job and pulls use this.
import type { App } from '#app.ts'
import type { Db, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { inRepo } from '#domains/registry/blobs/blobs.store.ts'
import { followModes } from '#domains/registry/repo-ref.model.ts'
import { lockRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { timeAfter } from '#domains/registry/tags/tag-history.model.ts'
import { lastTime } from '#domains/registry/tags/tag-history.store.ts'
import { assignTag, removeTag } from '#domains/registry/tags/tag-moves.service.ts'
import { type AssignmentCause, toTagResource } from '#domains/registry/tags/tags.model.ts'
import { findTagNamed } from '#domains/registry/tags/tags.store.ts'
import { ownCause } from '#lib/cause.ts'
import { AppError } from '#lib/errors.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { rootOf } from '#lib/uid.ts'
import { queueFetch } from './fetches.store.ts'
import { type FollowStatus, followerActor, toUpstreamMoveResource } from './follows.model.ts'
import * as store from './follows.store.ts'
import { queueHistories } from './histories.store.ts'
import { namedTags } from './tag-patterns.ts'

/** Error for a mirror that has another source by now, or that was deleted. */
export class FollowEnded extends Error {
  override name = 'FollowEnded'
}

/**
 * Parameters for recording assignments of a mirror. `path` is the path at the upstream, with its prefix. `tx` runs transactions,
 * under the lease if there is one.
 */
export type Recording = { app: App; tx: Db['tx']; follow: FollowStatus; path: string }

/**
 * An observed assignment. Times are ISO texts. `now` is the time of the observation, `sent` the time of the request, and
 * `dueTime` the time of the next check. `checkedBefore` is the time of the previous check, or empty.
 */
export type Move = { tag: string; digest: string; now: string; sent: string; dueTime: string; checkedBefore: string }

/**
 * Writes the assignment, the time of the check before it, and its events. An empty digest is a deletion. Does nothing if a later
 * check was recorded already. Throws UpstreamError if a rule protects a tag that was set before the repository became a mirror.
 */
export async function recordMove({ app, tx: run, follow, path }: Recording, move: Move): Promise<number> {
  const { tag, digest, now, sent, dueTime } = move
  const by = { app, cause: { ...ownCause(app.clock, followerActor), now } }
  const mover: AssignmentCause = { now, actor: followerActor, source: 'upstream', inNameOf: follow.setter }
  const record = async (tx: Tx): Promise<number> => {
    const repo = await requireFollow(tx, follow)
    const looked = await store.findFollowedTag(tx, follow.repo, tag)
    if (looked && looked.checkedTime > sent) {
      await store.noteChecked(tx, follow.repo, [tag], { checkedTime: sent, dueTime })
      return 0
    }
    const last = await lastTime(tx, repo.ledger, tag)
    // A deleted tag is no longer watched. So only the tag history shows whether there was a later observation.
    if (!looked && last > sent) return 0
    const written = await writeMove(tx, by, { ...mover, repo, name: tag }, digest)
    if (written) {
      const { time, previousDigest } = written
      // For a tag that was created again, a check from before its deletion says nothing about the time of the new assignment.
      const checkedBefore = previousDigest === '' && move.checkedBefore <= last ? '' : move.checkedBefore
      if (checkedBefore !== '') await store.insertObservation(tx, repo.ledger, { tag, time, checkedBefore })
      const { repo: uid, upstream } = follow
      const resource = toUpstreamMoveResource({
        repo: uid,
        upstream,
        path,
        tag,
        digest,
        previousDigest,
        time,
        checkedBefore,
      })
      await emit(tx, by, 'control.registry.upstream.moved', { subject: uid, resource })
    }
    if (written && digest !== '' && follow.mode === followModes.full) await queueFetch(tx, follow.repo, digest, now)
    if (written) await queueHistories(tx, follow.repo, [tag], now)
    const isGone = digest === '' && !namedTags(follow.tags).includes(tag)
    if (isGone) await store.dropFollowedTags(tx, follow.repo, [tag])
    else await store.noteChecked(tx, follow.repo, [tag], { checkedTime: sent, dueTime })
    return written ? 1 : 0
  }
  try {
    const moves = await run(record, inRepo)
    if (moves > 0) app.follows.histories.notify()
    if (moves > 0 && follow.mode === followModes.full) app.follows.fetches.notify()
    return moves
  } catch (cause) {
    const isGuarded = cause instanceof AppError && guards.includes(cause.reason)
    throw isGuarded ? new UpstreamError('guarded', { cause }) : cause
  }
}

const guards: readonly string[] = ['TAG_IMMUTABLE', 'TAG_MOVERS', 'CONTENT_KEPT']

type By = Parameters<typeof removeTag>[1]

async function writeMove(
  tx: Tx,
  by: By,
  to: AssignmentCause & { repo: RepoRow; name: string },
  digest: string,
): Promise<{ time: string; previousDigest: string } | undefined> {
  if (digest === '') {
    const tag = await findTagNamed(tx, to.repo.id, to.name)
    if (!tag) return undefined
    await removeTag(tx, by, tag, to)
    return { time: timeAfter(to.now, tag.updateTime), previousDigest: tag.digest }
  }
  const { tag, previousDigest, changed } = await assignTag(tx, by, { ...to, digest })
  if (!changed) return undefined
  const event = { subject: tag.uid, group: rootOf(tag.uid), resource: toTagResource(tag) }
  await emit(tx, by, 'registry.tag.created', event)
  return { time: tag.assignTime, previousDigest }
}

/** Locks the repository of the mirror. Throws FollowEnded if it was deleted or its configuration has changed. */
export async function requireFollow(tx: Tx, follow: FollowStatus): Promise<RepoRow> {
  const repo = await lockRepoRow(tx, follow.repo, 'alone')
  if (!repo || !(await store.isCurrentFollow(tx, follow)))
    throw new FollowEnded('the configuration of the mirror has changed')
  return repo
}
