// Reads what one image contains: from an SBOM that refers to it, else from its layers.
import type { App } from '#app.ts'
import { ContentMissing } from '#blobs/blobs.ts'
import type { Layer } from '#contents/layers.ts'
import { type ImageContents, Unreadable } from '#contents/packages.ts'
import type { Reader } from '#contents/reader.ts'
import { maxSbomBytes } from '#contents/reader-messages.ts'
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

/** What one image is read with, and for as long as somebody waits for it. */
export type Reading = { app: App; reader: Reader; repo: number; signal: AbortSignal }

/** Throws Unreadable when the fault is in the image. */
export async function readImage(reading: Reading, manifest: Manifest): Promise<ImageRead> {
  const { app, reader, repo, signal } = reading
  const fromSbom = await readSboms(reading, manifest.digest)
  if (fromSbom) return { contents: fromSbom, source: 'sbom' }
  const layers = readListed(manifest).layers.filter(({ mediaType }) => isArchive.test(mediaType))
  if (layers.length === 0) return { contents: undefined, source: 'none' }
  const contents = await reader.readLayers(
    layers.map((layer) => opener(app, repo, layer)),
    signal,
  )
  return { contents, source: contents ? 'layers' : 'none' }
}

/** What the newest SBOM says that says anything of the packages of a distribution. */
async function readSboms({ app, reader, repo, signal }: Reading, digest: string) {
  for (const sbom of await listSboms(app.db, repo, digest)) {
    const { layers } = readListed(sbom)
    const found = layers.find(({ mediaType }) => sbomTypes.some((type) => type === mediaType)) ?? layers[0]
    if (!found) continue
    try {
      const contents = await reader.readSbom(opener(app, repo, found, maxSbomBytes), signal)
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

/** What the descriptor says of the size counts for nothing. */
function opener(app: App, repo: number, { digest, mediaType }: Descriptor, most = Number.POSITIVE_INFINITY): Layer {
  return async (signal) => {
    const blob = await findRepoBlob(app.db, repo, digest)
    if (!blob) {
      if (staysElsewhere.test(mediaType)) throw new Unreadable('BLOB_MISSING', 'a layer is not kept in registries')
      throw new BlobMissing(`the repo has no ${digest}`)
    }
    if (blob.size > most) throw new Unreadable('LIMIT_EXCEEDED', `${digest} has more than ${most} bytes`)
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
