// Blobs of a repository: reading, look-ups before a push, mounting from other repositories, and deletion.
import type { Work } from '#app.ts'
import { type Content, ContentMissing, type Reading } from '#blobs/blobs.ts'
import { emitDeletion, emitPush, type Origin } from '#domains/outbox/emit-registry.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Blob } from './blobs.model.ts'
import * as store from './blobs.store.ts'
import { requireBytes } from './usage.service.ts'

/** Members of `Work` that reading a blob needs. */
type UpstreamCheck = Pick<Work, 'app' | 'log'>

export async function findBlob(
  work: Pick<Work, 'app'>,
  repo: Pick<RepoRef, 'id'>,
  digest: string,
): Promise<Blob | undefined> {
  return store.findRepoBlob(work.app.db, repo.id, digest)
}

/** Location of the content of a blob, for background jobs. */
export const locationIn = store.findRepoBlob

/** Finds a blob of the repository. Returns undefined if the repository does not have the blob, or if its content is lost. */
export async function findIntactBlob(work: Work, repo: Pick<RepoRef, 'id'>, digest: string): Promise<Blob | undefined> {
  const blob = await findBlob(work, repo, digest)
  return blob && (await hasContent(work, blob, true)) ? blob : undefined
}

/** True if the blob store has the content of the blob. Otherwise logs the loss; the next push of the blob repairs it. */
export async function hasContent(work: Work, blob: Blob, asFarAsKnown: boolean): Promise<boolean> {
  const has = await work.app.blobs.has(blob, asFarAsKnown)
  if (!has) reportLoss(work, blob)
  return has
}

function reportLoss({ app, log }: UpstreamCheck, { digest, location }: Blob): void {
  app.metrics.blobsMissing.inc()
  log.error('content of a blob is missing; push the blob again to restore it', { digest, location })
}

/**
 * Opens the content of a blob, as `Blobs.read` does. Returns undefined if the repository does not have the blob, or its content
 * is lost.
 */
export async function openBlob(
  work: UpstreamCheck,
  repo: Pick<RepoRef, 'id'>,
  blob: Blob,
  reading?: Reading,
): Promise<Content | undefined> {
  try {
    return await work.app.blobs.read(blob, reading)
  } catch (error) {
    if (!(error instanceof ContentMissing)) throw error
    // The blob was removed by garbage collection and pushed again between the two look-ups, or it was deleted.
    const now = await findBlob(work, repo, blob.digest)
    if (now?.location === blob.location) return reportLoss(work, now) ?? undefined
    return now && (await work.app.blobs.read(now, reading))
  }
}

/**
 * Bytes of a small blob. Returns undefined if the repository does not have the blob, or if the blob is larger than `most` bytes.
 */
export async function readBlob(
  work: UpstreamCheck,
  repo: Pick<RepoRef, 'id'>,
  blob: Blob,
  most: number,
): Promise<Buffer | undefined> {
  const content = blob.size > most ? undefined : await openBlob(work, repo, blob)
  if (!content) return undefined
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of content.stream() as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

/**
 * Finds a blob for a client that may push a manifest with it next, and protects the blob from garbage collection for the grace
 * period. Returns undefined if the content is lost, so that the client pushes the blob again.
 */
export async function protectBlob(work: Work, repo: RepoRef, digest: string): Promise<Blob | undefined> {
  const { db } = work.app
  const blob = await store.findRepoBlob(db, repo.id, digest)
  if (blob && !(await hasContent(work, blob, true))) return undefined
  if (!blob || !isStale(work, blob.touchTime)) return blob
  return (await db.tx((tx) => store.touchBlob(tx, repo.id, digest, work.cause.now), store.inRepo)) ? blob : undefined
}

/** True if the touch time is older than a quarter of the grace period. Newer touch times are not updated. */
function isStale(work: Work, touchTime: string): boolean {
  return Date.parse(work.cause.now) - Date.parse(touchTime) > work.app.config.blobGraceSeconds * 250
}

/**
 * Links a blob of another repository to the target. Returns false if the source repository does not have the blob, or if one of
 * the repositories was deleted. Throws RESOURCE_EXHAUSTED if a quota of the organization is reached.
 */
export async function mountBlob(
  work: Work,
  { target, from, digest }: { target: store.PushTarget; from: number; digest: string },
  origin: Origin,
): Promise<boolean> {
  return target.tx('shared', async (tx, there) => {
    const repo = (await store.findRepoBlob(tx, from, digest)) && (await there())
    if (!repo) return false
    const added = await store.linkBlob(tx, repo, digest, work.cause.now)
    await requireBytes(tx, work, repo, added, repo.limits)
    await emitPush(tx, work, repo, origin, { type: 'blob', digest })
    return true
  })
}

/** Most repositories that are examined to find one that the caller may mount from. */
const maxSources = 100

/** Uids of repositories that have the blob, at most 100. */
export async function reposWithBlob(work: Work, digest: string): Promise<string[]> {
  return store.reposWithBlob(work.app.db, digest, maxSources)
}

const maxShown = 10

/** Deletes a blob. If manifests need it, returns some of them in `usedBy` and deletes nothing. */
export async function deleteBlob(
  work: Work,
  repo: RepoRef,
  digest: string,
  origin: Origin,
): Promise<'unknown' | { usedBy: string[] }> {
  return work.app.db.tx(async (tx) => {
    if (!(await store.lockRepo(tx, repo, 'alone'))) return 'unknown'
    const usedBy = await store.manifestsWithBlob(tx, repo.id, digest, maxShown)
    if (usedBy.length > 0) return { usedBy }
    if (!(await store.unlinkBlob(tx, repo, digest))) return 'unknown'
    await emitDeletion(tx, work, repo, origin, { type: 'blob', digest })
    return { usedBy }
  }, store.inRepo)
}
