// Properties of images from manifests and configurations: their architectures, and the bytes that a pull transfers.
import type { Call } from '#app.ts'
import { chunks } from '#lib/chunks.ts'
import { sha256Pattern } from '#lib/digest.ts'
import { AppError, failedPrecondition, found, invalid, notFound } from '#lib/errors.ts'
import { jsonProblem } from '#lib/json/json-limits.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import type { Blob } from '../blobs/blobs.model.ts'
import { readBlob } from '../blobs/blobs.service.ts'
import { findRepoBlobs } from '../blobs/blobs.store.ts'
import { readListed } from '../manifests/manifest-document.ts'
import type { Descriptor, Listed, Manifest } from '../manifests/manifests.model.ts'
import { findManifest, findManifests, hasManifest, storedManifests } from '../manifests/manifests.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { findSizes } from './image-contents.store.ts'
import {
  configLimits,
  defaultArchitecture,
  type ImageConfig,
  imageConfigOf,
  imageType,
  imageWalk,
  maxConfigBytes,
  parseConfig,
} from './images.model.ts'

/**
 * Architectures of an image or an index, each once and in the order of the index. Artifacts that are not images, such as charts,
 * have none.
 */
export async function getArchitectures(call: Call, repoUid: string, digest: string): Promise<string[]> {
  const variants = await findVariants(call, await requireRepo(call, repoUid, digest), digest)
  return [...found(variants, imageType, digest).keys()]
}

/** Compressed bytes of the configuration and the layers of the first image for the architecture. */
export async function getSize(call: Call, repoUid: string, digest: string, architecture: string): Promise<number> {
  return sizeOf(call, await requireRepo(call, repoUid, digest), digest, { architecture })
}

async function sizeOf(looking: UpstreamCheck, repo: Repo, digest: string, wanted: Wanted): Promise<number> {
  const { config, layers } = await imageIn(looking, repo, digest, wanted)
  const parts = [config, ...layers]
  const stored = await blobsOf(looking, repo, parts)
  // If content is not stored, its size comes from the descriptor. A client wrote the descriptor, so this size can be any number.
  const total = parts.reduce((sum, { digest: one, size }) => sum + (stored.get(one)?.size ?? size), 0)
  return Math.min(total, Number.MAX_SAFE_INTEGER)
}

/**
 * Compressed bytes of an image for the default architecture. Returns undefined if the image was deleted, if there is no image
 * for this architecture, or if a limit on reads was exceeded.
 */
export async function sizeOfImage(
  looking: UpstreamCheck,
  repo: Repo,
  digest: string,
  budget?: Walk,
): Promise<number | undefined> {
  try {
    return await sizeOf(looking, repo, digest, { architecture: defaultArchitecture, budget })
  } catch (error) {
    if (error instanceof AppError && error.code !== 'INTERNAL') return undefined
    throw error
  }
}

/** Runtime configuration of the first image for the architecture. */
export async function getConfig(
  call: Call,
  repoUid: string,
  digest: string,
  architecture: string,
): Promise<ImageConfig> {
  const { repo, config } = await requireImage(call, repoUid, digest, architecture)
  return imageConfigOf(await readConfig(call, repo, digest, config))
}

/**
 * Reads the configuration of an image. Throws NOT_FOUND if it is not stored, and FAILED_PRECONDITION if it exceeds the limits on
 * configurations.
 */
export async function readConfig(call: Call, repo: Repo, digest: string, config: Descriptor): Promise<Buffer> {
  const [blob] = (await blobsOf(call, repo, [config])).values()
  if (!blob) throw notFound(imageType, `the configuration of ${digest}`)
  if (blob.size > maxConfigBytes) throw tooLarge(digest, `the configuration has more than ${maxConfigBytes} bytes`)
  const bytes = await readBlob(call, repo, blob, maxConfigBytes)
  const content = found(bytes, imageType, `the configuration of ${digest}`)
  const problem = jsonProblem(content, configLimits)
  if (problem) throw tooLarge(digest, `the configuration ${problem}`)
  return content
}

type Repo = { id: number }
/** `budget` limits what all images of a request read together. */
type Wanted = { architecture: string; budget?: Walk | undefined }
/** Members of `Call` that a search for images needs. The signal of the request cancels the search. */
type UpstreamCheck = Pick<Call, 'app' | 'log' | 'signal'>
/** An image of one platform with its configuration and layers. */
export type FoundImage = { repo: Repo; manifest: Manifest; config: Descriptor; layers: readonly Descriptor[] }

/** The first image for the architecture in an index, or the image itself. Throws NOT_FOUND if there is none. */
export async function requireImage(
  call: Call,
  repoUid: string,
  digest: string,
  architecture: string,
): Promise<FoundImage> {
  return imageIn(call, await requireRepo(call, repoUid, digest), digest, { architecture })
}

async function imageIn(
  looking: UpstreamCheck,
  repo: Repo,
  digest: string,
  { architecture, budget }: Wanted,
): Promise<FoundImage> {
  const variants = await findVariants(looking, repo, digest, budget)
  const variant = variants?.get(architecture)
  const manifest = variant && (await findManifest(looking.app.db, repo.id, variant))
  if (manifest) budget?.spend(1, manifest.content.byteLength)
  const { config, layers } = manifest ? readListed(manifest) : { config: undefined, layers: [] }
  if (!manifest || !config) throw notFound(imageType, variants ? `${digest} for ${architecture}` : digest)
  return { repo, manifest, config, layers }
}

export function tooLarge(digest: string, description: string) {
  return failedPrecondition({ type: 'IMAGE_TOO_LARGE', subject: digest, description })
}

async function requireRepo(call: Call, uid: string, digest: string): Promise<Repo> {
  if (!sha256Pattern.test(digest)) {
    throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
  }
  return found(await findRepoRow(call.app.db, { uid }), repoType, uid)
}

