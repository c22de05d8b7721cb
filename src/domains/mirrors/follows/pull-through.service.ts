// Pull-through cache: checks tags of a mirror at its upstream, and fetches missing content during a pull.
import { createHash } from 'node:crypto'
import type { App } from '#app.ts'
import type { Origin } from '#domains/outbox/emit-registry.ts'
import { findRepoBlobs, inRepo, manifestsWithBlob } from '#domains/registry/blobs/blobs.store.ts'
import { keepBlob } from '#domains/registry/blobs/uploads.service.ts'
import { meterOf } from '#domains/registry/blobs/usage.service.ts'
import { queueContents } from '#domains/registry/images/image-contents.service.ts'
import {
  ManifestLimit,
  ManifestProblem,
  readManifest,
  readNewManifest,
} from '#domains/registry/manifests/manifest-document.ts'
import type { ManifestDocument } from '#domains/registry/manifests/manifests.model.ts'
import { findManifest, hasManifest, indexesWith, subjectOf } from '#domains/registry/manifests/manifests.store.ts'
import { pushManifest } from '#domains/registry/pushes/pushes.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { followModes } from '#domains/registry/repo-ref.model.ts'
import { atRepo } from '#domains/registry/repos/repos.service.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import { findTagNamed } from '#domains/registry/tags/tags.store.ts'
import { algorithmOf } from '#lib/digest.ts'
import type { Upstream as Asked, TakeBlob } from '#lib/registries/registry-client.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { noteProblem, queueFetch } from './fetches.store.ts'
import { followerWork, singleFlight } from './follower.service.ts'
import { bringsContent, type FollowStatus, freshMs, maxFollowedTags } from './follows.model.ts'
import * as store from './follows.store.ts'
import { namedTags, tagMatcher } from './tag-patterns.ts'
import { FollowEnded, recordMove } from './upstream-moves.service.ts'
import { withPassword } from './upstreams.service.ts'
import { findUpstream } from './upstreams.store.ts'

/**
 * One pull. `origin` is the origin in its events. `beforehand` is set for a prefetch: this signal cancels it, and a prefetch uses
 * only requests that the rate limit has to spare.
 */
export type Pulling = { app: App; repo: RepoRef; origin: Origin; beforehand?: AbortSignal }

/** Client that receives a blob while the blob is stored. */
export type Tee = {
  /** Called before the first bytes of the blob. Not called if the size is unknown. */
  begin(size: number): void
  /**
   * Sends a chunk to the client. Returns false if the client accepts no more bytes. The blob is then stored without the client.
   */
  write(chunk: Uint8Array): Promise<boolean>
}

/** Longest time that a pull waits for the upstream to name the digest of a tag. */
export const lookMs = 3000
/** Longest time that a fetch of content waits for the rate limit of its host. An image may have many layers. */
const patienceMs = 60_000
/** Most images with the same layer that are checked for completeness after the layer was stored. */
const maxQueued = 20

/**
 * Checks the digest of a tag at the upstream and fetches its manifest. Returns a warning if the check failed, but the stored
 * digest may be served. Throws UpstreamError if the stored digest may not be served.
 */
export async function refreshTag(pulling: Pulling, tag: string): Promise<string | undefined> {
  const { app, repo } = pulling
  const follow = await followOnDemand(pulling)
  if (!follow || !((await isMirrored(follow, tag)) || (await isAboutSomething(pulling, tag)))) return undefined
  const here = await findTagNamed(app.db, repo.id, tag)
  const looked = await store.findFollowedTag(app.db, repo.uid, tag)
  const whole = here !== undefined && (await hasManifest(app.db, repo.id, here.digest))
  const ageMs = looked?.checkedTime ? app.clock().getTime() - Date.parse(looked.checkedTime) : Number.POSITIVE_INFINITY
  if (whole && ageMs < freshMs) return undefined
  // The key contains the configuration of the mirror. A changed configuration makes earlier answers invalid.
  const key = `${repo.uid} ${follow.updateTime} ${follow.checkTime} ${tag}`
  const silent = app.follows.silent.get(key, app.clock().getTime())
  if (silent !== undefined && (whole || here === undefined)) return silent || undefined
  const stayQuiet = (because: string): string | undefined => {
    app.follows.silent.set(key, because, app.clock().getTime() + freshMs)
    return because || undefined
  }
  try {
    const seen = await shareFetch(pulling, `tag ${key}`, () => checkTag(pulling, follow, tag))
    return seen === 'gone'
      ? stayQuiet(here ? 'the upstream does not have this tag any more, so the copy here is served' : '')
      : undefined
  } catch (error) {
    if (error instanceof FollowEnded) return undefined
    if (error instanceof UpstreamError && error.reason === 'guarded') return stayQuiet(whole ? error.message : '')
    if (!(error instanceof UpstreamError) || !whole || ageMs >= follow.staleForMs) throw error
    return `the tag was last checked at the upstream at ${looked!.checkedTime}: ${error.message}`
  }
}

