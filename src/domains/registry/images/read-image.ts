// Reads the contents of one image from its layers, and from SBOMs and statements about the image.
import type { App } from '#app.ts'
import { ContentMissing } from '#blobs/blobs.ts'
import { isOtherDistribution } from '#contents/ecosystems.ts'
import { joinContents, withMissingDatabase } from '#contents/join.ts'
import type { Layer } from '#contents/layers/layers.ts'
import {
  type Distribution,
  type Gap,
  type ImageContents,
  isOfDistribution,
  type Package,
  Unreadable,
} from '#contents/packages.ts'
import type { Reader } from '#contents/reader.ts'
import { maxSbomBytes } from '#contents/reader-messages.ts'
import { isEnvelopeType } from '#contents/reports/envelope.ts'
import { isSbomType } from '#contents/sbom.ts'
import { Newest } from '#lib/caches/newest.ts'
import { turnBytes, turns } from '#lib/scheduling/turns.ts'
import { findRepoBlob } from '../blobs/blobs.store.ts'
import { attestedBy, foreignLayerTypes, readListed } from '../manifests/manifest-document.ts'
import type { Descriptor, Manifest } from '../manifests/manifests.model.ts'
import { findManifest, findManifests } from '../manifests/manifests.store.ts'
import { findTagNamed } from '../tags/tags.store.ts'
import { listEnvelopes, listIndexesWith, listSbomsAndStatements } from './attached.store.ts'
import {
  type ContentsRecord,
  type ContentsSource,
  knowsDistribution,
  maxEnvelopes,
  maxSboms,
  sbomTypes,
  statementType,
} from './image-contents.model.ts'

/** The manifest lists content that is not in the repository. The content may still be pushed. */
export class BlobMissing extends Error {
  override name = 'BlobMissing'
}

/** Result of a read. `contents` is undefined if nothing in the image lists installed packages. */
export type ImageRead = { contents: ImageContents | undefined; source: ContentsSource }

/** Parameters of a read. `signal` cancels the read. */
export type Reading = { app: App; reader: Reader; repo: number; signal: AbortSignal }

/** Reads the contents of an image. Throws Unreadable if the image itself is the cause. */
export async function readImage(reading: Reading, manifest: Manifest): Promise<ImageRead> {
  const named = await readAttached(reading, manifest.digest)
  const inLayers = await readLayers(reading, manifest).catch((error: unknown) => {
    if (!named?.packages.length) throw error
    return toGap(error)
  })
  if (!inLayers && !named) return { contents: undefined, source: 'none' }
  const beside = named && inLayers ? excludeOtherDistribution(named, inLayers.distribution) : named
  const contents = withMissingDatabase(joinContents([inLayers, beside].filter((one) => one !== undefined)))
  if (!contents.hasDatabase) return { contents, source: 'languages' }
  if (!beside?.packages.length) return { contents, source: 'layers' }
  return { contents, source: inLayers?.hasDatabase ? 'layersAndSbom' : 'sbom' }
}

/** Contents named by SBOMs and statements about an image or an index. Returns undefined if there are no such documents. */
async function readAttached(reading: Reading, digest: string): Promise<ImageContents | undefined> {
  const allContents = [
    await readReferrers(reading, digest),
    await readAttestationTag(reading, digest),
    await readAttestations(reading, digest),
  ]
  return joinAll(allContents.filter((one) => one !== undefined))
}

type OfIndex = Pick<ContentsRecord, 'state' | 'source' | 'distribution' | 'gaps'> & { packages: readonly Package[] }

/**
 * Adds packages to the contents of an index if SBOMs of the index itself name them. Returns `{}` if there are no such documents.
 */
export async function readOwnSboms(reading: Reading, digest: string, index: OfIndex): Promise<Partial<OfIndex>> {
  const named = index.state === 'unreadable' ? undefined : await readAttached(reading, digest)
  if (!named) return {}
  const beside = excludeOtherDistribution(named, index.distribution)
  const ofImages = { ...index, packages: [...index.packages], hasDatabase: knowsDistribution(index.source) }
  const contents = joinContents([
    { ...ofImages, gaps: index.gaps as Gap[], hasDatabase: index.state === 'known' && ofImages.hasDatabase },
    beside,
  ])
  const source = contents.hasDatabase ? 'images' : 'languagesOfImages'
  return {
    state: 'known',
    source,
    packages: contents.packages,
    distribution: contents.distribution,
    gaps: contents.gaps,
  }
}

/** Leaves out packages of another distribution and reports them as a coverage gap. */
function excludeOtherDistribution(named: ImageContents, distribution: Distribution): ImageContents {
  if (!isOtherDistribution(named.distribution, distribution)) return named
  const [given, taken] = [named.distribution, distribution].map(({ id, version }) => `${id} ${version}`.trim())
  const packages = named.packages.filter((one) => !isOfDistribution(one))
  const left = named.packages.length - packages.length
  const message = `not compared with the advisories of ${taken}: ${left === 1 ? '1 package' : `${left} packages`} of ${given} in an SBOM`
  const gaps: Gap[] = packages.length === named.packages.length ? [] : [{ path: '', reason: 'UNSUPPORTED', message }]
  return { ...named, packages, gaps: [...named.gaps, ...gaps], hasDatabase: false }
}

