// Reads what one image contains: its layers, and what SBOMs and statements about it name besides.
import type { App } from '#app.ts'
import { ContentMissing } from '#blobs/blobs.ts'
import { joinContents, withMissingDatabase } from '#contents/join.ts'
import type { Layer } from '#contents/layers/layers.ts'
import { type Gap, type ImageContents, Unreadable } from '#contents/packages.ts'
import type { Reader } from '#contents/reader.ts'
import { maxSbomBytes } from '#contents/reader-messages.ts'
import { findRepoBlob } from '../blobs/blobs.store.ts'
import { attestedBy, readListed, staysElsewhere } from '../manifests/manifest-document.ts'
import type { Descriptor, Manifest } from '../manifests/manifests.model.ts'
import { findManifest, findManifests } from '../manifests/manifests.store.ts'
import { type ContentsSource, maxSboms, sbomTypes, statementType } from './image-contents.model.ts'
import { listIndexesWith, listSbomsAndStatements } from './image-contents.store.ts'

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
  const said = [await readReferrers(reading, manifest.digest), await readAttestations(reading, manifest.digest)]
  const named = said.filter((one) => one !== undefined)
  const inLayers = await readLayers(reading, manifest).catch((error: unknown) => {
    if (named.length === 0) throw error
    return gapOf(error)
  })
  const contents = withMissingDatabase(joinContents(inLayers ? [inLayers, ...named] : named))
  if (!inLayers && named.length === 0) return { contents: undefined, source: 'none' }
  if (!contents.hasDatabase) return { contents, source: 'languages' }
  if (named.length === 0) return { contents, source: 'layers' }
  return { contents, source: inLayers?.hasDatabase ? 'layersAndSbom' : 'sbom' }
}

async function readLayers({ app, reader, repo, signal }: Reading, manifest: Manifest) {
  const layers = readListed(manifest).layers.filter(({ mediaType }) => isArchive.test(mediaType))
  if (layers.length === 0) return undefined
  return await reader.readLayers(
    layers.map((layer) => opener(app, repo, layer)),
    signal,
  )
}

/** What an SBOM says is known even where the layers are not; that they are not is said with it. */
function gapOf(error: unknown): ImageContents {
  if (!(error instanceof Unreadable) && !(error instanceof BlobMissing)) throw error
  const reason = error instanceof Unreadable ? error.reason : 'BLOB_MISSING'
  const gap: Gap = { path: '', reason, message: `the layers were not read: ${error.message}` }
  return { packages: [], distribution: { id: '', version: '' }, hasDatabase: false, gaps: [gap] }
}

/** What the newest SBOM or statement that refers to the image says, if it names any package. */
async function readReferrers(reading: Reading, digest: string): Promise<ImageContents | undefined> {
  for (const sbom of await listSbomsAndStatements(reading.app.db, reading.repo, digest)) {
    const { layers } = readListed(sbom)
    const statements = layers.filter(mayStateSbom)
    const one = layers.find(({ mediaType }) => sbomTypes.some((type) => type === mediaType)) ?? layers[0]
    const contents = await readDocuments(reading, statements.length > 0 ? statements : one ? [one] : [])
    if (contents) return contents
  }
  return undefined
}

/** What builders state about the image in the newest index that lists it together with statements. */
async function readAttestations(reading: Reading, digest: string): Promise<ImageContents | undefined> {
  const { app, repo } = reading
  for (const newest of (await listIndexesWith(app.db, repo, digest)).slice(0, maxSboms)) {
    const index = await findManifest(app.db, repo, newest)
    if (!index) continue
    const attestations = readListed(index).entries.filter((entry) => attestedBy(entry) === digest)
    const digests = attestations.slice(0, maxSboms).map((entry) => entry.digest)
    if (digests.length === 0) continue
    const found = await findManifests(app.db, repo, digests)
    const contents = await readDocuments(reading, found.flatMap((one) => readListed(one).layers).filter(mayStateSbom))
    if (contents) return contents
  }
  return undefined
}

const sbomPredicate = /^https:\/\/(?:spdx\.dev\/Document|cyclonedx\.org\/bom)/

/** Where the annotation that says what is stated is missing, the statement itself does. */
function mayStateSbom({ mediaType, annotations }: Descriptor): boolean {
  const predicate = annotations['in-toto.io/predicate-type']
  return mediaType === statementType && (typeof predicate !== 'string' || sbomPredicate.test(predicate))
}

/** Undefined when none of them names a package. */
async function readDocuments({ app, reader, repo, signal }: Reading, documents: readonly Descriptor[]) {
  const said: ImageContents[] = []
  for (const document of documents.slice(0, maxSboms)) {
    try {
      const contents = await reader.readSbom(opener(app, repo, document, maxSbomBytes), signal)
      if (contents && contents.packages.length > 0) said.push(contents)
    } catch (error) {
      // The layers say it too, and better than a broken document.
      if (!(error instanceof Unreadable) && !(error instanceof BlobMissing)) throw error
      app.log.info('sbom passed over', { repo, sbom: document.digest, error: error.message })
    }
  }
  return said.length === 0 ? undefined : joinContents(said)
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
      const stream = (await app.blobs.read(blob)).stream()
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
