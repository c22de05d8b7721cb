// Platforms of images, and the configuration of an image with its layers and build steps.
import type { Call } from '#app.ts'
import { chunks } from '#lib/chunks.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import type { Blob } from '../blobs/blobs.model.ts'
import { readBlob } from '../blobs/blobs.service.ts'
import { findRepoBlobs } from '../blobs/blobs.store.ts'
import { attestedBy, readListed } from '../manifests/manifest-document.ts'
import type { Descriptor, Listed } from '../manifests/manifests.model.ts'
import { findManifests } from '../manifests/manifests.store.ts'
import {
  type BuildInfo,
  buildInfoOf,
  type ImageConfig,
  imageConfigOf,
  imageWalk,
  platformOfConfig,
} from './images.model.ts'
import { readConfig, requireImage, tooLarge } from './images.service.ts'

type Repo = { id: number }

/** Number of configurations that are read at the same time. */
const readAtOnce = 16

/**
 * Platforms of images and indexes, such as `linux/arm64/v8`, by digest. An index lists them; an image has one in its
 * configuration. A configuration that is missing or too large has none. Callers leave out large manifests.
 */
export async function findPlatforms(
  call: Call,
  repo: Repo,
  digests: readonly string[],
): Promise<Map<string, string[]>> {
  const { db } = call.app
  const walk = new Walk(imageWalk, call.signal, (limit) =>
    tooLarge(digests[0]!, `its platforms need more than ${limit}`),
  )
  const listed = new Map<string, Listed>()
  for (const manifest of await findManifests(db, repo.id, digests)) {
    await walk.pause()
    listed.set(manifest.digest, readListed(manifest))
  }
  const configs = new Map<string, string>()
  const platforms = new Map<string, string[]>()
  for (const [digest, { config, entries }] of listed) {
    const images = entries.filter((one) => attestedBy(one) === undefined && one.platform !== '')
    if (config) configs.set(digest, config.digest)
    else platforms.set(digest, [...new Set(images.map(({ platform }) => platform))])
  }
  const blobs = new Map(
    (await findRepoBlobs(db, repo.id, [...new Set(configs.values())])).map((one) => [one.digest, one]),
  )
  for (const some of chunks([...configs], readAtOnce)) {
    const reading = some.map(async ([digest, config]) => {
      const platform = await readPlatform(call, repo, blobs.get(config), walk)
      platforms.set(digest, platform === '' ? [] : [platform])
    })
    await Promise.all(reading)
  }
  return platforms
}

/** Largest configuration that is read for its platform. */
const maxPlatformConfig = 256 * 1024

async function readPlatform(call: Call, repo: Repo, blob: Blob | undefined, walk: Walk): Promise<string> {
  if (!blob || blob.size > maxPlatformConfig) return ''
  walk.spend(1, blob.size)
  await walk.pause()
  const bytes = await readBlob(call, repo, blob, maxPlatformConfig)
  return bytes ? platformOfConfig(bytes) : ''
}

export type Layer = Pick<Descriptor, 'digest' | 'mediaType' | 'size'>
/** A build step, and the layer that it created if it created one. */
export type BuildStep = { command: string; layer: Layer | undefined }
export type ImageDetails = {
  digest: string
  configDigest: string
  config: ImageConfig
  info: Omit<BuildInfo, 'history'>
  steps: BuildStep[]
}

/** Configuration and layers of the first image for the architecture. Throws the errors of `readConfig`. */
export async function imageDetails(
  call: Call,
  repoUid: string,
  digest: string,
  architecture: string,
): Promise<ImageDetails> {
  const { repo, manifest, config, layers } = await requireImage(call, repoUid, digest, architecture)
  const bytes = await readConfig(call, repo, digest, config)
  const { history, ...info } = buildInfoOf(bytes)
  return {
    digest: manifest.digest,
    configDigest: config.digest,
    config: imageConfigOf(bytes),
    info,
    steps: stepsOf(history, layers),
  }
}

/**
 * Build steps with their layers. The history lists a step for each layer, and further steps without one. If the numbers differ,
 * the history is wrong, and each layer is a step without a command.
 */
function stepsOf(history: BuildInfo['history'], layers: readonly Layer[]): BuildStep[] {
  const creating = history.filter(({ isEmpty }) => !isEmpty)
  if (creating.length !== layers.length) return layers.map((layer) => ({ command: '', layer }))
  let next = 0
  return history.map(({ command, isEmpty }) => ({ command, layer: isEmpty ? undefined : layers[next++] }))
}
