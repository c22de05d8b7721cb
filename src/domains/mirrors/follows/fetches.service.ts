// Fetches the content of mirrors before it is pulled, and the referrers of each manifest, such as signatures. Referrers may be
// pushed later than their subject, so they are looked up repeatedly.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { findRepoBlobs } from '#domains/registry/blobs/blobs.store.ts'
import { listedFor, readManifest } from '#domains/registry/manifests/manifest-document.ts'
import { findManifest } from '#domains/registry/manifests/manifests.store.ts'
import { followModes } from '#domains/registry/repo-ref.model.ts'
import { pathIn } from '#domains/registry/repos/paths.service.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { tagsAbout } from '#domains/registry/tags/tags.model.ts'
import { findTagNamed } from '#domains/registry/tags/tags.store.ts'
import { AppError } from '#lib/errors.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { parentOf } from '#lib/uid.ts'
import * as store from './fetches.store.ts'
import { bringsContent, type FollowStatus } from './follows.model.ts'
import { findFollowWithoutCounts } from './follows.store.ts'
import { type Pulling, pullBlobThrough, pullManifestThrough, upstreamOf } from './pull-through.service.ts'
import { FollowEnded, recordMove } from './upstream-moves.service.ts'

/** One queued fetch. `longestMs` is its time limit. */
export type Fetching = { app: App; lease: Lease; fetch: store.Fetch; longestMs: number }
/** Result of a fetch. `slow` is true if the fetch reached its time limit. */
export type Fetched = { fetched: number; failed: number; slow: boolean }

const hourMs = 3_600_000
/** Delays before the referrers of a manifest are looked up again, after each complete fetch. */
const againMs = [hourMs, 24 * hourMs, 7 * 24 * hourMs]
const firstRetryMs = 60_000
/** Number of failed attempts after which incomplete content is tried only once a day. */
const mostTries = 5
/** Most referrers that are fetched for one manifest. */
const mostReferrers = 100
const mostListed = 2500
const patienceMs = 60_000

/** Fetches one queued manifest and schedules its next attempt. Throws only if the lease is lost or the database fails. */
export async function fetchQueued(fetching: Fetching): Promise<Fetched> {
  const { app, lease, fetch, longestMs } = fetching
  const signal = AbortSignal.any([lease.signal, AbortSignal.timeout(longestMs)])
  try {
    const follow = await findFollowWithoutCounts(app.db, fetch.repo)
    const pulling = follow && bringsContent(follow.mode) ? await pullingOf(app, fetch.repo, signal) : undefined
    if (!follow || !pulling) {
      await endFetch(fetching)
      return { fetched: 0, failed: 0, slow: false }
    }
    await fetchAll({ pulling, follow, lease, signal }, fetch.digest)
    const waitMs = againMs[fetch.round]
    if (waitMs === undefined) await endFetch(fetching)
    else await saveProgress(fetching, { round: fetch.round + 1, failures: 0 }, '', waitMs)
    return { fetched: 1, failed: 0, slow: false }
  } catch (error) {
    if (!lease.holds()) throw error
    const slow = signal.aborted
    return {
      fetched: 0,
      failed: await noteFailure(fetching, slow ? new IncompleteContent('fetching the image takes too long') : error),
      slow,
    }
  }
}

const write = { isolation: 'rowLocks', durability: 'later' } as const

function endFetch({ lease, fetch }: Fetching): Promise<void> {
  return lease.tx((tx) => store.endFetch(tx, fetch), write)
}

function saveProgress(
  { app, lease, fetch }: Fetching,
  { round, failures }: Pick<store.Fetch, 'round' | 'failures'>,
  problem: string,
  waitMs: number,
): Promise<void> {
  const dueTime = new Date(app.clock().getTime() + waitMs).toISOString()
  return lease.tx((tx) => store.noteFetch(tx, fetch, { round, failures, problem, dueTime }), write)
}

