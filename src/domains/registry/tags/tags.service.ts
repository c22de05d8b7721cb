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
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { parentOf, rootOf } from '#lib/uid.ts'
import { hasManifest } from '../manifests/manifests.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { assignTag, removeTag } from './tag-moves.service.ts'
import { aTag, type Mover, maxBundles, type Tag, type TagRepo, tagFields, tagType } from './tags.model.ts'
import * as store from './tags.store.ts'

export type NewTag = Pick<Tag, 'name' | 'digest' | 'deprecated' | 'bundles'>

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
    const assigned = await assignTag(tx, { ...mover, repo, name: input.name, digest: input.digest }, input)
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
    await removeTag(tx, repo, tag, { now: call.now, actor: call.caller.uid, source: 'api' })
    await emit(tx, call, 'registry.tag.deleted', { subject: uid, group: rootOf(uid), resource: aDeletion({ uid }) })
  })
  call.log.info('tag deleted', { uid })
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
