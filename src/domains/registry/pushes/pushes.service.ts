// Pushes of manifests with their tags.
import type { Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emitPush, type Origin } from '#domains/outbox/emit-registry.ts'
import { permissionDenied } from '#lib/errors.ts'
import type { Precondition } from '#lib/preconditions.ts'
import { findRepoBlobs, type PushTarget } from '../blobs/blobs.store.ts'
import { meterOf, requireBytes } from '../blobs/usage.service.ts'
import { queueAttested, queueContents } from '../images/image-contents.service.ts'
import { type Manifest, type ManifestDocument, maxIndexesWith, maxIndexLevels } from '../manifests/manifests.model.ts'
import * as store from '../manifests/manifests.store.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import { assignTag, requireTagAt } from '../tags/tag-moves.service.ts'
import { actorOf, attestedByTag } from '../tags/tags.model.ts'

/** Permissions of the caller: to create tags, and to move existing tags. */
export type TagRights = { create: boolean; move: boolean }

export type ManifestPush = {
  target: PushTarget
  manifest: Manifest
  document: ManifestDocument
  tags: readonly string[]
  mayTag: TagRights
  /** Precondition on the current digest of each tag. */
  precondition: Precondition | undefined
  origin: Origin
  /** True if content that the manifest lists may be pushed later. The contents of the image are read after that. */
  sparse?: true
}

/** Reason for refusing a push. `nested`: too many levels of indexes. `wrong`: the manifest has a wrong size for some content. */
export type PushProblem =
  | { missing: { blobs: string[]; manifests: string[] } }
  | { nested: string }
  | { wrong: { digest: string; size: number; stored: number } }
export type PushResult = 'stored' | 'no repo' | PushProblem

/**
 * Stores the manifest and assigns its tags, all or nothing. Listed content must be in the repository, unless the settings allow
 * otherwise. Throws RESOURCE_EXHAUSTED if a quota of the organization is reached.
 */
export async function pushManifest(work: Work, push: ManifestPush): Promise<PushResult> {
  const { manifest, document, tags } = push
  for (const pushBeginning of work.app.hooks.pushBeginning) await pushBeginning(push.target.uid)
  if (!push.target.repo) {
    const problem = await refuseInNewRepo(work, push)
    if (problem) return problem
  }
  let [isNew, isRead] = [false, false]
  const result = await push.target.tx('alone', async (tx, there): Promise<PushResult> => {
    const repo = await there()
    if (!repo) return 'no repo'
    isNew = !(await store.hasManifest(tx, repo.id, manifest.digest))
    isRead = isNew
    if (isNew) {
      const listed = await readReferenced(tx, repo, push)
      const problem =
        sizeProblem(push, listed) ??
        nestingProblem(listed) ??
        (push.sparse ? undefined : missingProblem(work, push, listed))
      if (problem) return problem
      const added = await store.insertManifest(tx, repo, manifest, document, listed.levels, work.cause.now)
      await requireBytes(tx, work, repo, added, repo.limits)
      if (listed.levels > 0) await store.raiseLevels(tx, repo.id, listed.above, listed.levels + 1)
      await store.insertLinks(tx, repo.id, manifest.digest, 0, document.blobs)
      await store.insertLinks(tx, repo.id, manifest.digest, 1, document.manifests)
      if (!push.sparse) await queueContents(tx, repo.id, manifest.digest, document, work.cause.now)
    }
    const pushed = { digest: manifest.digest, document, tags, isNew, sparse: push.sparse === true }
    for (const manifestPushed of work.app.hooks.manifestPushed) await manifestPushed(tx, work, repo, pushed)
    if (tags.length === 0) await emitOf(tx, work, repo, push)
    for (const name of tags) {
      const subject = attestedByTag(name)
      const mover = { now: work.cause.now, actor: actorOf(work), source: 'oci' } as const
      const { previousDigest, changed } = await assignTag(tx, work, { ...mover, repo, name, digest: manifest.digest })
      // A repeated assignment changes nothing, so it needs no permission.
      if (changed) requireTagRight(push.mayTag, previousDigest !== '')
      requireTagAt(push.precondition, name, previousDigest)
      if (changed && subject !== undefined) {
        isRead = true
        await queueAttested(tx, repo.id, subject, work.cause.now)
      }
      await emitOf(tx, work, repo, push, { tag: name, previousDigest })
    }
    return 'stored'
  })
  if (isRead) work.app.images.pushed.notify()
  return result
}