/**
 * Fetches a manifest that is not stored yet. Returns false if the upstream does not have it. Throws UpstreamError if the fetch
 * fails.
 */
export async function pullManifestThrough(pulling: Pulling, digest: string): Promise<boolean> {
  const { app, repo } = pulling
  if (await hasManifest(app.db, repo.id, digest)) return true
  const follow = await followOnDemand(pulling)
  if (!follow) return false
  return shareFetch(pulling, `manifest ${repo.uid} ${digest}`, () => fetchManifest(pulling, follow, digest))
}

/**
 * Fetches a blob into the repository. The first of concurrent callers also gets the blob through `tee`. Returns `sent` if all of
 * it went to `tee`, `stored` if it is only stored, and `unknown` if the upstream does not have it. Throws UpstreamError if the
 * fetch fails; nothing is stored then.
 */
export async function pullBlobThrough(
  pulling: Pulling,
  digest: string,
  tee?: Tee,
): Promise<'sent' | 'stored' | 'unknown'> {
  const { app, repo } = pulling
  const follow = await followOnDemand(pulling)
  if (!follow) return 'unknown'
  let sent = false
  const isThere = await shareFetch(pulling, `blob ${repo.uid} ${digest}`, async () => {
    const asked = await upstreamOf(pulling, follow)
    const take: TakeBlob<boolean> = async (chunks, size) => {
      if (tee && size !== undefined) tee.begin(size)
      return storeBlob(pulling, digest, chunks, { size, tee: size === undefined ? undefined : tee })
    }
    const fetched = await app.upstreams.blob(asked.upstream, asked.path, digest, take, contentOptions(pulling))
    sent = fetched === true
    return fetched !== undefined
  })
  return sent ? 'sent' : isThere ? 'stored' : 'unknown'
}

/**
 * Size in bytes of a blob that is not stored. Fetches the blob if the upstream does not declare its size. Returns undefined if
 * the upstream does not have it.
 */
export async function sizeOfBlob(pulling: Pulling, digest: string): Promise<number | undefined> {
  const { app, repo } = pulling
  const follow = await followOnDemand(pulling)
  if (!follow) return undefined
  const { upstream, path } = await upstreamOf(pulling, follow)
  const size = await app.upstreams.blobSize(upstream, path, digest, { timeoutMs: lookMs, patienceMs: lookMs })
  if (size === 'none') return undefined
  if (size !== 'unknown') return size
  await pullBlobThrough(pulling, digest)
  return (await findRepoBlobs(app.db, repo.id, [digest]))[0]?.size
}

async function followOnDemand({ app, repo }: Pulling): Promise<FollowStatus | undefined> {
  const follow = await store.findFollowWithoutCounts(app.db, repo.uid)
  return follow && bringsContent(follow.mode) ? follow : undefined
}

async function isMirrored({ tags }: FollowStatus, tag: string): Promise<boolean> {
  return namedTags(tags).includes(tag) || (await tagMatcher(tags)?.(tag)) === true
}

/** True if the tag is named after the digest of a stored image, as cosign names tags of signatures. */
async function isAboutSomething({ app, repo }: Pulling, tag: string): Promise<boolean> {
  const about = digestAbout(tag)
  return about !== undefined && hasManifest(app.db, repo.id, about.digest)
}