type Search = {
  call: UpstreamCheck
  repo: Repo
  walk: Walk
  budget: Walk | undefined
  /** Digest of the first image for each architecture. */
  variants: Map<string, string>
}
type Entry = Pick<Descriptor, 'digest' | 'architecture'>

/**
 * Images behind a digest, by architecture. Returns undefined if the repository does not have the digest. Attestations have no
 * architecture.
 */
export async function findVariants(
  call: UpstreamCheck,
  repo: Repo,
  digest: string,
  budget?: Walk,
): Promise<Search['variants'] | undefined> {
  const walk = new Walk(imageWalk, call.signal, (limit) => {
    return tooLarge(digest, `the image lists too much: more than ${limit} would have to be read`)
  })
  const search: Search = { call, repo, walk, budget, variants: new Map() }
  await searchEntries(search, [{ digest, architecture: undefined }])
  const isThere = search.variants.size > 0 || (await hasManifest(call.app.db, repo.id, digest))
  return isThere ? search.variants : undefined
}

/**
 * Finds the architectures of entries. If an entry in the index has none, the architecture comes from the listed manifest: from
 * its configuration, or from its own entries.
 */
async function searchEntries(search: Search, entries: readonly Entry[]): Promise<void> {
  const { walk } = search
  const withoutArchitecture = entries.filter(
    ({ digest, architecture }) => architecture === undefined && walk.isNew(digest),
  )
  const digests = withoutArchitecture.map(({ digest }) => digest)
  const manifests = await readManifests(search, digests)
  const configs = await blobsOf(
    search.call,
    search.repo,
    [...manifests.values()].flatMap(({ config }) => config ?? []),
  )
  const architectures = await architecturesOf(search, manifests, configs)
  for (const { digest, architecture } of entries) {
    if (architecture !== undefined) note(search, architecture, digest)
    const listed = manifests.get(digest)
    if (!listed) continue
    manifests.delete(digest)
    if (listed.config) note(search, architectures.get(digest), digest)
    else await searchEntries(search, listed.entries)
  }
}

function note({ variants }: Search, architecture: unknown, digest: string): void {
  if (typeof architecture !== 'string' || architecture === '' || architecture === 'unknown') return
  if (!variants.has(architecture)) variants.set(architecture, digest)
}

function spend({ walk, budget }: Search, bytes: number): void {
  budget?.spend(1, bytes)
  walk.spend(1, bytes)
}

async function readManifests(search: Search, digests: readonly string[]): Promise<Map<string, Listed>> {
  const { call, repo, walk } = search
  const { db } = call.app
  const stored = await storedManifests(db, repo.id, digests)
  for (const { size } of stored.values()) spend(search, size)
  const read = new Map<string, Listed>()
  for (const manifest of await findManifests(db, repo.id, [...stored.keys()])) {
    await walk.pause()
    read.set(manifest.digest, readListed(manifest))
  }
  return read
}

async function blobsOf({ app }: UpstreamCheck, repo: Repo, parts: readonly Descriptor[]): Promise<Map<string, Blob>> {
  const digests = [...new Set(parts.map(({ digest }) => digest))]
  const blobs = await findRepoBlobs(app.db, repo.id, digests)
  return new Map(blobs.map((blob) => [blob.digest, blob]))
}

/**
 * Number of configurations that are read at the same time. Reading them one after the other would wait for the blob store each
 * time.
 */
const readAtOnce = 16

/** Architectures in the configurations of the manifests. */
async function architecturesOf(
  search: Search,
  manifests: ReadonlyMap<string, Listed>,
  configs: ReadonlyMap<string, Blob>,
): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>()
  for (const some of chunks([...manifests], readAtOnce)) {
    const reading = some.map(async ([digest, { config }]) => {
      if (config) found.set(digest, await architectureOf(search, configs.get(config.digest)))
    })
    await Promise.all(reading)
  }
  return found
}

/** Architecture in the configuration, as it was pushed. Undefined if the configuration is missing, too large or invalid. */
async function architectureOf(search: Search, config: Blob | undefined): Promise<unknown> {
  const { call, repo, walk } = search
  if (!config || config.size > maxConfigBytes) return undefined
  spend(search, config.size)
  await walk.pause()
  const bytes = await readBlob(call, repo, config, maxConfigBytes)
  return bytes && (parseConfig(bytes) as { architecture?: unknown } | null | undefined)?.architecture
}

/** Most images in one statement. */
const atOnce = 500

/** Creates the limit on what one request reads to determine the sizes of images. It is the limit of a single image. */
export function createSizeBudget(call: Call): Walk {
  return new Walk(imageWalk, call.signal, (limit) => tooLarge('', `the sizes of the images need more than ${limit}`))
}

/** Cache of image sizes for one request. If the size of an image cannot be determined, it is 0. */
type Sizes = { of(digest: string): Promise<number> }

/**
 * Creates a cache of image sizes of a repository. Images that were read before the server stored sizes are measured on demand,
 * as long as the budget lasts.
 */
export async function createSizes(
  call: Call,
  repo: { id: number; uid: string },
  digests: readonly string[],
  budget?: Walk,
): Promise<Sizes> {
  const sizes = new Map<string, number>()
  for (const some of chunks([...new Set(digests)], atOnce)) {
    for (const { digest, size } of await findSizes(call.app.db, repo.id, some)) sizes.set(digest, size)
  }
  return {
    async of(digest) {
      const measure = async () => (budget?.isSpent ? undefined : sizeOfImage(call, repo, digest, budget))
      const size = sizes.get(digest) ?? (await measure()) ?? 0
      sizes.set(digest, size)
      return size
    },
  }
}
