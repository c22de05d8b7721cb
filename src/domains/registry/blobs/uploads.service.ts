// Pushes of blobs: chunks, uploads that continue after a restart, and the storage of complete blobs.
import { createHash, randomBytes } from 'node:crypto'
import type { Work } from '#app.ts'
import { ContentMissing, type Located, type Part } from '#blobs/blobs.ts'
import type { Tx } from '#db/sql.ts'
import { limitsOf, type QuotaLimits, requireCapacity } from '#domains/iam/groups/limits.service.ts'
import { emitPush, type Origin } from '#domains/outbox/emit-registry.ts'
import { type Algorithm, algorithmOf } from '#lib/digest.ts'
import { AppError } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Upload, UploadPart } from './blobs.model.ts'
import { hasContent } from './blobs.service.ts'
import * as blobs from './blobs.store.ts'
import * as store from './uploads.store.ts'
import { type Meter, requireBytes, usageOf } from './usage.service.ts'

/**
 * Content with a known digest. `part` can be written to until it is finished. Afterwards `part` is only a name in the store.
 * `meter` counts the bytes until the content is stored.
 */
export type Content = { digest: string; size: number; part: Part | string; meter?: Meter | undefined }

/** Content received in a request. */
export type Received = Content & { part: Part }

/**
 * Starts an upload. Returns undefined if the repository was deleted meanwhile. Throws RESOURCE_EXHAUSTED if the organization has
 * too many open uploads.
 */
export async function startUpload(work: Work, target: blobs.PushTarget): Promise<Upload | undefined> {
  const uid = randomBytes(16).toString('hex')
  const organization = rootOf(target.uid)
  // Nearly every organization has a limit for open uploads. So uploads of one organization start one after the other.
  return target.tx('shared', async (tx, there) => {
    const repo = await there()
    if (!repo) return undefined
    await store.insertUpload(tx, uid, repo, work.cause.now)
    const { uploads } = await usageOf(tx, organization)
    requireCapacity(repo.limits ?? (await limitsOf(tx, work, organization)), 'uploads', uploads - 1)
    return { uid, size: 0, parts: 0 }
  })
}

/**
 * Throws RESOURCE_EXHAUSTED if the organization of the scope has too many open uploads. `startUpload` checks this limit again.
 */
export async function requireUpload(work: Work, scope: string): Promise<void> {
  const { uploads } = await usageOf(work.app.db, rootOf(scope))
  requireCapacity(await limitsOf(work.app.db, work, rootOf(scope)), 'uploads', uploads)
}

/**
 * Throws RESOURCE_EXHAUSTED if the upload has reached its limit of chunks. The last chunk does not count, because it closes the
 * upload.
 */
export async function requirePiece(work: Work, repo: RepoRef, upload: Upload): Promise<QuotaLimits> {
  const limits = await limitsOf(work.app.db, work, rootOf(repo.uid))
  requireCapacity(limits, 'upload_pieces', upload.parts)
  return limits
}

export async function findUpload(work: Work, repo: RepoRef, uid: string): Promise<Upload | undefined> {
  return store.findUpload(work.app.db, repo.id, uid)
}

/**
 * Adds a chunk whose bytes are on disk. Returns false if another request was faster, or if the upload has ended. Throws
 * RESOURCE_EXHAUSTED if a quota of the organization is reached.
 */
export async function addPart(
  work: Work,
  repo: RepoRef,
  upload: Upload,
  part: UploadPart,
  limits: QuotaLimits,
): Promise<boolean> {
  return work.app.db.tx(async (tx) => {
    if (!(await store.appendPart(tx, repo, upload.uid, part, readClock(work)))) return false
    await requireBytes(tx, work, repo, part.size, limits)
    return true
  }, blobs.inRepo)
}

/** Deletes the upload and its content. */
export async function cancelUpload(work: Work, upload: Upload): Promise<void> {
  const ended = await work.app.db.tx((tx) => store.deleteUpload(tx, upload.uid), blobs.inRepo)
  await removeAll(work, ended?.locations ?? [])
}

/** Push of a blob: its target, and the digest that the content must have. */
export type BlobPush = { target: blobs.PushTarget; digest: string; origin: Origin }

