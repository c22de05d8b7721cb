// Copies content from one repository of this server to another: the manifests, and links to the same blobs.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Work } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { quarantinedAs } from '#domains/policy/retention/quarantine.service.ts'
import { lockUntaggedDigest } from '#domains/policy/retention/retention-locks.service.ts'
import { findRepoBlobs, inRepo, linkBlob, lockRepo, repoExists } from '#domains/registry/blobs/blobs.store.ts'
import { requireBytes } from '#domains/registry/blobs/usage.service.ts'
import { queueContents } from '#domains/registry/images/image-contents.service.ts'
import { readManifest } from '#domains/registry/manifests/manifest-document.ts'
import { type Manifest, type ManifestDocument, maxIndexesWith } from '#domains/registry/manifests/manifests.model.ts'
import * as manifests from '#domains/registry/manifests/manifests.store.ts'
import type { RepoRow } from '#domains/registry/repos/repos.store.ts'
import { assignTag } from '#domains/registry/tags/tag-moves.service.ts'
import { everyShape, shapeOf, type Tag, toTagResource } from '#domains/registry/tags/tags.model.ts'
import * as tags from '#domains/registry/tags/tags.store.ts'
import { AppError } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import type { Sync, SyncCursor } from './syncs.model.ts'
import { isCurrent } from './syncs.store.ts'

/**
 * One copy from a source to a target repository, in the name of an identity. `turnIsOver` is true if other copies have to run.
 */
export type Copying = {
  work: Work
  lease: Lease
  sync: Sync
  from: RepoRow
  to: RepoRow
  uniqueTags: boolean
  turnIsOver(): boolean
}
export class CopyEnded extends Error {
  override name = 'CopyEnded'
}

export type Copied = { tags: number; manifests: number }

/** Reason for copying a manifest. `tagged`: it has a tag. `untagged`: it is listed by another manifest, or refers to one. */
type CopiedAs = 'tagged' | 'untagged'

/** Result for one tag. `refused`: a rule of the target protects the tag. */
type TagOutcome = 'same' | 'copied' | 'refused' | 'unfinished'

const atOnce = 100

/** Copies the next changed tags, at least one. `done` is true if no tags are left. */
export async function copyTags(
  copying: Copying,
  after: SyncCursor['tags'],
): Promise<{ after: SyncCursor['tags']; done: boolean; copied: Copied; refused: string[] }> {
  const { work, from } = copying
  const order = { field: 'updateTime', column: 'update_time', desc: false }
  const page = { order, after, size: atOnce, skip: 0, binding: '' }
  const filter = { name: '', digest: '', updatedSince: '', asked: everyShape }
  const found = await tags.listTags(work.app.db, [{ below: from.uid }], page, filter)
  const some = found.slice(0, atOnce)
  const { last, copied, refused } = await copyEach(copying, some)
  return {
    after: last ? { value: last.updateTime, uid: last.uid } : after,
    done: last === some.at(-1) && found.length <= atOnce,
    copied,
    refused,
  }
}

/** Tries refused tags again until the turn is over. `refused` has the tags that are still refused. */
export async function copyRefused(
  copying: Copying,
  names: readonly string[],
): Promise<{ copied: Copied; refused: string[] }> {
  const some = await tags.tagsNamed(copying.work.app.db, copying.from.id, names)
  const { last, copied, refused } = await copyEach(copying, some)
  const untried = some.slice(last ? some.indexOf(last) + 1 : 0).map(({ name }) => name)
  return { copied, refused: [...refused, ...untried] }
}

async function copyEach(copying: Copying, some: readonly Tag[]) {
  const { work, to } = copying
  const names = some.map(({ name }) => name)
  const there = new Map((await tags.tagsNamed(work.app.db, to.id, names)).map((tag) => [tag.name, tag]))
  const copied: Copied = { tags: 0, manifests: 0 }
  const refused: string[] = []
  let last: Tag | undefined
  for (const tag of some) {
    // Lets requests run between two tags.
    await nextTurn()
    if (last && copying.turnIsOver()) break
    const outcome = await copyOne(copying, tag, there.get(tag.name), copied)
    if (outcome === 'unfinished') break
    if (outcome === 'refused') refused.push(tag.name)
    last = tag
  }
  return { last, copied, refused }
}

