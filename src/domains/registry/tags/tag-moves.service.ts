// The only module that assigns and deletes tags. The tag and its row in the tag history are written in one transaction, in which
// the repository is locked (`lockRepo`). Deletions write their events here. The caller writes the event of an assignment, for
// example the push.
import type { Work } from '#app.ts'
import type { Sql, Tx } from '#db/sql.ts'
import { emitEach } from '#domains/outbox/emit.ts'
import { toDeletionResource } from '#lib/events/event-body.ts'
import { holds, type Precondition, preconditionFailed } from '#lib/preconditions.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { allRows, type Removal } from '../repos/removals.model.ts'
import { type HistoryRecord, timeAfter } from './tag-history.model.ts'
import * as history from './tag-history.store.ts'
import type { AssignmentCause, Tag, TagRepo } from './tags.model.ts'
import * as store from './tags.store.ts'

/**
 * Assignment of a digest to a tag. Without a digest, an existing tag keeps its digest. A new tag without a digest points to
 * nothing, and has no row in the tag history.
 */
export type Assignment = AssignmentCause & { repo: TagRepo; name: string; digest: string | undefined }

/** `previousDigest` is empty if the tag had no digest. `changed` is true if the tag history has a new row. */
export type Assigned = { tag: Tag; previousDigest: string; changed: boolean }

/**
 * Assigns the digest to the tag, and sets the fields in `also`. Creates the tag if necessary. Does nothing if the tag has this
 * digest and these fields already. The previous digest gets its retention date. Throws if a tag rule forbids the assignment.
 */
export async function assignTag(
  tx: Tx,
  by: Pick<Work, 'app'>,
  to: Assignment,
  also: Partial<Pick<Tag, 'deprecated' | 'bundles'>> = {},
): Promise<Assigned> {
  const { repo, name, now, actor, source, inNameOf = actor } = to
  // The lock on the repository stops other requests from assigning its tags. The end of life of a tag may still be recorded
  // meanwhile, so the row of the tag is locked too.
  const before = await store.lockTagNamed(tx, repo.id, name)
  const previousDigest = before?.digest ?? ''
  const digest = to.digest ?? previousDigest
  const { deprecated = before?.deprecated ?? false, bundles = before?.bundles ?? [] } = also
  const changed = digest !== previousDigest
  const same = before?.deprecated === deprecated && JSON.stringify(before.bundles) === JSON.stringify(bundles)
  if (before && !changed && same) return { tag: before, previousDigest, changed }

  const { hooks } = by.app
  if (changed) {
    for (const may of hooks.mayAssignTag) await may(tx, repo, { name, previousDigest, actor: inNameOf, source })
  }
  // `updateTime` is never earlier than the last row of the tag in the tag history.
  const time = timeAfter(now, before ? before.updateTime : await lastTimeOf(tx, repo, name))
  const tag: Tag = {
    uid: before?.uid ?? newUid(repo.uid),
    name,
    digest,
    deprecated,
    // End of life of the previous digest does not apply to the new one.
    inactive: !changed && (before?.inactive ?? false),
    bundles,
    createTime: before?.createTime ?? time,
    updateTime: time,
    assignTime: changed ? time : (before?.assignTime ?? ''),
  }
  if (before) await store.patchTag(tx, before, tag)
  else await store.insertTag(tx, repo, tag)
  if (changed) {
    const event = previousDigest === '' ? 'created' : 'moved'
    const record = { tag: name, time, event, digest, previousDigest, actor, source } as const
    for (const tagAssigning of hooks.tagAssigning) await tagAssigning(tx, repo, { tag: name, digest, time }, now)
    await history.insertRecords(tx, repo, [record])
    await notifyTagUnassigned(tx, by, repo, { tag: name, digest: previousDigest, time })
  }
  return { tag, previousDigest, changed }
}

/**
 * Throws ABORTED unless the precondition holds for the tag. `digest` is the current digest of the tag, and empty if the tag
 * points to nothing. Call this before the tag changes, in the transaction that has locked the repository.
 */
export function requireTagAt(precondition: Precondition | undefined, name: string, digest: string): void {
  if (!precondition || holds(precondition, digest === '' ? [] : [digest])) return
  const now = digest === '' ? 'does not exist' : `points to ${digest}`
  throw preconditionFailed(`the precondition of the request failed: the tag ${name} ${now}`, digest)
}

