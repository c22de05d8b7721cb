// What was seen of a tag elsewhere becomes a row of the ledger: whichever look saw it, that of the duty or that of a pull.
import type { App } from '#app.ts'
import type { Db, Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { inRepo } from '#domains/registry/blobs/blobs.store.ts'
import { followModes } from '#domains/registry/repo-ref.model.ts'
import { lockRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { timeAfter } from '#domains/registry/tags/tag-history.model.ts'
import { lastTime } from '#domains/registry/tags/tag-history.store.ts'
import { assignTag, removeTag } from '#domains/registry/tags/tag-moves.service.ts'
import { aTag, type Mover } from '#domains/registry/tags/tags.model.ts'
import { findTagNamed } from '#domains/registry/tags/tags.store.ts'
import { ownCause } from '#lib/cause.ts'
import { AppError } from '#lib/errors.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { parentOf, rootOf } from '#lib/uid.ts'
import { queueFetch } from './fetches.store.ts'
import { anUpstreamMove, type FollowStatus, followerActor } from './follows.model.ts'
import * as store from './follows.store.ts'
import { queueHistories } from './histories.store.ts'
import { namedTags } from './tag-patterns.ts'

/** The repo follows something else by now, or is gone. */
export class FollowEnded extends Error {
  override name = 'FollowEnded'
}

/** `path` is that at the upstream, with its prefix; `tx` is that of the lease, where there is one. */
export type Recording = { app: App; tx: Db['tx']; follow: FollowStatus; path: string }

/** Times are ISO texts: when it was seen, when the look began, when to look again, and the look before or nothing. */
export type Move = { tag: string; digest: string; now: string; sent: string; dueTime: string; checkedBefore: string }

/**
 * Writes the move, its row of the ledger with the look before, and its events; an empty digest is a deletion. Nothing moves where
 * somebody has looked since, since what was seen then is newer. Throws an
 * UpstreamError where a rule keeps a tag that was set here, before the repo followed.
 */
export async function recordMove({ app, tx: run, follow, path }: Recording, move: Move): Promise<number> {
  const { tag, digest, now, sent, dueTime } = move
  const by = { app, cause: { ...ownCause(app.clock, followerActor), now } }
  const mover: Mover = { now, actor: followerActor, source: 'upstream', inNameOf: follow.setter }
  const record = async (tx: Tx): Promise<number> => {
    const repo = await requireFollow(tx, follow)
    const looked = await store.findFollowedTag(tx, follow.repo, tag)
    if (looked && looked.checkedTime > sent) {
      await store.noteChecked(tx, follow.repo, [tag], { checkedTime: sent, dueTime })
      return 0
    }
    const last = await lastTime(tx, repo.ledger, tag)
    // Once it counts as deleted it is not watched any more, so only the ledger has what was seen since.
    if (!looked && last > sent) return 0
    const written = await writeMove(tx, by, { ...mover, repo, name: tag }, digest)
    if (written) {
      const { time, previousDigest } = written
      // A look before a deletion says nothing of when the tag came again.
      const checkedBefore = previousDigest === '' && move.checkedBefore <= last ? '' : move.checkedBefore
      if (checkedBefore !== '') await store.insertObservation(tx, repo.ledger, { tag, time, checkedBefore })
      const { repo: uid, upstream } = follow
      const resource = anUpstreamMove({ repo: uid, upstream, path, tag, digest, previousDigest, time, checkedBefore })
      await emit(tx, by, 'control.registry.upstream.moved', { subject: uid, group: parentOf(uid), resource })
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
  to: Mover & { repo: RepoRow; name: string },
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
  const event = { subject: tag.uid, group: rootOf(tag.uid), resource: aTag(tag) }
  await emit(tx, by, 'registry.tag.created', event)
  return { time: tag.assignTime, previousDigest }
}

/** The repo, locked, which still follows the same. */
export async function requireFollow(tx: Tx, follow: FollowStatus): Promise<RepoRow> {
  const repo = await lockRepoRow(tx, follow.repo, 'alone')
  if (!repo || !(await store.isCurrentFollow(tx, follow))) throw new FollowEnded('the repo follows something else')
  return repo
}