async function copyOne(copying: Copying, tag: Tag, there: Tag | undefined, copied: Copied): Promise<TagOutcome> {
  if (tag.digest === '' || isSame(tag, there)) return 'same'
  const { added, isWhole, isClean } = await copyManifest(copying, tag.digest, 'tagged')
  copied.manifests += added
  if (!isClean) return 'refused'
  if (!isWhole) return 'unfinished'
  try {
    if (!(await copyTag(copying, tag))) return 'same'
  } catch (error) {
    if (!(error instanceof AppError && refusals.includes(error.reason))) throw error
    // The manifest was copied, but the target does not allow its tag.
    if (added > 0) await lockCopied(copying, tag.digest)
    return 'refused'
  }
  copied.tags++
  return 'copied'
}

const refusals: readonly string[] = ['TAG_IMMUTABLE', 'TAG_MOVERS']

function isSame(one: Tag, other: Tag | undefined): boolean {
  const textOf = ({ digest, deprecated, bundles }: Tag) => JSON.stringify([digest, deprecated, bundles])
  return other !== undefined && textOf(one) === textOf(other)
}

/** Assigns the digest of the source to the tag in the target. Does nothing if the image was not copied. */
async function copyTag(copying: Copying, tag: Tag): Promise<boolean> {
  const { work, lease, from, to, uniqueTags } = copying
  const { name, digest } = tag
  const actor = `sync:${from.uid}`
  const names = [name, ...(uniqueTags ? uniqueNames(tag) : [])]
  const moved = await lease.tx(async (tx) => {
    await requireCurrent(tx, copying)
    if (!(await manifests.hasManifest(tx, to.id, digest))) return false
    const also = { deprecated: tag.deprecated, bundles: tag.bundles }
    for (const one of names) {
      const mover = { now: work.cause.now, actor, source: 'sync', inNameOf: work.caller.uid } as const
      const { tag: assigned, changed } = await assignTag(tx, work, { ...mover, repo: to, name: one, digest }, also)
      if (!changed) continue
      const event = { subject: assigned.uid, group: rootOf(to.uid), resource: toTagResource(assigned) }
      await emit(tx, work, 'registry.tag.created', event)
    }
    return true
  }, inRepo)
  return moved
}

/** Throws if the source of the copy has changed, or if the source or the target was deleted. */
async function requireCurrent(tx: Tx, { sync, from, to }: Copying): Promise<void> {
  const isThere = await lockRepo(tx, to, 'alone')
  if (isThere && (await isCurrent(tx, sync)) && (await repoExists(tx, from))) return
  throw new CopyEnded('the source of the copy has changed')
}

const maxTagLength = 128

/** Unique names with the time of the assignment, such as `1.2-20260102030405`. Names with a special shape have no unique name. */
function uniqueNames({ name, assignTime }: Tag): string[] {
  const time = assignTime.replace(/\D/g, '').slice(0, 14)
  const unique = `${name}-${time}`
  return shapeOf(name) === 0 && time.length === 14 && unique.length <= maxTagLength ? [unique] : []
}

/** Copies the next referrers, such as signatures, of manifests that the target has. `done` is true if no referrers are left. */
export async function copyReferrers(
  copying: Copying,
  after: SyncCursor['referrers'],
): Promise<{ after: SyncCursor['referrers']; done: boolean; copied: Copied }> {
  const { work, from, to } = copying
  const found = await manifests.referrersSince(work.app.db, from.id, after, atOnce)
  const subjects = found.map(({ subject }) => subject)
  const there = await manifests.storedManifests(work.app.db, to.id, subjects)
  const copied: Copied = { tags: 0, manifests: 0 }
  let last: (typeof found)[number] | undefined
  for (const one of found) {
    if (last && copying.turnIsOver()) break
    if (there.has(one.subject)) {
      const { added, isWhole } = await copyManifest(copying, one.digest)
      copied.manifests += added
      if (!isWhole) break
    }
    last = one
  }
  return {
    after: last ? { time: last.createTime, digest: last.digest } : after,
    done: last === found.at(-1) && found.length < atOnce,
    copied,
  }
}