/** Time of the last row of a tag that does not exist. Includes a deletion that is not yet in the tag history. */
async function lastTimeOf(tx: Tx, { ledger }: TagRepo, name: string): Promise<string> {
  const [last, removed] = [await history.lastTime(tx, ledger, name), await history.removalTime(tx, ledger)]
  return last > removed ? last : removed
}

/** Calls the hooks for the previous digest of a tag, if it had one. */
async function notifyTagUnassigned(
  tx: Tx,
  { app }: Pick<Work, 'app'>,
  repo: TagRepo,
  left: { tag: string; digest: string; time: string },
): Promise<void> {
  if (left.digest === '') return
  for (const tagUnassigned of app.hooks.tagUnassigned) await tagUnassigned(tx, repo, left)
}

/** Members of `Work` that writing an event needs. */
type By = Pick<Work, 'app' | 'cause'>

/** Deletes the tag. The digest of the tag gets its retention date. Throws if a tag rule or a hold forbids the deletion. */
export async function removeTag(tx: Tx, by: By, tag: Tag, removal: AssignmentCause & { repo: TagRepo }): Promise<void> {
  const { repo, now, actor, source } = removal
  const { name, digest } = tag
  for (const may of by.app.hooks.mayDeleteTag) await may(tx, repo, { name, digest, now, actor, source })
  const time = timeAfter(now, tag.updateTime)
  await history.insertDeletions(tx, repo, store.ofUid(tag.uid), { time, actor, source })
  await store.deleteTag(tx, tag)
  await notifyTagUnassigned(tx, by, repo, { tag: name, digest, time })
  await notifyHooks(tx, by, [tag.uid])
}

/** Deletes the tag of this name and returns it. Returns undefined if there is no such tag. */
export async function removeTagNamed(
  tx: Tx,
  by: By,
  removal: AssignmentCause & { repo: TagRepo; name: string },
): Promise<Tag | undefined> {
  const tag = await store.findTagNamed(tx, removal.repo.id, removal.name)
  if (tag) await removeTag(tx, by, tag, removal)
  return tag
}

/** Deletes every tag that points to the digest. */
export async function removeTagsOf(
  tx: Tx,
  by: By,
  digest: string,
  removal: AssignmentCause & { repo: TagRepo },
): Promise<void> {
  const where = store.ofRepo(removal.repo, digest)
  for (let after = ''; ; ) {
    const uids = await store.uidsWhere(tx, where, after, toldAtOnce)
    await notifyHooks(tx, by, uids)
    after = uids.at(-1) ?? ''
    if (uids.length < toldAtOnce) break
  }
  await removeWhere(tx, where, removal)
}

/**
 * Deletes at most `limit` tags of a deleted repository, or all of them. Their rows in the tag history have the same time. No
 * event is written for each tag, since the event of the repository covers all tags. Returns the number of deleted tags.
 */
export async function removeTagsOfRemoval(tx: Tx, removal: Removal, limit: number): Promise<number> {
  const { id, uid, ledger, actor, deleteTime } = removal
  const repo = { id, uid, ledger }
  const some = limit === allRows ? undefined : await store.someUids(tx, id, limit)
  if (some?.length === 0) return 0
  const where = some ? store.ofUids(some) : store.ofRepo(repo)
  await history.insertDeletions(tx, repo, where, { time: deleteTime, actor, source: 'api' })
  return store.deleteTagsWhere(tx, repo, where)
}

/**
 * Time of the last change of any tag of a repository. Empty if the repository has no tags. The number of tags does not matter,
 * since the time is read from the lists.
 */
export function lastMoveIn(tx: Tx, { uid }: Pick<TagRepo, 'uid'>): Promise<string> {
  return store.lastUpdateIn(tx, uid)
}

const toldAtOnce = 1000

async function notifyHooks(tx: Tx, by: By, uids: readonly string[]): Promise<void> {
  const inputs = uids.map((uid) => ({ subject: uid, group: rootOf(uid), resource: toDeletionResource({ uid }) }))
  await emitEach(tx, by, 'registry.tag.deleted', inputs)
}

async function removeWhere(tx: Tx, where: Sql, removal: AssignmentCause & { repo: TagRepo }): Promise<void> {
  const { repo, now, actor, source } = removal
  const last = await store.lastUpdateOf(tx, where)
  if (last === '') return
  // All deletions have the same time, which is later than the last assignment of each tag.
  const time = timeAfter(now, last)
  await history.insertDeletions(tx, repo, where, { time, actor, source })
  await store.deleteTagsWhere(tx, repo, where)
}

