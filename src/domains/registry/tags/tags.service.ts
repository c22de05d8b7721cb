// A tag moves only here, whichever door asked, so that the tag and the row of the ledger are always one transaction.

import type { Call } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { emit } from '#domains/events/outbox/emit.ts'
import { listFrom } from '#domains/iam/access/list-nodes.ts'
import { listScope } from '#domains/iam/access/list-scope.ts'
import { groupExists } from '#domains/iam/groups/groups.service.ts'
import { digestPattern } from '#lib/digest.ts'
import { failedPrecondition, invalid, notFound } from '#lib/errors.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { checkFields } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists.ts'
import type { Listed } from '#lib/paging.ts'
import { newUid, parentOf, rootOf } from '#lib/uid.ts'
import { hasManifest } from '../manifests/manifests.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { timeAfter } from './tag-history.model.ts'
import * as history from './tag-history.store.ts'
import { aTag, type Mover, maxBundles, type Tag, type TagRepo, tagFields, tagType } from './tags.model.ts'
import * as store from './tags.store.ts'

export type NewTag = Pick<Tag, 'name' | 'digest' | 'deprecated' | 'bundles'>
export type Assignment = Mover & { repo: TagRepo; name: string; digest: string }

/** `previousDigest` is empty when the tag is new; `changed` tells whether the ledger has got a row. */
export type Assigned = { tag: Tag; previousDigest: string; changed: boolean }

export async function getTag(call: Call, uid: string): Promise<Tag> {
  const tag = await store.findTag(call.app.db, uid)
  if (!tag) throw notFound(tagType, uid)
  return tag
}

export async function listTags(call: Call, query: ListQuery<store.TagFilter>): Promise<Listed<Tag>> {
  const { db } = call.app
  const { digest } = query.filter
  if (digest !== '' && !digestPattern.test(digest)) {
    throw invalid({ field: 'digest', description: `digest must match "${digestPattern.source}"` })
  }
  const isRepo = async (uid: string) => (await findRepoRow(db, { uid })) !== undefined
  const parentExists = async (uid: string) => (await isRepo(uid)) || (await groupExists(db, uid))
  const scope = await listScope(call, query.uidp, { parentType: repoType, parentExists })

  const branches: store.TagBranch[] = []
  for (const branch of scope) {
    // The children of a repo are all that is below it, and those of a group are no tags.
    if (!('childrenOf' in branch)) branches.push(branch)
    else if (await isRepo(branch.childrenOf)) branches.push({ below: branch.childrenOf })
  }
  if (branches.length === 0) return { items: [], total: 0, next: '' }
  return listFrom(call, query, branches, { list: store.listTags, count: store.countTags })
}

/** Creates the tag, or moves the one of this name and gives it the other fields too. */
export async function createTag(call: Call, parent: string, input: NewTag): Promise<Tag> {
  const tooMany = { field: 'bundles', description: `must hold at most ${maxBundles} entries` }
  checkFields(tagFields, input, input.bundles.length > maxBundles ? [tooMany] : [])

  const { tag, changed } = await call.app.db.tx(async (tx) => {
    const repo = await requireRepo(tx, parent)
    if (!(await hasManifest(tx, repo.id, input.digest))) {
      throw failedPrecondition({
        type: 'MANIFEST_NOT_FOUND',
        subject: input.digest,
        description: `the repo holds no manifest ${input.digest}`,
      })
    }
    const mover: Mover = { now: call.now, actor: call.caller.uid, source: 'api' }
    const assigned = await put(tx, { ...mover, repo, name: input.name, digest: input.digest }, input)
    const { tag } = assigned
    await emit(tx, call, 'registry.tag.created', { subject: tag.uid, group: rootOf(repo.uid), resource: aTag(tag) })
    return assigned
  })
  call.log.info('tag created or moved', { uid: tag.uid, changed })
  return tag
}