/** Result of a push. `other` is the actual digest of content that does not match the digest of the push. */
export type PushedBlob = 'stored' | 'no repo' | { other: string }

/**
 * Stores content that was received in one request, as `keepBlob` does. Discards the content if its digest differs from the digest
 * of the push.
 */
export async function pushBlob(
  work: Work,
  { target, digest, origin }: BlobPush,
  content: Content,
  upload?: Upload,
): Promise<PushedBlob> {
  if (content.digest === digest) {
    return (await keepBlob(work, target, content, origin, upload)) ? 'stored' : 'no repo'
  }
  if (typeof content.part !== 'string') await content.part.discard()
  if (upload) await cancelUpload(work, upload)
  return { other: content.digest }
}

/**
 * Stores the joined chunks of an upload, followed by `last`. Requests on this server that close the same upload run one after the
 * other, since each reads the whole upload and may copy it. After one request succeeds, the others find no upload.
 */
export async function closeUpload(work: Work, push: BlobPush, upload: Upload, last?: Received): Promise<PushedBlob> {
  const { closing } = work.app
  const close = async (): Promise<PushedBlob> => {
    const how = { algorithm: algorithmOf(push.digest), organization: rootOf(push.target.uid) }
    const content = await assemble(work, upload, last, how).catch(async (error) => {
      await last?.part.discard()
      throw error
    })
    return pushBlob(work, push, content, upload)
  }
  const turn = (closing.get(upload.uid) ?? Promise.resolve()).then(close)
  const over = turn.then(
    () => {},
    () => {},
  )
  closing.set(upload.uid, over)
  try {
    return await turn
  } finally {
    if (closing.get(upload.uid) === over) closing.delete(upload.uid)
  }
}

/**
 * Joins the chunks of an upload, followed by `last` if the request had a body. A single chunk was hashed on arrival and is not
 * read again. Several chunks are copied into one file and verified. Rejects with ContentMissing if another request has ended the
 * upload.
 */
async function assemble(
  work: Work,
  upload: Upload,
  last: Received | undefined,
  { algorithm, organization }: { algorithm: Algorithm; organization: string },
): Promise<Content> {
  const parts = await store.partsOfOpen(work.app.db, upload.uid)
  if (!parts) throw new ContentMissing(upload.uid)
  const [first] = parts
  if (last && !first) return last
  if (first && parts.length === 1 && !last) {
    const known = first.digest !== '' && algorithmOf(first.digest) === algorithm
    const digest = known ? first.digest : await joinChunks(work, [first], algorithm)
    return { digest, size: first.size, part: first.location }
  }
  // The size comes from the stored chunks. `upload` may be older, since chunks may have arrived after it was read.
  const size = parts.reduce((sum, one) => sum + one.size, last?.size ?? 0)
  const whole = await work.app.blobs.begin(size, organization)
  try {
    await last?.part.finish()
    const pieces = [...parts, ...(last ? [{ location: last.part.name, size: last.size }] : [])]
    const digest = await joinChunks(work, pieces, algorithm, whole)
    return { digest, size, part: whole, meter: last?.meter }
  } catch (error) {
    await whole.discard()
    throw error
  } finally {
    await last?.part.discard()
  }
}

async function joinChunks(work: Work, pieces: readonly Located[], algorithm: Algorithm, into?: Part): Promise<string> {
  const hash = createHash(algorithm)
  for (const piece of pieces) {
    const content = await work.app.blobs.read(piece)
    for await (const chunk of content.stream() as AsyncIterable<Buffer>) {
      hash.update(chunk)
      await into?.write([chunk])
    }
  }
  return `${algorithm}:${hash.digest('hex')}`
}

/**
 * Makes the content a blob of the repository and ends its upload. If the registry has the blob already, the stored copy is kept
 * unless its content is lost. Returns false if the repository was deleted meanwhile. Throws RESOURCE_EXHAUSTED if a quota of the
 * organization is reached, and ContentMissing if another request has ended the upload. After any other error the content stays in
 * the store, since the commit may have succeeded. If it is unused, garbage collection removes it.
 */
