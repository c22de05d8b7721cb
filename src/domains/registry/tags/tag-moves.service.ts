// A tag moves only here, whichever door asked, so that the tag and the row of the ledger are always one transaction, in
// which the repo is locked (`lockRepo`). What
// deletes a tag writes its event here too; that of an assignment is the door's own, a push or a call of the API.
import type { Work } from '#app.ts'
import type { Sql, Tx } from '#db/sql.ts'
import { emitEach } from '#domains/outbox/emit.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { holds, type Precondition, preconditionFailed } from '#lib/preconditions.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { allRows, type Removal } from '../repos/removals.model.ts'
import { type HistoryRecord, timeAfter } from './tag-history.model.ts'
import * as history from './tag-history.store.ts'
import type { Mover, Tag, TagRepo } from './tags.model.ts'
import * as store from './tags.store.ts'

/** Without a digest, a tag keeps the one that it has; a new one points to nothing yet, of which the ledger says nothing. */
export type Assignment = Mover & { repo: TagRepo; name: string; digest: string | undefined }

/** `previousDigest` is empty when the tag had none; `changed` tells whether the ledger has got a row. */
export type Assigned = { tag: Tag; previousDigest: string; changed: boolean }

/**
 * Points the tag to the digest, making it when it is not there, and gives it what `also` names. The same again changes
 * nothing. What it pointed to gets its date. Throws where a rule of tags forbids the move.
 */
export async function assignTag(
  tx: Tx,
  by: Pick<Work, 'app'>,
  to: Assignment,
  also: Partial<Pick<Tag, 'deprecated' | 'bundles'>> = {},
): Promise<Assigned> {
  const { repo, name, now, actor, source, inNameOf = actor } = to
  // Nobody else moves tags of the repo now, but what is no longer rebuilt is noted at any time.
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
  // `updateTime` is never earlier than the tag's last row of the ledger.
  const time = timeAfter(now, before ? before.updateTime : await lastTimeOf(tx, repo, name))
  const tag: Tag = {
    uid: before?.uid ?? newUid(repo.uid),
    name,
    digest,
    deprecated,
    // What it pointed to before says nothing of what it points to now.
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
    await tellLeft(tx, by, repo, { tag: name, digest: previousDigest, time })
  }
  return { tag, previousDigest, changed }
}

/**
 * Throws ABORTED unless the precondition holds for a tag that points to `digest`, empty when it points to nothing. To be
 * asked in the transaction that has locked the repo, of what the tag was before it.
 */
export function requireTagAt(precondition: Precondition | undefined, name: string, digest: string): void {
  if (!precondition || holds(precondition, digest === '' ? [] : [digest])) return
  const now = digest === '' ? 'points to nothing' : `points to ${digest}`
  throw preconditionFailed(`the tag ${name} ${now}, which is not what the request is meant for`, digest)
}

/** Of a tag that is not there: also of a deletion that the ledger is still to get. */
async function lastTimeOf(tx: Tx, { ledger }: TagRepo, name: string): Promise<string> {
  const [last, removed] = [await history.lastTime(tx, ledger, name), await history.removalTime(tx, ledger)]
  return last > removed ? last : removed
}

/** Tells higher domains of the digest that a tag pointed to, if it did to any. */
async function tellLeft(
  tx: Tx,
  { app }: Pick<Work, 'app'>,
  repo: TagRepo,
  left: { tag: string; digest: string; time: string },
): Promise<void> {
  if (left.digest === '') return
  for (const tagLeft of app.hooks.tagLeft) await tagLeft(tx, repo, left)
}

/** In whose name, for the event. */
type By = Pick<Work, 'app' | 'cause'>

