// A tag moves only here, whichever door asked, so that the tag and the row of the ledger are always one transaction, in
// which the repo is locked (`lockRepo`). What
// deletes a tag writes its event here too; that of an assignment is the door's own, a push or a call of the API.
import type { Work } from '#app.ts'
import type { Sql, Tx } from '#db/sql.ts'
import { emitEach } from '#domains/events/outbox/emit.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import { type HistoryRecord, timeAfter } from './tag-history.model.ts'
import * as history from './tag-history.store.ts'
import type { Mover, Tag, TagRepo } from './tags.model.ts'
import * as store from './tags.store.ts'

/** Who the ledger says it was: a push token, whose uid begins with that of its maker, or the caller. */
export function actorOf({ caller }: Pick<Work, 'caller'>): string {
  return caller.token?.pushToken ?? caller.uid
}

/** Without a digest, a tag keeps the one that it has; a new one points to nothing yet, of which the ledger says nothing. */
export type Assignment = Mover & { repo: TagRepo; name: string; digest: string | undefined }

/** `previousDigest` is empty when the tag had none; `changed` tells whether the ledger has got a row. */
export type Assigned = { tag: Tag; previousDigest: string; changed: boolean }

/**
 * Points the tag to the digest, making it when it is not there, and gives it what `also` names. The same again changes
 * nothing.
 */
export async function assignTag(
  tx: Tx,
  to: Assignment,
  also: Partial<Pick<Tag, 'deprecated' | 'bundles'>> = {},
): Promise<Assigned> {
  const { repo, name, now, actor, source } = to
  // Nobody else moves tags of the repo now, but what is no longer rebuilt is noted at any time.
  const before = await store.lockTagNamed(tx, repo.id, name)
  const previousDigest = before?.digest ?? ''
  const digest = to.digest ?? previousDigest
  const { deprecated = before?.deprecated ?? false, bundles = before?.bundles ?? [] } = also
  const changed = digest !== previousDigest
  const same = before?.deprecated === deprecated && JSON.stringify(before.bundles) === JSON.stringify(bundles)
  if (before && !changed && same) return { tag: before, previousDigest, changed }

  // `updateTime` is never earlier than the tag's last row of the ledger.
  const time = timeAfter(now, before ? before.updateTime : await history.lastTime(tx, repo.ledger, name))
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
    await history.insertRecords(tx, repo, [record])
  }
  return { tag, previousDigest, changed }
}

/** In whose name, for the event. */
type By = Pick<Work, 'app' | 'cause'>

export async function removeTag(tx: Tx, by: By, tag: Tag, removal: Mover & { repo: TagRepo }): Promise<void> {
  const { repo, now, actor, source } = removal
  const time = timeAfter(now, tag.updateTime)
  await history.insertDeletions(tx, repo, store.ofUid(tag.uid), { time, actor, source })
  await store.deleteTag(tx, tag)
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

/** Deletes every tag of a repo that is deleted itself, whose event tells of it. Answers with the time of the ledger. */
export async function removeAllTags(tx: Tx, removal: Mover & { repo: TagRepo }): Promise<string> {
  return removeWhere(tx, store.ofRepo(removal.repo), removal)
}

const toldAtOnce = 1000

async function tell(tx: Tx, by: By, uids: readonly string[]): Promise<void> {
  const inputs = uids.map((uid) => ({ subject: uid, group: rootOf(uid), resource: aDeletion({ uid }) }))
  await emitEach(tx, by, 'registry.tag.deleted', inputs)
}

async function removeWhere(tx: Tx, where: Sql, removal: Mover & { repo: TagRepo }): Promise<string> {
  const { repo, now, actor, source } = removal
  const last = await store.lastUpdateOf(tx, where)
  if (last === '') return ''
  // One time for all: after the last move of each of them.
  const time = timeAfter(now, last)
  await history.insertDeletions(tx, repo, where, { time, actor, source })
  await store.deleteTagsWhere(tx, repo, where)
  return time
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
  repo: TagRepo,
  { name, moves, deprecated, actor }: PastMoves,
): Promise<{ tag: Tag; made: boolean }> {
  const before = await store.lockTagNamed(tx, repo.id, name)
  const records = moves.map(({ time, digest }, i): HistoryRecord => {
    const previousDigest = moves[i - 1]?.digest ?? before?.digest ?? ''
    const event = previousDigest ? 'moved' : 'created'
    return { tag: name, time, event, digest, previousDigest, actor, source: 'import' }
  })
  await history.insertRecords(tx, repo, records)

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
