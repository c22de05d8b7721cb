import type { Call, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { groupExists } from '#domains/iam/groups/groups.service.ts'
import { listFrom } from '#domains/iam/groups/list-nodes.ts'
import { listScope } from '#domains/iam/groups/list-scope.ts'
import { emit } from '#domains/outbox/emit.ts'
import { digestPattern } from '#lib/digest.ts'
import { failedPrecondition, found, invalid, notFound } from '#lib/errors.ts'
import { checkFields } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import type { Precondition } from '#lib/preconditions.ts'
import { parentOf, rootOf } from '#lib/uid.ts'
import { inRepo, lockRepo } from '../blobs/blobs.store.ts'
import { hasManifest } from '../manifests/manifests.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow, lockRepoRow } from '../repos/repos.store.ts'
import { type Assigned, assignTag, removeTag, removeTagNamed, requireTagAt } from './tag-moves.service.ts'
import {
  type AssignmentCause,
  actorOf,
  everyShape,
  maxBundles,
  recentMs,
  shapes,
  type Tag,
  type TagRepo,
  type TagsSummary,
  tagFields,
  tagType,
  toTagResource,
} from './tags.model.ts'
import * as store from './tags.store.ts'

/** Fields of a tag in a request. Without a digest, an existing tag keeps its digest, and a new tag points to nothing. */
export type NewTag = Pick<Tag, 'name' | 'deprecated' | 'bundles'> & { digest: string | undefined }

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
    // Children of a repository are its tags. Children of a group are not tags.
    if (!('childrenOf' in branch)) branches.push(branch)
    else if (await isRepo(branch.childrenOf)) branches.push({ below: branch.childrenOf })
  }
  if (branches.length === 0) return { items: [], total: 0, next: '' }
  return listFrom(call, query, branches, { list: store.listTags, count: store.countTags })
}

/** Creates the tag. If the name exists, assigns the digest and replaces the other fields. */
export async function createTag(call: Call, parent: string, input: NewTag): Promise<Tag> {
  checkTag(input)
  const { tag, changed } = await call.app.db.tx(async (tx) => {
    const assigned = await setTag(tx, call, await requireRepo(tx, parent), input)
    await emit(tx, call, 'registry.tag.created', eventOf(assigned))
    return assigned
  }, inRepo)
  call.log.info('tag created or moved', { uid: tag.uid, changed })
  return tag
}

/** Replaces all fields except the name. Without a digest in the request, the tag keeps its digest. */
export async function updateTag(call: Call, uid: string, input: NewTag): Promise<Tag> {
  const { tag, changed } = await call.app.db.tx(async (tx) => {
    const repo = await lockRepoRow(tx, parentOf(uid), 'alone')
    const before = repo && (await store.findTag(tx, uid))
    if (!repo || !before) throw notFound(tagType, uid)
    const { name } = before
    if (input.name !== '' && input.name !== name) throw invalid({ field: 'name', description: 'cannot be changed' })
    checkTag({ ...input, name })
    const assigned = await setTag(tx, call, repo, { ...input, name })
    await emit(tx, call, 'registry.tag.updated', eventOf(assigned))
    return assigned
  }, inRepo)
  call.log.info('tag replaced', { uid, changed })
  return tag
}

function checkTag(input: NewTag): void {
  const tooMany = { field: 'bundles', description: `must have at most ${maxBundles} entries` }
  checkFields(tagFields, input, input.bundles.length > maxBundles ? [tooMany] : [])
}

async function setTag(tx: Tx, call: Call, repo: TagRepo, input: NewTag): Promise<Assigned> {
  for (const mayChangeTags of call.app.hooks.mayChangeTags) await mayChangeTags(tx, repo.uid)
  const { name, digest } = input
  if (digest !== undefined && !(await hasManifest(tx, repo.id, digest))) {
    throw failedPrecondition({
      type: 'MANIFEST_NOT_FOUND',
      subject: digest,
      description: `the repository does not have the manifest ${digest}; push it first`,
    })
  }
  const mover: AssignmentCause = { now: call.now, actor: call.caller.uid, source: 'api' }
  return assignTag(tx, call, { ...mover, repo, name, digest }, input)
}

function eventOf({ tag }: Assigned) {
  return { subject: tag.uid, group: rootOf(tag.uid), resource: toTagResource(tag) }
}

export async function deleteTag(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const repo = await lockRepoRow(tx, parentOf(uid), 'alone')
    const tag = repo && (await store.findTag(tx, uid))
    if (!repo || !tag) throw notFound(tagType, uid)
    for (const mayChangeTags of call.app.hooks.mayChangeTags) await mayChangeTags(tx, repo.uid)
    await removeTag(tx, call, tag, { repo, now: call.now, actor: call.caller.uid, source: 'api' })
  }, inRepo)
  call.log.info('tag deleted', { uid })
}