export async function upstreamOf(
  { app, beforehand }: Pulling,
  follow: FollowStatus,
): Promise<{ upstream: Asked; path: string }> {
  const upstream = await findUpstream(app.db, follow.upstream)
  if (!upstream) throw new FollowEnded('the upstream was deleted')
  const asked = await withPassword(app, upstream, follow.path)
  return beforehand ? { ...asked, upstream: { ...asked.upstream, spare: true } } : asked
}

const contentOptions = ({ beforehand }: Pulling) => ({ patienceMs, ...(beforehand && { signal: beforehand }) })

/** Shares a fetch between concurrent pulls. A prefetch can be canceled, so it has its own key and no pull waits for it. */
function shareFetch<T>({ app, beforehand }: Pulling, what: string, run: () => Promise<T>): Promise<T> {
  return singleFlight(app.follows.flights, beforehand ? `beforehand ${what}` : what, run)
}

/** Checks one tag at the upstream. Returns `gone` if the upstream does not have it. */
async function checkTag(pulling: Pulling, follow: FollowStatus, tag: string): Promise<'seen' | 'gone'> {
  const { app, repo } = pulling
  const { upstream, path } = await upstreamOf(pulling, follow)
  const sent = app.clock().toISOString()
  const seen = await app.upstreams.head(upstream, path, tag, { timeoutMs: lookMs, patienceMs: lookMs })
  const here = (await findTagNamed(app.db, repo.id, tag))?.digest ?? ''
  const looked = await store.findFollowedTag(app.db, repo.uid, tag)
  const lookLater = async () => {
    if (looked || (await store.countFollowedTags(app.db, repo.uid)) >= maxFollowedTags) return
    await app.db.tx((tx) => store.addFollowedTags(tx, repo.uid, [tag], { checkedTime: '', now: sent }), inRepo)
  }
  if (!seen) {
    if (here === '') return 'gone'
    await lookLater()
    // The background job checks the tag again and decides whether it was deleted.
    await app.db.tx((tx) => store.noteMissed(tx, repo.uid, tag, looked?.missed ?? 0, sent), inRepo)
    return 'gone'
  }
  if (!(await pullManifestThrough(pulling, seen.digest))) throw new UpstreamError('malformed')
  await lookLater()
  const dueTime = new Date(Date.parse(sent) + follow.intervalMs).toISOString()
  if (seen.digest === here) {
    await app.db.tx((tx) => store.noteChecked(tx, repo.uid, [tag], { checkedTime: sent, dueTime }), inRepo)
  } else {
    const recording = { app, tx: app.db.tx.bind(app.db), follow, path }
    const checkedBefore = looked?.checkedTime ?? ''
    const now = app.clock().toISOString()
    await recordMove(recording, { tag, digest: seen.digest, now, sent, dueTime, checkedBefore })
  }
  // The fetch may have taken long. If another check has assigned another digest meanwhile, fetches that manifest too.
  const noted = (await findTagNamed(app.db, repo.id, tag))?.digest ?? seen.digest
  if (noted !== seen.digest) await pullManifestThrough(pulling, noted)
  return 'seen'
}

async function fetchManifest(pulling: Pulling, follow: FollowStatus, digest: string): Promise<boolean> {
  const { app, repo, origin } = pulling
  const { upstream, path } = await upstreamOf(pulling, follow)
  const fetched = await app.upstreams.manifest(upstream, path, digest, contentOptions(pulling))
  if (!fetched) return false
  const { content } = fetched
  const document = await readFetched(pulling, digest, fetched)
  const result = await pushManifest(followerWork(app), {
    target: atRepo(app.db, repo),
    manifest: { digest, content, mediaType: document.mediaType },
    document,
    tags: [],
    mayTag: { create: false, move: false },
    precondition: undefined,
    origin,
    sparse: true,
  })
  if (result !== 'stored') throw new UpstreamError('malformed')
  await queueIfComplete(pulling, digest, document)
  if (follow.mode === followModes.onDemand) await queueReferrers(pulling, document.subject, digest)
  return true
}

