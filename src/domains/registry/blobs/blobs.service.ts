// Blobs that a repo has: reading, relying on them while pushing, mounting from other repos, deleting.
import type { Work } from '#app.ts'
import { type Content, ContentMissing, type Reading } from '#blobs/blobs.ts'
import { emitDeletion, emitPush, type Origin } from '#domains/outbox/emit-registry.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Blob } from './blobs.model.ts'
import * as store from './blobs.store.ts'
import { requireBytes } from './usage.service.ts'

/** What reading takes, whoever it is for. */
type Looking = Pick<Work, 'app' | 'log'>

export async function findBlob(
  work: Pick<Work, 'app'>,
  repo: Pick<RepoRef, 'id'>,
  digest: string,
): Promise<Blob | undefined> {
  return store.findRepoBlob(work.app.db, repo.id, digest)
}

/** Where the content of a blob is, for what is read in the background. */
export const locationIn = store.findRepoBlob

/** The same, but for a blob whose content is lost. */
export async function findWhole(work: Work, repo: Pick<RepoRef, 'id'>, digest: string): Promise<Blob | undefined> {
  const blob = await findBlob(work, repo, digest)
  return blob && (await hasContent(work, blob, true)) ? blob : undefined
}

/** What the database knows of may be lost in the store, which somebody should hear of. Whoever pushes it again mends it. */
export async function hasContent(work: Work, blob: Blob, asFarAsKnown: boolean): Promise<boolean> {
  const has = await work.app.blobs.has(blob, asFarAsKnown)
  if (!has) noteLoss(work, blob)
  return has
}

function noteLoss({ app, log }: Looking, { digest, location }: Blob): void {
  app.metrics.blobsMissing.inc()
  log.error('content of a blob is lost; pushing it again restores it', { digest, location })
}

/** The content of a blob, as `Blobs.read` reads it; `undefined` when the repo does not have it (any more), or it is lost. */
export async function openBlob(
  work: Looking,
  repo: Pick<RepoRef, 'id'>,
  blob: Blob,
  reading?: Reading,
): Promise<Content | undefined> {
  try {
    return await work.app.blobs.read(blob, reading)
  } catch (error) {
    if (!(error instanceof ContentMissing)) throw error
    // Collected and pushed again between the two look-ups, or gone.
    const now = await findBlob(work, repo, blob.digest)
    if (now?.location === blob.location) return noteLoss(work, now) ?? undefined
    return now && (await work.app.blobs.read(now, reading))
  }
}

/** The bytes of a small blob; `undefined` when the repo does not have it (any more), or when there are more than `most`. */
export async function readBlob(
  work: Looking,
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
 * Finds a blob for a client that may go on to push a manifest with it: it will not be collected for the time of grace. One
 * whose content is lost is not found, so that the client pushes it.
 */
export async function relyOnBlob(work: Work, repo: RepoRef, digest: string): Promise<Blob | undefined> {
  const { db } = work.app
  const blob = await store.findRepoBlob(db, repo.id, digest)
  if (blob && !(await hasContent(work, blob, true))) return undefined
  if (!blob || !isStale(work, blob.touchTime)) return blob
  return (await db.tx((tx) => store.touchBlob(tx, repo.id, digest, work.cause.now), store.inRepo)) ? blob : undefined
}

/** A touch is written again only when a good part of the grace is over. */
function isStale(work: Work, touchTime: string): boolean {
  return Date.parse(work.cause.now) - Date.parse(touchTime) > work.app.config.blobGraceSeconds * 250
}

/**
 * Gives the repo a blob that another has. `false` when that does not have it, or either is gone. Throws RESOURCE_EXHAUSTED
 * when the organisation has no room for it.
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

/** How many repos are looked at for one that the caller may mount from. */
const maxSources = 100

/** Uids of repos that have the blob; not all when there are very many. */
export async function reposWithBlob(work: Work, digest: string): Promise<string[]> {
  return store.reposWithBlob(work.app.db, digest, maxSources)
}

const maxShown = 10

/** `usedBy` names manifests that need the blob; then nothing is deleted. */
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
