// Reads what one image contains: from an SBOM that refers to it, else from its layers.
import { buffer } from 'node:stream/consumers'
import type { App } from '#app.ts'
import { ContentMissing } from '#blobs/blobs.ts'
import { type Layer, scanLayers, scanLimits } from '#contents/layers.ts'
import { type ImageContents, Unreadable } from '#contents/packages.ts'
import { maxSbomBytes, readContents } from '#contents/read-contents.ts'
import { findRepoBlob } from '../blobs/blobs.store.ts'
import { readListed, staysElsewhere } from '../manifests/manifest-document.ts'
import type { Descriptor, Manifest } from '../manifests/manifests.model.ts'
import { type ContentsSource, sbomTypes } from './image-contents.model.ts'
import { listSboms } from './image-contents.store.ts'

/** Content that the manifest lists is not in the repo, though it may still be pushed. */
export class BlobMissing extends Error {
  override name = 'BlobMissing'
}

/** Undefined contents: nothing in the image says what is installed. */
export type ImageRead = { contents: ImageContents | undefined; source: ContentsSource }

/** Throws Unreadable when the fault is in the image. */
export async function readImage(app: App, repo: number, manifest: Manifest, signal: AbortSignal): Promise<ImageRead> {
  const fromSbom = await readSboms(app, repo, manifest.digest, signal)
  if (fromSbom) return { contents: fromSbom, source: 'sbom' }
  const files = await scanLayers(
    readListed(manifest)
      .layers.filter(({ mediaType }) => isArchive.test(mediaType))
      .map((layer) => opener(app, repo, layer)),
    scanLimits,
    signal,
  )
  const contents = await readContents({ files }, signal)
  return { contents, source: contents ? 'layers' : 'none' }
}

/** What the newest SBOM says that says anything of the packages of a distribution. */
async function readSboms(app: App, repo: number, digest: string, signal: AbortSignal) {
  for (const sbom of await listSboms(app.db, repo, digest)) {
    const { layers } = readListed(sbom)
    const found = layers.find(({ mediaType }) => sbomTypes.some((type) => type === mediaType)) ?? layers[0]
    if (!found || found.size > maxSbomBytes) continue
    try {
      const bytes = await buffer(await opener(app, repo, found)(signal))
      const contents = await readContents({ sbom: bytes }, signal)
      if (contents && contents.packages.length > 0) return contents
    } catch (error) {
      // The layers say it too, and better than a broken document.
      if (!(error instanceof Unreadable) && !(error instanceof BlobMissing)) throw error
      app.log.info('sbom passed over', { repo, digest, sbom: found.digest, error: error.message })
    }
  }
  return undefined
}

/** Signatures and attestations pass for images by their config, but what they hold is no part of a file system. */
const isArchive = /[.+]tar(?:[.+]|$)/i

function opener(app: App, repo: number, { digest, mediaType }: Descriptor): Layer {
  return async (signal) => {
    const blob = await findRepoBlob(app.db, repo, digest)
    if (!blob) {
      if (staysElsewhere.test(mediaType)) throw new Unreadable('BLOB_MISSING', 'a layer is not kept in registries')
      throw new BlobMissing(`the repo has no ${digest}`)
    }
    try {
      const stream = (await app.blobs.read(blob.location)).stream()
      if (signal.aborted) stream.destroy()
      signal.addEventListener('abort', () => stream.destroy(), { once: true })
      return stream
    } catch (error) {
      throw error instanceof ContentMissing ? new BlobMissing(`the store has no ${digest}`) : error
    }
  }
}

/** The images that an index lists, without what is no image of a platform, such as attestations. */
export function imagesOf(index: Manifest): string[] {
  const isImage = ({ architecture, annotations }: Descriptor) =>
    architecture !== 'unknown' && annotations['vnd.docker.reference.type'] === undefined
  return readListed(index)
    .entries.filter(isImage)
    .map(({ digest }) => digest)
}