/**
 * Deletes a tag. The manifest can still be pulled by its digest. Returns false if there is no such tag. Throws ABORTED if the
 * precondition of the request does not hold.
 */
export async function deleteTagNamed(
  work: Work,
  repo: TagRepo,
  name: string,
  precondition: Precondition | undefined,
): Promise<boolean> {
  const removal = { repo, name, now: work.cause.now, actor: actorOf(work), source: 'oci' } as const
  const tag = await work.app.db.tx(async (tx) => {
    if (!(await lockRepo(tx, repo, 'alone'))) return undefined
    const removed = await removeTagNamed(tx, work, removal)
    if (removed) requireTagAt(precondition, name, removed.digest)
    return removed
  }, inRepo)
  if (tag) work.log.info('tag deleted', { repo: repo.uid, tag: name })
  return tag !== undefined
}

/**
 * Summary of the tags of a repository, for names of the requested shapes only. A missing repository counts as a repository
 * without tags.
 */
export async function getTagsSummary(call: Call, repoUid: string, asked: number): Promise<TagsSummary> {
  const { db } = call.app
  const [branches, filter] = [[{ below: repoUid }], { name: '', digest: '', updatedSince: '', asked }]
  const repo = await findRepoRow(db, { uid: repoUid })
  const newest = repo && (await newestTag(db, branches, filter))
  if (!repo || !newest) return { count: 0 }
  const latest = (await store.findTagNamed(db, repo.id, 'latest')) ?? newest
  const latestVersion = await store.longestNameWith(db, repo, latest, { asked, without: ['latest', 'latest-dev'] })
  const count = await store.countTags(db, branches, filter)
  return { count, lastUpdated: newest.updateTime, latest, latestVersion }
}

/** True if a tag of the repository was changed within the last 7 days. */
export async function isRecentlyUpdated(call: Call, repoUid: string): Promise<boolean> {
  found(await findRepoRow(call.app.db, { uid: repoUid }), repoType, repoUid)
  const filter = { name: '', digest: '', updatedSince: '', asked: everyShape }
  const newest = await newestTag(call.app.db, [{ below: repoUid }], filter)
  return newest !== undefined && Date.parse(call.now) - Date.parse(newest.updateTime) < recentMs
}

/** Number of tags of a repository or below a group, without tags of referrers, and the tag that was changed last. */
export async function tagsBelow(reader: Reader, uid: string): Promise<{ count: number; newest: Tag | undefined }> {
  const filter = { name: '', digest: '', updatedSince: '', asked: shapes.dates | shapes.epochs }
  const branches = [{ below: uid }]
  return { count: await store.countTags(reader, branches, filter), newest: await newestTag(reader, branches, filter) }
}

/** The tags below a group that were changed last, without tags of referrers. At most `most`. */
export async function newestTags(reader: Reader, group: string, most: number): Promise<Tag[]> {
  const filter = { name: '', digest: '', updatedSince: '', asked: shapes.dates | shapes.epochs }
  const order = { field: 'updateTime', column: 'update_time', desc: true }
  const page = { order, after: undefined, size: most - 1, skip: 0, binding: '' }
  return (await store.listTags(reader, [{ below: group }], page, filter)).slice(0, most)
}

async function newestTag(reader: Reader, branches: store.TagBranch[], filter: store.TagFilter) {
  const order = { field: 'updateTime', column: 'update_time', desc: true }
  const [newest] = await store.listTags(
    reader,
    branches,
    { order, after: undefined, size: 0, skip: 0, binding: '' },
    filter,
  )
  return newest
}

/** Digest of the tag and the time of its assignment, with one read of one index. */
export async function tagForPull(
  reader: Reader,
  repo: TagRepo,
  name: string,
): Promise<{ digest: string; since: string } | undefined> {
  return store.digestOf(reader, repo.id, name)
}

/** Tag names of a repository after `last`, in byte order. If `among` is given, only names that are in it. */
export async function tagNames(
  reader: Reader,
  repo: TagRepo,
  last: string,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  return store.tagNames(reader, repo.id, last, limit, among)
}

async function requireRepo(tx: Tx, uid: string): Promise<TagRepo> {
  const repo = await lockRepoRow(tx, uid, 'alone')
  if (repo) return repo
  if (await groupExists(tx, uid)) throw invalid({ field: 'parent', description: 'must be the uid of a repository' })
  throw notFound(repoType, uid)
}

/** Body of a tag for events and responses. `deprecated` is also true if the image is no longer rebuilt. */
export function bodyOf({ uid, name, digest, deprecated, inactive, bundles, createTime, updateTime }: Tag) {
  return { uid, name, digest, deprecated: deprecated || inactive, bundles, createTime, updateTime }
}
