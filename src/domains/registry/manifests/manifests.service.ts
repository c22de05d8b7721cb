// Manifests: pushing by tag and digest, pulling, deleting, and who refers to whom.
import type { Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emitPush, type Origin } from '#domains/events/outbox/emit-registry.ts'
import { repoExists } from '../blobs/blobs.store.ts'
import { queueContents } from '../images/image-contents.service.ts'
import type { RepoRef } from '../repos/repos.model.ts'
import { assignTag, removeTagNamed, removeTags } from '../tags/tag-moves.service.ts'
import { tagForPull } from '../tags/tags.service.ts'
import type { Manifest, ManifestDocument, Referrer } from './manifests.model.ts'
import * as store from './manifests.store.ts'

export type ManifestPush = {
  repo: RepoRef
  manifest: Manifest
  document: ManifestDocument
  tags: readonly string[]
  /** Throws when the caller may not create the tag, or move it. */
  checkTag: (exists: boolean) => void
  origin: Origin
}

export type PushResult = 'stored' | 'no repo' | { missing: { blobs: string[]; manifests: string[] } }

/** Stores the manifest and points the tags to it, all or nothing. What it lists must be in the repo, unless settings say otherwise. */
export async function pushManifest(work: Work, push: ManifestPush): Promise<PushResult> {
  const { repo, manifest, document, tags } = push
  const result = await work.app.db.tx(async (tx): Promise<PushResult> => {
    if (!(await repoExists(tx, repo))) return 'no repo'
    if (!(await store.hasManifest(tx, repo.id, manifest.digest))) {
      const missing = await missingOf(tx, work, push)
      if (missing.blobs.length + missing.manifests.length > 0) return { missing }
      await store.insertManifest(tx, repo.id, manifest, document, work.cause.now)
      await store.insertLinks(tx, repo.id, manifest.digest, 0, document.blobs)
      await store.insertLinks(tx, repo.id, manifest.digest, 1, document.manifests)
      await queueContents(tx, repo.id, manifest.digest, document, work.cause.now)
    }
    if (tags.length === 0) await emitOf(tx, work, push)
    for (const name of tags) {
      const mover = { now: work.cause.now, actor: work.caller.uid, source: 'oci' } as const
      const { previousDigest, changed } = await assignTag(tx, { ...mover, repo, name, digest: manifest.digest })
      // A repetition changes nothing, so it takes no right of its own.
      if (changed) push.checkTag(previousDigest !== '')
      await emitOf(tx, work, push, { tag: name, previousDigest })
    }
    return 'stored'
  })
  work.app.images.pushed.notify()
  return result
}

async function missingOf(tx: Tx, work: Work, { repo, document }: ManifestPush) {
  const { sparse } = work.app.config
  const mayLack = sparse === 'all' || (sparse === 'indexes' && document.kind === 'index')
  if (mayLack) return { blobs: [], manifests: [] }
  return {
    blobs: await store.missingBlobs(tx, repo.id, document.blobs),
    manifests: await store.missingManifests(tx, repo.id, document.manifests),
  }
}

async function emitOf(
  tx: Tx,
  work: Work,
  { repo, manifest: { digest, mediaType }, origin }: ManifestPush,
  moved: { tag?: string; previousDigest?: string } = {},
): Promise<void> {
  const { tag, previousDigest = '' } = moved
  const was = previousDigest === digest ? {} : { previousDigest }
  await emitPush(tx, work, repo, origin, { type: 'manifest', digest, mediaType, ...(tag ? { tag, ...was } : {}) })
}

export type Pulled = { manifest: Manifest; since: string | undefined }

/** What the tag points to, and since when; `undefined` when there is no such tag. */
export async function pullTag(work: Work, repo: RepoRef, tag: string): Promise<Pulled | undefined> {
  const { db, manifests } = work.app
  const found = await tagForPull(db, repo, tag)
  if (!found) return undefined
  const cached = manifests.get(repo.id, found.digest, true)
  const manifest = cached ?? (await load(work, repo, found.digest))
  return manifest && { manifest, since: found.since }
}

export async function pullDigest(work: Work, repo: RepoRef, digest: string): Promise<Pulled | undefined> {
  const manifest = work.app.manifests.get(repo.id, digest, false) ?? (await load(work, repo, digest))
  return manifest && { manifest, since: undefined }
}

async function load({ app }: Work, repo: RepoRef, digest: string): Promise<Manifest | undefined> {
  const epoch = app.manifests.epoch()
  const manifest = await store.findManifest(app.db, repo.id, digest)
  if (manifest && epoch === app.manifests.epoch()) app.manifests.set(repo.id, manifest)
  return manifest
}

/** Deletes the manifest and every tag that points to it. `false` when the repo does not have it. */
export async function deleteManifest(work: Work, repo: RepoRef, digest: string): Promise<boolean> {
  const found = await work.app.db.tx(async (tx) => {
    if (!(await store.deleteManifest(tx, repo.id, digest))) return false
    await removeTags(tx, { repo, digest, now: work.cause.now, actor: work.caller.uid, source: 'oci' })
    return true
  })
  if (found) work.log.info('manifest deleted', { repo: repo.uid, digest })
  return found
}

/** The manifest stays pullable by its digest. `false` when there is no such tag. */
export async function deleteTagNamed(work: Work, repo: RepoRef, name: string): Promise<boolean> {
  const removal = { repo, name, now: work.cause.now, actor: work.caller.uid, source: 'oci' } as const
  const tag = await work.app.db.tx((tx) => removeTagNamed(tx, removal))
  if (tag) work.log.info('tag deleted', { repo: repo.uid, tag: name })
  return tag !== undefined
}

/** Answers must stay below what clients read of a manifest. */
const maxPageBytes = 2 * 1024 * 1024
const maxPage = 500

export type ReferrerPage = { referrers: Referrer[]; more: boolean }

/** Manifests whose subject is the given one, in the order of their digests. */
export async function listReferrers(work: Work, repo: RepoRef, filter: store.ReferrerFilter): Promise<ReferrerPage> {
  const { db } = work.app
  const rows = await store.listReferrers(db, repo.id, filter, maxPage + 1)
  const page: string[] = []
  let bytes = 0
  for (const { digest, length } of rows) {
    bytes += length
    if (page.length > 0 && (page.length === maxPage || bytes > maxPageBytes)) break
    page.push(digest)
  }
  return { referrers: await store.readReferrers(db, repo.id, page), more: page.length < rows.length }
}

/** What a repo has of manifests, before it is deleted. */
export async function forgetManifests(tx: Tx, repo: number): Promise<void> {
  await store.deleteManifestsOf(tx, repo)
}