/** Imported assignments of a tag, the oldest first. */
export type ImportedAssignments = {
  name: string
  moves: readonly { time: string; digest: string }[]
  /** Used only if the import creates the tag. */
  deprecated: boolean
  actor: string
}

/**
 * Adds assignments with their original times, which must be later than the last row of the tag. The tag then points to the last
 * digest. `made` is true if the import created the tag.
 */
export async function appendPastMoves(
  tx: Tx,
  by: By,
  repo: TagRepo,
  { name, moves, deprecated, actor }: ImportedAssignments,
): Promise<{ tag: Tag; made: boolean }> {
  const before = await store.lockTagNamed(tx, repo.id, name)
  const { hooks } = by.app
  const move = { name, previousDigest: before?.digest ?? '', actor, source: 'import' } as const
  for (const mayAssignTag of hooks.mayAssignTag) await mayAssignTag(tx, repo, move)
  const records = moves.map(({ time, digest }, i): HistoryRecord => {
    const previousDigest = moves[i - 1]?.digest ?? before?.digest ?? ''
    const event = previousDigest ? 'moved' : 'created'
    return { tag: name, time, event, digest, previousDigest, actor, source: 'import' }
  })
  for (const digest of new Set(moves.map((move) => move.digest))) {
    for (const tagAssigning of hooks.tagAssigning)
      await tagAssigning(tx, repo, { tag: name, digest, time: by.cause.now }, by.cause.now)
  }
  await history.insertRecords(tx, repo, records)
  // Retention starts at the time of the import, and not at the original times.
  for (const digest of new Set(records.map(({ previousDigest }) => previousDigest))) {
    await notifyTagUnassigned(tx, by, repo, { tag: name, digest, time: by.cause.now })
  }

  const [first, latest] = [records[0]!, records.at(-1)!]
  const { digest, time } = latest
  if (before) {
    const updateTime = time > before.updateTime ? time : before.updateTime
    const tag: Tag = { ...before, digest, inactive: false, updateTime, assignTime: time }
    await store.patchTag(tx, before, tag)
    return { tag, made: false }
  }
  const [uid, createTime] = [newUid(repo.uid), first.time]
  const times = { createTime, updateTime: time, assignTime: time }
  const tag: Tag = { uid, name, digest, deprecated, inactive: false, bundles: [], ...times }
  await store.insertTag(tx, repo, tag)
  return { tag, made: true }
}

/** Last row of a tag in the tag history. `time` is empty if there is no row, and `digest` is empty after a deletion. */
export type LastRecord = { time: string; digest: string }

/**
 * Makes the tag history agree with the tag. Adds a row if the last row has another digest. If the digests agree, only corrects
 * the time of the tag.
 */
export async function alignTagHistory(
  tx: Tx,
  repo: TagRepo,
  tag: Tag,
  last: LastRecord,
  by: AssignmentCause,
): Promise<void> {
  const { now, actor, source } = by
  if (last.digest !== '' && last.digest === tag.digest) {
    const updateTime = last.time > tag.updateTime ? last.time : tag.updateTime
    await store.patchTag(tx, tag, { ...tag, updateTime, assignTime: last.time })
    return
  }
  const time = timeAfter(now, last.time > tag.updateTime ? last.time : tag.updateTime)
  const event = tag.digest === '' ? 'deleted' : last.digest === '' ? 'created' : 'moved'
  const digests = { digest: tag.digest || last.digest, previousDigest: last.digest }
  await history.insertRecords(tx, repo, [{ tag: tag.name, time, event, ...digests, actor, source }])
  await store.patchTag(tx, tag, { ...tag, updateTime: time, assignTime: tag.digest === '' ? '' : time })
}

/** Restores a tag that exists only in the tag history. If its manifest is lost, adds a deletion to the tag history instead. */
export async function restoreTagFromHistory(
  tx: Tx,
  repo: TagRepo,
  { name, time, digest }: LastRecord & { name: string },
  canStand: boolean,
  { now, actor, source }: AssignmentCause,
): Promise<void> {
  if (canStand) {
    const times = { createTime: time, updateTime: time, assignTime: time }
    const plain = { deprecated: false, inactive: false, bundles: [] }
    await store.insertTag(tx, repo, { uid: newUid(repo.uid), name, digest, ...plain, ...times })
    return
  }
  const gone = { event: 'deleted', digest, previousDigest: digest } as const
  await history.insertRecords(tx, repo, [{ tag: name, time: timeAfter(now, time), ...gone, actor, source }])
}