export async function keepBlob(
  work: Work,
  target: blobs.PushTarget,
  { digest, size, part, meter }: Content,
  origin: Origin,
  upload?: Upload,
): Promise<boolean> {
  const { db, blobs: files } = work.app
  const now = readClock(work)
  const name = typeof part === 'string' ? part : part.name
  let ended: string[] = []
  const link: Link = async (tx, repo) => {
    const added = await blobs.linkBlob(tx, repo, digest, now)
    const had = upload && (await store.deleteUpload(tx, upload.uid))
    ended = had?.locations ?? []
    // Another request has ended the upload. That request now has the chunks, and may have removed this one.
    if (typeof part === 'string' && !ended.includes(part)) throw new ContentMissing(part)
    // Earlier chunks were counted on arrival, so only the remaining bytes are checked here.
    await requireBytes(tx, work, repo, added - (had?.size ?? 0), meter?.limits ?? repo.limits)
    await emitPush(tx, work, repo, origin, { type: 'blob', digest })
  }
  let location = ''
  try {
    const known = await blobs.findBlob(db, digest)
    const lost = known && !(await hasContent(work, known, false)) ? known : undefined
    const linked = known && !lost && (await target.tx('shared', (tx, there) => linkStored(tx, there, digest, link)))
    if (linked) {
      meter?.end()
      await removeAll(work, ended)
      return linked === 'linked'
    }
    if (typeof part !== 'string') await part.finish(/^sha256:(.*)$/.exec(digest)?.[1])
    location = await files.keep(name, digest)
    const stored = await target.tx('shared', async (tx, there) => {
      const repo = await there()
      if (!repo) return 'gone'
      const mended = lost && (await blobs.moveBlob(tx, lost, location))
      const inserted = mended || (await blobs.insertBlob(tx, { digest, size, location }, now))
      await link(tx, repo)
      return inserted ? 'stored' : 'had'
    })
    meter?.end()
    // The uploads of a deleted repository are deleted too. Garbage collection removes the content of these uploads.
    const isLeftOver = stored === 'had' || (stored === 'gone' && location !== part)
    await removeAll(work, [...ended.filter((one) => one !== location), ...(isLeftOver ? [location] : [])])
    return stored !== 'gone'
  } catch (error) {
    // After these errors nothing was committed. A missing chunk belongs to the request that ended the upload.
    const isUndone = isQuotaError(error) || (error instanceof ContentMissing && location !== name)
    // If the location is a chunk, it is removed with its upload instead, after the rows that refer to it.
    if (isUndone && location !== '' && location !== part) await removeAll(work, [location])
    if (upload) await endRefused(work, upload, error)
    throw error
  } finally {
    if (typeof part !== 'string' && part.name !== location) await part.discard()
  }
}

/** Cancels an upload that exceeds a quota. Otherwise its content would use storage until garbage collection removes it. */
export async function endRefused(work: Work, upload: Upload, error: unknown): Promise<void> {
  if (isQuotaError(error)) await cancelUpload(work, upload)
}

/** True if a limit of the organization was reached, so that nothing was committed. */
export function isQuotaError(error: unknown): boolean {
  return error instanceof AppError && error.reason === 'RESOURCE_LIMIT_EXCEEDED'
}

type Link = (tx: Tx, repo: RepoRef & { limits?: QuotaLimits }) => Promise<void>

/** Links content that is already stored. Returns undefined if garbage collection has removed the content meanwhile. */
async function linkStored(
  tx: Tx,
  there: blobs.LockedRepo,
  digest: string,
  link: Link,
): Promise<'linked' | 'gone' | undefined> {
  if (!(await blobs.findBlob(tx, digest))) return undefined
  const repo = await there()
  if (!repo) return 'gone'
  await link(tx, repo)
  return 'linked'
}

/**
 * Current time. The grace period of content begins at the end of its upload, since an upload may take longer than the grace
 * period.
 */
function readClock({ app }: Work): string {
  return app.clock().toISOString()
}

/** Removes content after the commit. A failure undoes nothing: garbage collection removes the remaining files. */
async function removeAll({ app, log }: Work, locations: readonly string[]): Promise<void> {
  const removed = await Promise.allSettled(locations.map(async (location) => app.blobs.remove(location)))
  for (const one of removed) {
    if (one.status === 'rejected')
      log.warn('a chunk of an upload could not be deleted; garbage collection deletes it later', { error: one.reason })
  }
}