/** Records a failed fetch. Returns 0 if the fetch only has to wait for the rate limit of the host, and otherwise 1. */
async function noteFailure(fetching: Fetching, error: unknown): Promise<0 | 1> {
  const { app, fetch } = fetching
  const waitMs = error instanceof UpstreamError ? (error.waitMs ?? 0) : 0
  if (error instanceof UpstreamError && (error.reason === 'paced' || error.reason === 'paused')) {
    await saveProgress(fetching, fetch, '', waitMs)
    return 0
  }
  const problem = problemOf(error)
  if (problem === undefined) app.log.error('mirrored content could not be fetched', { repo: fetch.repo, error })
  const failures = fetch.failures + 1
  if (error instanceof FollowEnded) {
    await endFetch(fetching)
    return 1
  }
  const isHopeless = error instanceof IncompleteContent && failures >= mostTries
  const retryMs = isHopeless ? 24 * hourMs : Math.min(firstRetryMs * 2 ** Math.min(failures - 1, 10), hourMs)
  await saveProgress(
    fetching,
    { ...fetch, failures },
    problem ?? 'fetching the image failed, because of an error in the server',
    Math.max(waitMs, retryMs),
  )
  return 1
}

/** Error for content that cannot be fetched completely. The message has the reason. */
class IncompleteContent extends Error {
  override name = 'IncompleteContent'
}

/** Error for an index that lacks wanted platforms. Everything else of the index was fetched. */
class NoPlatform extends IncompleteContent {
  override name = 'NoPlatform'
}

const unknown = (): IncompleteContent => new IncompleteContent('the upstream does not have all parts of the image')

function problemOf(error: unknown): string | undefined {
  if (error instanceof UpstreamError) return error.message
  if (error instanceof FollowEnded) return 'the repository is no longer a mirror'
  if (error instanceof IncompleteContent) return error.message
  // The message has no numbers, since not everyone with access to the repository may see the quota of the organization.
  const isFull = error instanceof AppError && error.reason === 'RESOURCE_LIMIT_EXCEEDED'
  return isFull ? 'the quota of the organization is not enough for the whole image' : undefined
}

async function pullingOf(app: App, uid: string, beforehand: AbortSignal): Promise<Pulling | undefined> {
  const row = await findRepoRow(app.db, { uid })
  if (!row) return undefined
  const group = parentOf(uid)
  const path = await pathIn(app.db, group, row.name)
  const { url, listen } = app.config
  const host = url === '' ? `${listen.host}:${listen.port}` : new URL(url).host
  const repo = { id: row.id, uid, ledger: row.ledger, group, path }
  return { app, repo, origin: { host, subdomain: '', repository: path }, beforehand }
}

type Bringing = { pulling: Pulling; follow: FollowStatus; lease: Lease; signal: AbortSignal }

/**
 * Fetches a manifest and its referrers. For mirrors on demand, fetches only the referrers, since a pull fetches the manifest
 * itself.
 */
async function fetchAll(bringing: Bringing, digest: string): Promise<void> {
  let missing: IncompleteContent | undefined
  if (bringing.follow.mode === followModes.full) {
    await fetchComplete(bringing, digest).catch((error: unknown) => {
      if (!(error instanceof NoPlatform)) throw error
      missing = error
    })
  }
  const { digests, lost } = await referrersOf(bringing, digest)
  const about = [...new Set(digests)]
  for (const one of about.slice(0, mostReferrers)) {
    await fetchComplete(bringing, one).catch((error: unknown) => {
      if (!(error instanceof IncompleteContent)) throw error
      missing = error
    })
  }
  await fetchReferrerTags(bringing, digest)
  if (lost) missing ??= new IncompleteContent(lost.message)
  if (about.length > mostReferrers)
    missing ??= new IncompleteContent(`only ${mostReferrers} referrers of an image are fetched in advance`)
  // If a referrer cannot be fetched, the other referrers are fetched anyway.
  if (missing) throw missing
}