/** What it pointed to gets its date. Throws where a rule of tags or a hold forbids it. */
export async function removeTag(tx: Tx, by: By, tag: Tag, removal: Mover & { repo: TagRepo }): Promise<void> {
  const { repo, now, actor, source } = removal
  const { name, digest } = tag
  for (const may of by.app.hooks.mayDeleteTag) await may(tx, repo, { name, digest, now, actor, source })
  const time = timeAfter(now, tag.updateTime)
  await history.insertDeletions(tx, repo, store.ofUid(tag.uid), { time, actor, source })
  await store.deleteTag(tx, tag)
  await tellLeft(tx, by, repo, { tag: name, digest, time })
  await tell(tx, by, [tag.uid])
}

/** The tag that was deleted; `undefined` when there is none of this name. */
export async function removeTagNamed(
  tx: Tx,
  by: By,
  removal: Mover & { repo: TagRepo; name: string },
): Promise<Tag | undefined> {
  const tag = await store.findTagNamed(tx, removal.repo.id, removal.name)
  if (tag) await removeTag(tx, by, tag, removal)
  return tag
}

/** Deletes every tag that points to the digest. */
export async function removeTagsOf(tx: Tx, by: By, digest: string, removal: Mover & { repo: TagRepo }): Promise<void> {
  const where = store.ofRepo(removal.repo, digest)
  for (let after = ''; ; ) {
    const uids = await store.uidsWhere(tx, where, after, toldAtOnce)
    await tell(tx, by, uids)
    after = uids.at(-1) ?? ''
    if (uids.length < toldAtOnce) break
  }
  await removeWhere(tx, where, removal)
}

/**
 * Deletes at most so many tags of a repo that is deleted, or all of them. The history has one time for all of them, and the
 * event of the repo tells of them. Returns how many.
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

/** When the last of all tags of a repo was changed; empty without one. From lists, however many there are. */
export function lastMoveIn(tx: Tx, { uid }: Pick<TagRepo, 'uid'>): Promise<string> {
  return store.lastUpdateIn(tx, uid)
}

const toldAtOnce = 1000

async function tell(tx: Tx, by: By, uids: readonly string[]): Promise<void> {
  const inputs = uids.map((uid) => ({ subject: uid, group: rootOf(uid), resource: aDeletion({ uid }) }))
  await emitEach(tx, by, 'registry.tag.deleted', inputs)
}

async function removeWhere(tx: Tx, where: Sql, removal: Mover & { repo: TagRepo }): Promise<void> {
  const { repo, now, actor, source } = removal
  const last = await store.lastUpdateOf(tx, where)
  if (last === '') return
  // One time for all: after the last move of each of them.
  const time = timeAfter(now, last)
  await history.insertDeletions(tx, repo, where, { time, actor, source })
  await store.deleteTagsWhere(tx, repo, where)
}

/** What happened to a tag elsewhere: from when on it pointed where, the oldest first. */
export type PastMoves = {
  name: string
  moves: readonly { time: string; digest: string }[]
  /** Counts only when this makes the tag. */
  deprecated: boolean
  actor: string
}

/**
 * Adds moves with the times that they had elsewhere; each must be later than what the ledger has of the tag. The tag then
 * points where the last one says. `made` when there was no such tag.
 */
export async function appendPastMoves(
  tx: Tx,
  by: By,
  repo: TagRepo,
  { name, moves, deprecated, actor }: PastMoves,
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
  // Known from now on, whatever their times elsewhere.
  for (const digest of new Set(records.map(({ previousDigest }) => previousDigest))) {
    await tellLeft(tx, by, repo, { tag: name, digest, time: by.cause.now })
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

/** What the last record of a ledger says of a tag: its time, empty without one, and where the tag then pointed, if anywhere. */
export type LastRecord = { time: string; digest: string }

/** Gives the ledger a record of where a tag points that it says something else of; where they agree, only the time is its. */
export async function settleTag(tx: Tx, repo: TagRepo, tag: Tag, last: LastRecord, by: Mover): Promise<void> {
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

/** A tag that the ledger has and that is not there, as it was; one that cannot stand, since its manifest is lost, gets its deletion. */
export async function bringBackTag(
  tx: Tx,
  repo: TagRepo,
  { name, time, digest }: LastRecord & { name: string },
  canStand: boolean,
  { now, actor, source }: Mover,
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