/**
 * Checks a push to a missing repository before the repository is created. A push that the new repository would refuse must not
 * create it.
 */
async function refuseInNewRepo(work: Work, push: ManifestPush): Promise<PushProblem | undefined> {
  const { target, manifest, tags } = push
  const problem = missingProblem(work, push, { sizes: new Map() })
  if (problem) return problem
  if (tags.length > 0) requireTagRight(push.mayTag, false)
  await meterOf(work, target, manifest.content.length)
  for (const tag of tags) requireTagAt(push.precondition, tag, '')
  return undefined
}

function requireTagRight({ create, move }: TagRights, exists: boolean): void {
  if (exists ? move : create) return
  const what = exists
    ? 'the tag exists, and you do not have the capability tag.update to move it'
    : 'you do not have the capability tag.create to create tags'
  throw permissionDenied(`${what}; an owner of the organization can grant it`)
}

/** Content of the repository that a manifest lists, and indexes that list the manifest. */
type ReferencedContent = {
  sizes: Map<string, number>
  levels: number
  /** Indexes that list this manifest and were pushed before it. */
  above: string[]
  /** True if another index lists one of the indexes in `above`. */
  isAboveListed: boolean
}

async function readReferenced(tx: Tx, repo: RepoRef, { manifest, document }: ManifestPush): Promise<ReferencedContent> {
  const manifests = await store.storedManifests(tx, repo.id, document.manifests)
  const blobs = await findRepoBlobs(tx, repo.id, [...document.blobs, ...document.listedBlobs])
  const sizes = new Map([...blobs, ...manifests.values()].map(({ digest, size }) => [digest, size]))
  if (document.kind === 'image') return { sizes, levels: 0, above: [], isAboveListed: false }
  const above = await store.indexesWith(tx, repo.id, manifest.digest, maxIndexesWith + 1)
  return {
    sizes,
    levels: 1 + Math.max(0, ...[...manifests.values()].map(({ levels }) => levels)),
    above: above.map((index) => index.manifest),
    isAboveListed: above.some(({ listed }) => listed === 1),
  }
}

/**
 * Sizes in a manifest must be correct. Readers of the manifest reserve memory by these sizes and count them against their limits.
 */
function sizeProblem({ document }: ManifestPush, { sizes }: ReferencedContent): PushProblem | undefined {
  for (const [digest, size] of document.sizes) {
    const stored = sizes.get(digest)
    if (stored !== undefined && stored !== size) return { wrong: { digest, size, stored } }
  }
  return undefined
}

function nestingProblem({ levels, above, isAboveListed }: ReferencedContent): PushProblem | undefined {
  const most = `indexes can be nested at most ${maxIndexLevels} levels deep`
  if (levels > maxIndexLevels) return { nested: `${most}, but this index lists an index that lists indexes` }
  if (isAboveListed) return { nested: `${most}, but this index is listed by an index that another index lists` }
  if (above.length === 0) return undefined
  if (levels === maxIndexLevels) return { nested: `${most}, but this index lists an index and is listed by an index` }
  if (above.length <= maxIndexesWith) return undefined
  return { nested: `the index is listed by more than ${maxIndexesWith} indexes` }
}

function missingProblem(
  work: Work,
  { document }: Pick<ManifestPush, 'document'>,
  { sizes }: Pick<ReferencedContent, 'sizes'>,
): PushProblem | undefined {
  const { sparseManifests } = work.app.config
  if (sparseManifests === 'all' || (sparseManifests === 'indexes' && document.kind === 'index')) return undefined
  const missing = {
    blobs: document.blobs.filter((digest) => !sizes.has(digest)),
    manifests: document.manifests.filter((digest) => !sizes.has(digest)),
  }
  return missing.blobs.length + missing.manifests.length > 0 ? { missing } : undefined
}

async function emitOf(
  tx: Tx,
  work: Work,
  repo: RepoRef,
  { manifest: { digest, mediaType }, origin }: ManifestPush,
  moved: { tag?: string; previousDigest?: string } = {},
): Promise<void> {
  const { tag, previousDigest = '' } = moved
  const was = previousDigest === digest ? {} : { previousDigest }
  await emitPush(tx, work, repo, origin, { type: 'manifest', digest, mediaType, ...(tag ? { tag, ...was } : {}) })
}