/** Fetches a manifest, the manifests it lists, and their blobs. Skips content that is already stored. */
async function fetchComplete({ pulling, follow, lease }: Bringing, root: string): Promise<void> {
  const { app, repo } = pulling
  const wanted = new Set([root])
  let lacksPlatforms = false
  let overLimit = ''
  const listedBlobs = new Set<string>()
  for (const digest of wanted) {
    lease.check()
    if (listedBlobs.has(digest) && (await isBlob(pulling, digest))) continue
    try {
      if (!(await pullManifestThrough(pulling, digest))) throw unknown()
    } catch (error) {
      // If a manifest of the index exceeds a limit, the other manifests are fetched anyway.
      if (!(error instanceof UpstreamError && error.reason === 'over-limit')) throw error
      overLimit ||= error.message
      continue
    }
    const manifest = await findManifest(app.db, repo.id, digest)
    if (!manifest) throw unknown()
    const document = readManifest(manifest.content, manifest.mediaType)
    const isPart = follow.platforms.length > 0 && document.kind === 'index'
    const part = isPart ? listedFor(document.listed.entries, follow.platforms) : undefined
    if (part?.lacksAll) lacksPlatforms = true
    for (const listed of document.listedBlobs) listedBlobs.add(listed)
    for (const child of part?.digests ?? document.manifests) if (wanted.size < mostListed) wanted.add(child)
    const here = new Set((await findRepoBlobs(app.db, repo.id, document.blobs)).map((blob) => blob.digest))
    for (const blob of document.blobs) {
      lease.check()
      if (!here.has(blob) && (await pullBlobThrough(pulling, blob)) === 'unknown') throw unknown()
    }
  }
  if (overLimit !== '') throw new IncompleteContent(overLimit)
  if (wanted.size >= mostListed)
    throw new IncompleteContent(`only ${mostListed} manifests of an index are fetched in advance`)
  if (lacksPlatforms) throw new NoPlatform('an index has no image for the configured platforms')
}

/** Fetches a listed digest as a blob. Returns true if the digest is a blob. */
async function isBlob(pulling: Pulling, digest: string): Promise<boolean> {
  const here = await findRepoBlobs(pulling.app.db, pulling.repo.id, [digest])
  return here.length > 0 || (await pullBlobThrough(pulling, digest)) !== 'unknown'
}

/**
 * Referrers of the manifest from the referrers API of the upstream. If the upstream lacks this API, from the index under the
 * fallback tag.
 */
async function referrersOf(
  { pulling, follow, signal }: Bringing,
  digest: string,
): Promise<{ digests: readonly string[]; lost?: UpstreamError | undefined }> {
  const { app, repo } = pulling
  const { upstream, path } = await upstreamOf(pulling, follow)
  const options = { patienceMs, signal }
  const asked = { digest, most: mostReferrers }
  const told = await app.upstreams.referrers(upstream, path, asked, options).catch((error: unknown) => {
    // The answer is malformed, so the upstream may lack the referrers API.
    if (error instanceof UpstreamError && error.reason === 'malformed') return undefined
    throw error
  })
  if (told) return told
  const pointed = await app.upstreams.head(upstream, path, digest.replace(':', '-'), options)
  if (!pointed || !(await pullManifestThrough(pulling, pointed.digest))) return { digests: [] }
  const index = await findManifest(app.db, repo.id, pointed.digest)
  return { digests: index ? readManifest(index.content, index.mediaType).manifests : [] }
}

/** Fetches the cosign tags for the digest of a manifest. They become tags of the mirror, with rows in its tag history. */
async function fetchReferrerTags(bringing: Bringing, digest: string): Promise<void> {
  const { pulling, follow, lease, signal } = bringing
  const { app, repo } = pulling
  const { upstream, path } = await upstreamOf(pulling, follow)
  for (const tag of tagsAbout(digest)) {
    const sent = app.clock().toISOString()
    const pointed = await app.upstreams.head(upstream, path, tag, { patienceMs, signal })
    if (!pointed || (await findTagNamed(app.db, repo.id, tag))?.digest === pointed.digest) continue
    await fetchComplete(bringing, pointed.digest)
    const move = { tag, digest: pointed.digest, sent, now: app.clock().toISOString(), dueTime: sent, checkedBefore: '' }
    await recordMove({ app, tx: lease.tx, follow, path }, move).catch((error: unknown) => {
      // If a tag rule protects the tag from updates, the tag keeps its digest.
      if (!(error instanceof UpstreamError && error.reason === 'guarded')) throw error
    })
  }
}