type CopiedManifest = { added: number; isWhole: boolean; isClean: boolean }

/**
 * Copies a manifest and the content that it lists, each manifest in its own transaction. `added` is the number of new manifests.
 * A quarantined manifest is not copied, and neither is a manifest that lists one; `isClean` is then false. If the turn is over,
 * the next turn continues. Each turn copies at least one manifest.
 */
async function copyManifest(copying: Copying, digest: string, as: CopiedAs = 'untagged'): Promise<CopiedManifest> {
  const { work, lease, from, to } = copying
  lease.check()
  const isClean = !(await quarantinedAs(work, from, { type: 'manifest', digest }))
  const nothing = { added: 0, isWhole: true, isClean }
  if (!isClean || (await manifests.hasManifest(work.app.db, to.id, digest))) return nothing
  const manifest = await manifests.findManifest(work.app.db, from.id, digest)
  if (!manifest) return nothing
  const document = readManifest(manifest.content, manifest.mediaType)
  let added = 0
  for (const child of document.manifests) {
    const one = await copyManifest(copying, child)
    added += one.added
    if (!one.isClean) return { added, isWhole: true, isClean: false }
    if (!one.isWhole || (added > 0 && copying.turnIsOver())) return { added, isWhole: false, isClean }
  }
  const isNew = await insertCopy(copying, manifest, document, as)
  if (isNew) work.app.images.pushed.notify()
  return { added: added + Number(isNew), isWhole: true, isClean }
}

async function lockCopied({ work, lease, to }: Copying, digest: string): Promise<void> {
  await lease.tx((tx) => lockUntaggedDigest(tx, work, to, digest, work.cause.now), inRepo)
}

async function insertCopy(
  copying: Copying,
  manifest: Manifest,
  document: ManifestDocument,
  as: CopiedAs,
): Promise<boolean> {
  const { work, lease, from, to } = copying
  const { digest } = manifest
  const { now } = work.cause
  return lease.tx(async (tx) => {
    await requireCurrent(tx, copying)
    if (await manifests.hasManifest(tx, to.id, digest)) return false
    let added = 0
    // If the settings allow that the source lacks content, the copy lacks the same content.
    const blobs = await findRepoBlobs(tx, from.id, [...document.blobs, ...document.listedBlobs])
    // All transactions lock the blob rows of an organization in the same order, to avoid deadlocks.
    for (const blob of blobs.sort((a, b) => (a.digest < b.digest ? -1 : 1))) {
      added += await linkBlob(tx, to, blob.digest, now)
    }
    const isIndex = document.kind === 'index'
    const listed = isIndex ? await manifests.storedManifests(tx, to.id, document.manifests) : new Map()
    const levels = isIndex ? 1 + Math.max(0, ...[...listed.values()].map((one) => one.levels)) : 0
    added += await manifests.insertManifest(tx, to, manifest, document, levels, now)
    await requireBytes(tx, work, to, added)
    if (levels > 0) {
      const above = await manifests.indexesWith(tx, to.id, digest, maxIndexesWith)
      await manifests.raiseLevels(
        tx,
        to.id,
        above.map((index) => index.manifest),
        levels + 1,
      )
    }
    await manifests.insertLinks(tx, to.id, digest, 0, document.blobs)
    await manifests.insertLinks(tx, to.id, digest, 1, document.manifests)
    // The manifest is protected like a manifest that was pushed by its digest alone.
    if (as === 'untagged') await lockUntaggedDigest(tx, work, to, digest, now)
    await queueContents(tx, to.id, digest, document, now)
    return true
  }, inRepo)
}
