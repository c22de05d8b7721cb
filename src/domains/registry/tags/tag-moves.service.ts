// A tag moves only here, whichever door asked, so that the tag and the row of the ledger are always one transaction.
import type { Sql, Tx } from '#db/sql.ts'
import { newUid } from '#lib/uid.ts'
import { type HistoryRecord, timeAfter } from './tag-history.model.ts'
import * as history from './tag-history.store.ts'
import type { Mover, Tag, TagRepo } from './tags.model.ts'
import * as store from './tags.store.ts'

export type Assignment = Mover & { repo: TagRepo; name: string; digest: string }

/** `previousDigest` is empty when the tag is new; `changed` tells whether the ledger has got a row. */
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
  const { repo, name, digest, now, actor, source } = to
  const before = await store.findTagNamed(tx, repo.id, name)
  const { deprecated = before?.deprecated ?? false, bundles = before?.bundles ?? [] } = also
  const changed = before?.digest !== digest
  const same = before?.deprecated === deprecated && JSON.stringify(before.bundles) === JSON.stringify(bundles)
  if (before && !changed && same) return { tag: before, previousDigest: digest, changed }

  // `updateTime` is never earlier than the tag's last row of the ledger.
  const time = timeAfter(now, before ? before.updateTime : await history.lastTime(tx, repo.ledger, name))
  const tag: Tag = {
    uid: before?.uid ?? newUid(repo.uid),
    name,
    digest,
    deprecated,
    bundles,
    createTime: before?.createTime ?? time,
    updateTime: time,
    assignTime: changed ? time : before!.assignTime,
  }
  const previousDigest = before?.digest ?? ''
  if (before) await store.patchTag(tx, before, tag)
  else await store.insertTag(tx, repo, tag)
  const event = before ? 'moved' : 'created'
  if (changed) {
    const record = { tag: name, time, event, digest, previousDigest, actor, source } as const
    await history.insertRecords(tx, repo, [record])
  }
  return { tag, previousDigest, changed }
}

export async function removeTag(tx: Tx, repo: TagRepo, tag: Tag, { now, actor, source }: Mover): Promise<void> {
  const time = timeAfter(now, tag.updateTime)
  await history.insertDeletions(tx, repo, store.ofUid(tag.uid), { time, actor, source })
  await store.deleteTag(tx, tag)
}

/** The tag that was deleted; `undefined` when there is none of this name. */
export async function removeTagNamed(
  tx: Tx,
  removal: Mover & { repo: TagRepo; name: string },
): Promise<Tag | undefined> {
  const tag = await store.findTagNamed(tx, removal.repo.id, removal.name)
  if (tag) await removeTag(tx, removal.repo, tag, removal)
  return tag
}

/** Deletes every tag of the repo, or every tag that points to the digest. */
export async function removeTags(tx: Tx, removal: Mover & { repo: TagRepo; digest?: string }): Promise<string> {
  const { repo, digest, now, actor, source } = removal
  const where: Sql = store.ofRepo(repo, digest)
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
 * points where the last one says. `true` when this made the tag.
 */
export async function appendPastMoves(
  tx: Tx,
  repo: TagRepo,
  { name, moves, deprecated, actor }: PastMoves,
): Promise<boolean> {
  const before = await store.findTagNamed(tx, repo.id, name)
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
    await store.patchTag(tx, before, { ...before, digest, updateTime, assignTime: time })
    return false
  }
  const [uid, createTime] = [newUid(repo.uid), first.time]
  const tag: Tag = { uid, name, digest, deprecated, bundles: [], createTime, updateTime: time, assignTime: time }
  await store.insertTag(tx, repo, tag)
  return true
}