/** Joins contents. The result has the distribution of the first contents that have one. */
function joinAll(all: readonly ImageContents[]): ImageContents | undefined {
  const meant = all.find(({ distribution }) => distribution.id !== '')?.distribution
  return all.length === 0
    ? undefined
    : joinContents(meant ? all.map((one) => excludeOtherDistribution(one, meant)) : all)
}

async function readLayers({ app, reader, repo, signal }: Reading, manifest: Manifest) {
  const layers = readListed(manifest).layers.filter(({ mediaType }) => isArchive.test(mediaType))
  if (layers.length === 0) return undefined
  return await reader.readLayers(
    layers.map((layer) => createOpener(app, repo, layer)),
    signal,
  )
}

/** Coverage gap for a part of the image that was not read. Other parts may still be known. */
function toGap(error: unknown, what = 'the layers were'): ImageContents {
  if (!(error instanceof Unreadable) && !(error instanceof BlobMissing)) throw error
  const reason = error instanceof Unreadable ? error.reason : 'BLOB_MISSING'
  const gap: Gap = { path: '', reason, message: `${what} not read: ${error.message}` }
  return { packages: [], distribution: { id: '', version: '' }, hasDatabase: false, gaps: [gap] }
}

/**
 * Contents of the newest SBOM or statement that refers to the image and names a package. Includes the coverage gaps of newer
 * documents.
 */
async function readReferrers(reading: Reading, digest: string): Promise<ImageContents | undefined> {
  const { attached, left } = await listAttached(reading, digest)
  const allContents: ImageContents[] = []
  let last = 0
  for (const one of attached) {
    const contents = await readDocuments(reading, digest, documentsIn(one))
    if (contents) allContents.push(contents)
    if (contents?.packages.length) {
      last = one.id
      break
    }
  }
  // Older documents are ignored. A newer document that was left out might name packages, so it is a coverage gap.
  if (left > last) allContents.unshift(toGap(new Unreadable('LIMIT_EXCEEDED', tooMany), 'some attestations were'))
  return joinAll(allContents)
}

const tooMany = 'the image has too many referrers'

/** Layers that may be an SBOM. If no layer has the media type of an SBOM, the first layer is included with any media type. */
function documentsIn(manifest: Manifest): Descriptor[] {
  const { layers } = readListed(manifest)
  const isSbom = ({ mediaType }: Descriptor): boolean => sbomTypes.some((type) => type === mediaType)
  const named = layers.filter((layer) => isSbom(layer) || canStateSbom(layer))
  return named.some(isSbom) ? named : [...new Set([...layers.slice(0, 1), ...named])]
}

/**
 * SBOMs and statements that refer to the image, the newest first. `left` is the number of the newest document that was left out
 * and might be an SBOM, or 0 if there is none.
 */
async function listAttached({ app: { db }, repo }: Reading, digest: string) {
  const envelopes = await listEnvelopes(db, repo, digest, maxEnvelopes + 1)
  const isSbom = ({ annotations }: (typeof envelopes)[number]): boolean =>
    canBeSbom(annotations['dev.sigstore.bundle.predicateType'])
  const sboms = envelopes.slice(0, maxEnvelopes).filter(isSbom)
  const numbers = new Map(sboms.slice(0, maxSboms).map(({ id, digest }) => [digest, id]))
  const others = await listSbomsAndStatements(db, repo, digest, maxSboms + 1)
  const found = await findManifests(db, repo, [...numbers.keys()])
  const attached = [...others.slice(0, maxSboms), ...found.map((one) => ({ ...one, id: numbers.get(one.digest)! }))]
  const left = [sboms[maxSboms], envelopes[maxEnvelopes], others[maxSboms]].map((one) => one?.id ?? 0)
  return { attached: attached.sort((one, other) => other.id - one.id), left: Math.max(...left) }
}

/** Contents of the attestations under the tag that cosign uses for the image. */
async function readAttestationTag(reading: Reading, digest: string): Promise<ImageContents | undefined> {
  const { app, repo } = reading
  const tag = await findTagNamed(app.db, repo, `${digest.replace(':', '-')}.att`)
  const manifest = tag && tag.digest !== '' ? await findManifest(app.db, repo, tag.digest) : undefined
  return manifest && readDocuments(reading, digest, readListed(manifest).layers.filter(canStateSbom).reverse())
}

