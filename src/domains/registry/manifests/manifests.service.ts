// Manifests: pushing by tag and digest, pulling, deleting, and who refers to whom.
import type { Call, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emitDeletion, emitPush, type Origin } from '#domains/outbox/emit-registry.ts'
import { heldOf, keptOf, Look } from '#domains/policy/retention/kept.service.ts'
import { promiseUntagged, refusal, requireMovers } from '#domains/policy/retention/promises.service.ts'
import type { Kept } from '#domains/policy/retention/retention.model.ts'
import {
  attestedByTag,
  forgetReportsOf,
  mayBeReport,
  queueAttestations,
  queuePushed,
} from '#domains/scanning/outside/report-queue.service.ts'
import { forgetScansOf, queueScans } from '#domains/scanning/scanners/scan-queue.service.ts'
import type { Precondition } from '#lib/preconditions.ts'
import { findRepoBlobs, inRepo, lockRepo, type PushTarget } from '../blobs/blobs.store.ts'
import { requireBytes } from '../blobs/usage.service.ts'
import { queueAttested, queueContents } from '../images/image-contents.service.ts'
import { isScannable } from '../images/scannable.service.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import { actorOf, assignTag, removeTagNamed, removeTagsOf, requireTagAt } from '../tags/tag-moves.service.ts'
import {
  type Manifest,
  type ManifestDocument,
  maxIndexesWith,
  maxIndexLevels,
  type Referrer,
} from './manifests.model.ts'
import * as store from './manifests.store.ts'

export type ManifestPush = {
  target: PushTarget
  manifest: Manifest
  document: ManifestDocument
  tags: readonly string[]
  /** Throws when the caller may not create the tag, or move it. */
  checkTag: (exists: boolean) => void
  /** Of the tags: what each of them has to point to now. */
  precondition: Precondition | undefined
  origin: Origin
  /** What it lists may come later, and is read when it has. */
  sparse?: true
}

/** `nested`: indexes would list each other too deep. `wrong`: the manifest gives a content a size that it does not have. */
export type PushProblem =
  | { missing: { blobs: string[]; manifests: string[] } }
  | { nested: string }
  | { wrong: { digest: string; size: number; stored: number } }
export type PushResult = 'stored' | 'no repo' | PushProblem

/**
 * Stores the manifest and points the tags to it, all or nothing. What it lists must be in the repo, unless settings say
 * otherwise. Throws RESOURCE_EXHAUSTED when the organisation has no room for it.
 */
export async function pushManifest(work: Work, push: ManifestPush): Promise<PushResult> {
  const { manifest, document, tags } = push
  // What rules say of the tags is remembered when it was read outside of a transaction.
  await work.app.laws.of(work.app.db, push.target.uid)
  let isNew = false
  const result = await push.target.tx('alone', async (tx, there): Promise<PushResult> => {
    const repo = await there()
    if (!repo) return 'no repo'
    isNew = !(await store.hasManifest(tx, repo.id, manifest.digest))
    if (isNew) {
      const listed = await lookUp(tx, repo, push)
      const problem =
        sizeProblem(push, listed) ??
        nestingProblem(listed) ??
        (push.sparse ? undefined : missingProblem(work, push, listed))
      if (problem) return problem
      const added = await store.insertManifest(tx, repo, manifest, document, listed.levels, work.cause.now)
      await requireBytes(tx, work, repo, added)
      if (listed.levels > 0) await store.raiseLevels(tx, repo.id, listed.above, listed.levels + 1)
      await store.insertLinks(tx, repo.id, manifest.digest, 0, document.blobs)
      await store.insertLinks(tx, repo.id, manifest.digest, 1, document.manifests)
      if (!push.sparse) await queueContents(tx, repo.id, manifest.digest, document, work.cause.now)
      if (!push.sparse && isScannable(document)) {
        await queueScans(tx, work, repo, { digest: manifest.digest, mediaType: document.mediaType })
      }
    }
    if (mayBeReport(document)) {
      await queuePushed(tx, work, repo, { ...document, digest: manifest.digest, layers: document.listed.layers })
    }
    if (tags.length === 0) {
      await promiseUntagged(tx, work, repo, manifest.digest, work.cause.now)
      await emitOf(tx, work, repo, push)
    }
    for (const name of tags) {
      const mover = { now: work.cause.now, actor: actorOf(work), source: 'oci' } as const
      const { previousDigest, changed } = await assignTag(tx, work, { ...mover, repo, name, digest: manifest.digest })
      // A repetition changes nothing, so it takes no right of its own.
      if (changed) push.checkTag(previousDigest !== '')
      requireTagAt(push.precondition, name, previousDigest)
      const subject = attestedByTag(name)
      if (subject !== undefined) {
        const { layers } = document.listed
        await queueAttestations(tx, work, repo, { digest: manifest.digest, subject, layers })
        if (changed) await queueAttested(tx, repo.id, subject, work.cause.now)
      }
      await emitOf(tx, work, repo, push, { tag: name, previousDigest })
    }
    return 'stored'
  })
  if (isNew || tags.some(attestedByTag)) work.app.images.pushed.notify()
  if (isNew && isScannable(document)) work.app.scanning.scans.notify()
  if (mayBeReport(document) || tags.some(attestedByTag)) work.app.scanning.reported.notify()
  return result
}

/** Why a repo that has nothing yet could not store the manifest. */
export function problemInNewRepo(work: Work, push: Pick<ManifestPush, 'document'>): PushProblem | undefined {
  return missingProblem(work, push, { sizes: new Map() })
}