export async function deleteTag(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const tag = await store.findTag(tx, uid)
    const repo = tag && (await findRepoRow(tx, { uid: parentOf(uid) }))
    if (!tag || !repo) throw notFound(tagType, uid)
    await remove(tx, repo, tag, { now: call.now, actor: call.caller.uid, source: 'api' })
    await emit(tx, call, 'registry.tag.deleted', { subject: uid, group: rootOf(uid), resource: aDeletion({ uid }) })
  })
  call.log.info('tag deleted', { uid })
}

/** Points the tag to the digest, making it when it is not there. The same digest again changes nothing. */
export async function assignTag(tx: Tx, assignment: Assignment): Promise<Assigned> {
  return put(tx, assignment, {})
}

/** The tag that was deleted; `undefined` when there is none of this name. */
export async function removeTag(tx: Tx, removal: Mover & { repo: TagRepo; name: string }): Promise<Tag | undefined> {
  const tag = await store.findTagNamed(tx, removal.repo.id, removal.name)
  if (tag) await remove(tx, removal.repo, tag, removal)
  return tag
}

/** Deletes every tag that points to the digest, and answers with them. */
export async function removeTagsOf(tx: Tx, removal: Mover & { repo: TagRepo; digest: string }): Promise<Tag[]> {
  const { repo, digest, now } = removal
  const where = store.ofRepo(repo, digest)
  const tags = await store.tagsWhere(tx, where)
  if (tags.length === 0) return []
  // One time for all: after the last move of each of them.
  const last = tags.reduce((latest, tag) => (tag.updateTime > latest ? tag.updateTime : latest), '')
  await history.insertDeletions(tx, repo.id, where, { ...removal, time: timeAfter(now, last) })
  await store.deleteTagsWhere(tx, repo, where)
  return tags
}

/** Forgets the tags of a repo that is being deleted, and their history with them. */
export async function forgetTags(tx: Tx, uid: string): Promise<void> {
  const repo = await requireRepo(tx, uid)
  await store.deleteTagsWhere(tx, repo, store.ofRepo(repo))
  await history.deleteHistory(tx, repo.id)
}

/** Where the tag points, and since when; one read of one index. */
export async function tagForPull(
  reader: Reader,
  repo: TagRepo,
  name: string,
): Promise<{ digest: string; since: string } | undefined> {
  return store.digestOf(reader, repo.id, name)
}

/** The names of a repo's tags after `last`, in the order of their bytes; with `among`, only these. */
export async function tagNames(
  reader: Reader,
  repo: TagRepo,
  last: string,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  return store.tagNames(reader, repo.id, last, limit, among)
}

async function put(tx: Tx, to: Assignment, also: Partial<Pick<Tag, 'deprecated' | 'bundles'>>): Promise<Assigned> {
  const { repo, name, digest, now, actor, source } = to
  const before = await store.findTagNamed(tx, repo.id, name)
  const { deprecated = before?.deprecated ?? false, bundles = before?.bundles ?? [] } = also
  const changed = before?.digest !== digest
  const same = before?.deprecated === deprecated && JSON.stringify(before.bundles) === JSON.stringify(bundles)
  if (before && !changed && same) return { tag: before, previousDigest: digest, changed }

  // `updateTime` is never earlier than the tag's last row of the ledger.
  const time = timeAfter(now, before ? before.updateTime : await history.lastTime(tx, repo.id, name))
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
    await history.insertRecords(tx, repo.id, [record])
  }
  return { tag, previousDigest, changed }
}

async function remove(tx: Tx, repo: TagRepo, tag: Tag, { now, actor, source }: Mover): Promise<void> {
  const time = timeAfter(now, tag.updateTime)
  await history.insertDeletions(tx, repo.id, store.ofUid(tag.uid), { time, actor, source })
  await store.deleteTag(tx, tag)
}

async function requireRepo(tx: Tx, uid: string): Promise<TagRepo> {
  const repo = await findRepoRow(tx, { uid })
  if (repo) return repo
  if (await groupExists(tx, uid)) throw invalid({ field: 'parent', description: 'is not a repo' })
  throw notFound(repoType, uid)
}

/** What the contract shows of a tag. */
export function bodyOf({ uid, name, digest, deprecated, bundles, createTime, updateTime }: Tag) {
  return { uid, name, digest, deprecated, bundles, createTime, updateTime }
}