/** Contents of build attestations. They come from the newest index that lists the image together with attestations. */
async function readAttestations(reading: Reading, digest: string): Promise<ImageContents | undefined> {
  const { app, repo } = reading
  for (const newest of (await listIndexesWith(app.db, repo, digest)).slice(0, maxSboms)) {
    const attestations = (await attestationsIn(reading, newest)).get(digest) ?? []
    const digests = attestations.slice(0, maxSboms)
    if (digests.length === 0) continue
    const found = await findManifests(app.db, repo, digests)
    const layers = found.flatMap((one) => readListed(one).layers)
    const contents = await readDocuments(reading, digest, layers.filter(canStateSbom))
    const cut =
      attestations.length > maxSboms ? toGap(new Unreadable('LIMIT_EXCEEDED', tooMany), 'some SBOMs were') : undefined
    if (contents || cut) return joinAll([contents, cut].filter((one) => one !== undefined))
  }
  return undefined
}

/** Digests of the attestations in an index, by the digest of their image. */
type Attestations = ReadonlyMap<string, readonly string[]>

/**
 * Attestations in the indexes that were read last. An index lists up to 2,000 images. They are read one after the other, and
 * without this cache each of them would parse the index again.
 */
const attestationsInIndexes = new Newest<string, Attestations>(2 * maxSboms)

async function attestationsIn({ app, repo }: Reading, digest: string): Promise<Attestations> {
  const kept = attestationsInIndexes.get(digest)
  if (kept) return kept
  const index = await findManifest(app.db, repo, digest)
  if (!index) return new Map()
  if (index.content.length > turnBytes) await turns.next()
  const attestations = new Map<string, string[]>()
  for (const entry of readListed(index).entries) {
    const image = attestedBy(entry)
    if (image === undefined) continue
    const digests = attestations.get(image)
    if (digests) digests.push(entry.digest)
    else attestations.set(image, [entry.digest])
  }
  attestationsInIndexes.set(digest, attestations)
  return attestations
}

/**
 * True if a statement may be an SBOM. Without the annotation for the predicate type, the type has to be read from the statement
 * itself.
 */
const canBeSbom = (predicate: unknown): boolean => typeof predicate !== 'string' || isSbomType(predicate)

/** Cosign and BuildKit use different annotations for the predicate type. */
function canStateSbom({ mediaType, annotations }: Descriptor): boolean {
  const isStatement = mediaType === statementType || isEnvelopeType(mediaType)
  return isStatement && canBeSbom(annotations['in-toto.io/predicate-type'] ?? annotations.predicateType)
}

/**
 * Joined contents of the documents. Statements about other images are ignored. Returns undefined if no document has contents of
 * this image.
 */
async function readDocuments(
  { app, reader, repo, signal }: Reading,
  about: string,
  documents: readonly Descriptor[],
): Promise<ImageContents | undefined> {
  const allContents: ImageContents[] = []
  for (const document of documents.slice(0, maxSboms)) {
    try {
      const found = await reader.readSbom(createOpener(app, repo, document, maxSbomBytes), signal)
      if (!found) continue
      const { subjects, sealed, ...contents } = found
      const isElsewhere = subjects && (subjects.length > 0 || sealed) && !subjects.includes(about)
      if (isElsewhere) app.log.info('sbom is for another image', { repo, sbom: document.digest })
      else if (contents.packages.length + contents.gaps.length > 0) allContents.push(contents)
    } catch (error) {
      allContents.push(toGap(error, 'an SBOM was'))
      app.log.info('sbom could not be read', { repo, sbom: document.digest, error: (error as Error).message })
    }
  }
  if (documents.length > maxSboms)
    allContents.push(toGap(new Unreadable('LIMIT_EXCEEDED', tooManySboms), 'some SBOMs were'))
  return joinAll(allContents)
}

const tooManySboms = `a manifest has more than ${maxSboms} of them`

/**
 * Media types of layers that are archives. Signatures and attestations have the config of an image, but their layers are not a
 * file system.
 */
const isArchive = /[.+]tar(?:[.+]|$)/i

/** Opens the stored blob of a descriptor. The size in the descriptor is not trusted. */
function createOpener(
  app: App,
  repo: number,
  { digest, mediaType }: Descriptor,
  most = Number.POSITIVE_INFINITY,
): Layer {
  return async (signal) => {
    const blob = await findRepoBlob(app.db, repo, digest)
    if (!blob) {
      if (foreignLayerTypes.test(mediaType))
        throw new Unreadable('BLOB_MISSING', 'a foreign layer is not stored in registries')
      throw new BlobMissing(`the repository does not have ${digest}`)
    }
    if (blob.size > most) throw new Unreadable('LIMIT_EXCEEDED', `${digest} has more than ${most} bytes`)
    try {
      const stream = (await app.blobs.read(blob)).stream()
      if (signal.aborted) stream.destroy()
      signal.addEventListener('abort', () => stream.destroy(), { once: true })
      return stream
    } catch (error) {
      throw error instanceof ContentMissing ? new BlobMissing(`the blob store does not have ${digest}`) : error
    }
  }
}

/** Images that an index lists. Entries for an unknown platform, such as attestations, are left out. */
export function imagesOf(index: Manifest): string[] {
  const isImage = ({ architecture, annotations }: Descriptor) =>
    architecture !== 'unknown' && annotations['vnd.docker.reference.type'] === undefined
  return readListed(index)
    .entries.filter(isImage)
    .map(({ digest }) => digest)
}