/** What the repo has of what a manifest lists, and what lists the manifest. */
type Surroundings = {
  sizes: Map<string, number>
  levels: number
  /** Indexes that were pushed before what they list. */
  above: string[]
  /** Others list one of these. */
  isAboveListed: boolean
}

async function lookUp(tx: Tx, repo: RepoRef, { manifest, document }: ManifestPush): Promise<Surroundings> {
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

/** Readers take memory by what a manifest says, and pay by it too. */
function sizeProblem({ document }: ManifestPush, { sizes }: Surroundings): PushProblem | undefined {
  for (const [digest, size] of document.sizes) {
    const stored = sizes.get(digest)
    if (stored !== undefined && stored !== size) return { wrong: { digest, size, stored } }
  }
  return undefined
}

function nestingProblem({ levels, above, isAboveListed }: Surroundings): PushProblem | undefined {
  const most = `indexes nest at most ${maxIndexLevels} levels deep`
  if (levels > maxIndexLevels) return { nested: `${most}, and the index lists one that lists indexes` }
  if (isAboveListed) return { nested: `${most}, and the index is listed by one that an index lists` }
  if (above.length === 0) return undefined
  if (levels === maxIndexLevels) return { nested: `${most}, and the index lists an index and is listed by one` }
  if (above.length <= maxIndexesWith) return undefined
  return { nested: `the index is listed by more than ${maxIndexesWith} indexes` }
}

function missingProblem(
  work: Work,
  { document }: Pick<ManifestPush, 'document'>,
  { sizes }: Pick<Surroundings, 'sizes'>,
): PushProblem | undefined {
  const { sparse } = work.app.config
  if (sparse === 'all' || (sparse === 'indexes' && document.kind === 'index')) return undefined
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

export type Pulled = { manifest: Manifest; since: string | undefined }

/** What the tag points to, and since when; `undefined` when there is no such tag. */
export async function pullTag(work: Work, repo: RepoRef, tag: string): Promise<Pulled | undefined> {
  const found = await work.app.tags.of(repo, tag)
  return found && pullFound(work, repo, found)
}

/** A manifest that the repo is known to have; `undefined` when it has gone meanwhile. */
export async function pullFound(
  work: Work,
  repo: RepoRef,
  { digest, since }: { digest: string; since: string },
): Promise<Pulled | undefined> {
  const cached = work.app.manifests.get(repo.id, digest, true)
  const manifest = cached ?? (await load(work, repo, digest))
  return manifest && { manifest, since }
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

/** What to do in the transaction that deletes what is kept, in place of refusing it; a hold refuses all the same. */
export type Breaking = (tx: Tx, kept: Kept | undefined) => Promise<void>

/**
 * Deletes the manifest and every tag that points to it. `false` when the repo does not have it. Throws FAILED_PRECONDITION
 * when it is kept.
 */
export async function deleteManifest(
  work: Work,
  repo: RepoRef,
  digest: string,
  origin: Origin,
  breaking?: Breaking,
): Promise<boolean> {
  const found = await work.app.db.tx(async (tx) => {
    if (!(await lockRepo(tx, repo, 'alone')) || !(await store.hasManifest(tx, repo.id, digest))) return false
    const look = await Look.at(tx, work, repo, work.cause.now)
    const held = await heldOf(look, digest)
    if (held) throw refusal(held, digest)
    const kept = await keptOf(look, digest)
    if (kept && !breaking) throw refusal(kept, digest)
    if (!breaking) await requireMovers(tx, work, repo, actorOf(work), digest)
    await breaking?.(tx, kept)
    await removeTagsOf(tx, work, digest, { repo, now: work.cause.now, actor: actorOf(work), source: 'oci' })
    return removeManifest(tx, work, repo, digest, origin)
  }, inRepo)
  if (found) work.log.info('manifest deleted', { repo: repo.uid, digest })
  return found
}

/** Deletes a manifest that no tag points to and nothing keeps. `false` when the repo does not have it. */
export async function removeManifest(
  tx: Tx,
  by: Pick<Work, 'app' | 'cause'>,
  repo: RepoRef,
  digest: string,
  origin: Origin,
): Promise<boolean> {
  if (!(await store.deleteManifest(tx, repo, digest))) return false
  await forgetReportsOf(tx, repo, digest)
  await forgetScansOf(tx, repo.id, digest)
  await emitDeletion(tx, by, repo, origin, { type: 'manifest', digest })
  return true
}

/** The manifest stays pullable by its digest. `false` when there is no such tag; throws as `requireTagAt` does. */
export async function deleteTagNamed(
  work: Work,
  repo: RepoRef,
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
export async function forgetManifests(tx: Tx, repo: Pick<RepoRef, 'id' | 'uid'>): Promise<void> {
  await store.deleteManifestsOf(tx, repo)
}

const reposAtOnce = 100

/** How many there are in a repo, or in all repos below a group; some repos at a time, while somebody waits for it. */
export async function countManifests({ app, signal }: Call, place: string): Promise<number> {
  let total = 0
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const repos = await store.reposAt(app.db, place, after, reposAtOnce)
    if (repos.length > 0)
      total += await store.countManifests(
        app.db,
        repos.map(({ id }) => id),
      )
    if (repos.length < reposAtOnce) return total
    after = repos.at(-1)!.uid
  }
}