/** Queues a look-up of the referrers of a manifest. Manifests listed by an index, and referrers of referrers, are left out. */
async function queueReferrers({ app, repo }: Pulling, subject: string, digest: string): Promise<void> {
  if (subject !== '' && (await subjectOf(app.db, repo.id, subject)) !== '') return
  if ((await indexesWith(app.db, repo.id, digest, 1)).length > 0) return
  await app.db.tx((tx) => queueFetch(tx, repo.uid, digest, app.clock().toISOString()), inRepo)
  app.follows.fetches.notify()
}

/** Queues images for reading, as a push does. Images with missing blobs are left out. */
async function queueComplete({ app, repo }: Pulling, digests: readonly string[]): Promise<void> {
  for (const digest of digests) {
    const manifest = await findManifest(app.db, repo.id, digest)
    if (!manifest) continue
    await queueIfComplete({ app, repo }, digest, readManifest(manifest.content, manifest.mediaType))
  }
}

async function queueIfComplete(
  { app, repo }: Pick<Pulling, 'app' | 'repo'>,
  digest: string,
  document: ManifestDocument,
) {
  const here = await findRepoBlobs(app.db, repo.id, document.blobs)
  if (here.length < document.blobs.length) return
  const now = app.clock().toISOString()
  await app.db.tx((tx) => queueContents(tx, repo.id, digest, document, now), inRepo)
  app.images.pushed.notify()
}

const dayMs = 24 * 3_600_000

/**
 * Reads and checks a fetched manifest. Throws UpstreamError if it is invalid. If a pull fetches a manifest above a limit, the
 * status of the mirror shows this for at least a day.
 */
async function readFetched(
  { app, repo, beforehand }: Pulling,
  digest: string,
  { content, mediaType }: { content: Buffer; mediaType: string },
): Promise<ManifestDocument> {
  try {
    return readNewManifest(content, mediaType)
  } catch (cause) {
    if (!(cause instanceof ManifestProblem)) throw cause
    if (!(cause instanceof ManifestLimit)) throw new UpstreamError('malformed', { cause })
    const error = new UpstreamError('over-limit', { limit: cause.message, cause })
    const dueTime = new Date(app.clock().getTime() + dayMs).toISOString()
    // A prefetch stores its problem on its own.
    if (!beforehand) {
      await app.db.tx((tx) => noteProblem(tx, repo.uid, { digest, problem: error.message, dueTime }), inRepo)
    }
    throw error
  }
}

/**
 * Stores a blob if its content has the digest. The client gets the last chunk only after this check. Returns true if the client
 * has received the whole blob.
 */
async function storeBlob(
  { app, repo, origin }: Pulling,
  digest: string,
  chunks: AsyncIterable<Uint8Array>,
  { size: announced = 0, tee }: { size: number | undefined; tee: Tee | undefined },
): Promise<boolean> {
  let keepsUp = tee !== undefined
  const pass = async (chunk: Uint8Array | undefined): Promise<void> => {
    if (chunk && keepsUp) keepsUp = await tee!.write(chunk)
  }
  const work = followerWork(app)
  const meter = await meterOf(work, repo, announced)
  const part = await app.blobs.begin(announced, meter.organization)
  const algorithm = algorithmOf(digest)
  const hash = createHash(algorithm)
  let size = 0
  let held: Uint8Array | undefined
  let isBegun = true
  try {
    for await (const chunk of chunks) {
      meter.take(chunk.length)
      hash.update(chunk)
      size += chunk.length
      await part.write([Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)])
      await pass(held)
      held = chunk
    }
    if (`${algorithm}:${hash.digest('hex')}` !== digest) throw new UpstreamError('wrong-digest')
    // From here on the content may be in use, even if a later call fails. So it is not discarded.
    isBegun = false
    const kept = await keepBlob(work, atRepo(app.db, repo), { digest, size, part, meter }, origin)
    if (!kept) throw new FollowEnded('the repository was deleted')
    await queueComplete({ app, repo, origin }, await manifestsWithBlob(app.db, repo.id, digest, maxQueued))
  } catch (error) {
    if (isBegun) await part.discard()
    throw error
  } finally {
    meter.end()
  }
  await pass(held)
  return keepsUp
}
