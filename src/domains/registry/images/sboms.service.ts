// SBOMs that refer to images, and the packages that are known to be in images.

import type { Call } from '#app.ts'
import { packageUrl } from '#contents/package-url.ts'
import { type Package, Unreadable } from '#contents/packages.ts'
import { type SbomGraph, sbomGraph } from '#contents/sbom-graph.ts'
import { digestOf, isDigest } from '#lib/digest.ts'
import { AppError, invalid, notFound } from '#lib/errors.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { readBlob } from '../blobs/blobs.service.ts'
import { findRepoBlob } from '../blobs/blobs.store.ts'
import { readListed } from '../manifests/manifest-document.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { listSboms } from './attached.store.ts'
import { sbomTypes } from './image-contents.model.ts'
import { packagesOf } from './image-contents.service.ts'
import { findContents, listKnownImages } from './image-contents.store.ts'
import { imageType, imageWalk, maxSbomAnswer } from './images.model.ts'
import { type FoundImage, findVariants, requireImage, tooLarge } from './images.service.ts'

export type Sbom = {
  image: string
  /** The document as it was pushed. Absent if the packages were read from the layers of the image. */
  document?: { digest: string; bytes: Buffer }
  graph: Omit<SbomGraph, 'format'> & { format: string }
}

/** The newest SBOM, as it was pushed. It refers to the image, or to the index through which the image was found. */
export async function getRawSbom(call: Call, repoUid: string, digest: string, architecture: string): Promise<string> {
  const image = await requireImage(call, repoUid, digest, architecture)
  const bytes = await findDocument(call, image, digest)
  if (!bytes) throw notFound(imageType, `an SBOM of ${digest}`)
  return bytes.toString()
}

/** Packages of an image from its newest SBOM, or from its layers if there is no SBOM. */
export async function getSbom(call: Call, repoUid: string, digest: string, architecture: string): Promise<Sbom> {
  const found = await requireImage(call, repoUid, digest, architecture)
  const image = found.manifest.digest
  const bytes = await findDocument(call, found, digest)
  const graph = bytes && readGraph(digest, bytes)
  if (graph) return { image, document: { digest: digestOf('sha256', bytes), bytes }, graph }
  const [known] = await findContents(call.app.db, found.repo.id, [image])
  if (known?.state !== 'known') throw notFound(imageType, `an SBOM of ${digest}`)
  const packages = (await packagesOf(call.app.db, known.packages, walkOf(call))).map((one) => {
    const purl = packageUrl(one, known.distribution.id)
    return { id: purl, name: one.name, version: one.version, license: '', description: '', purl }
  })
  const none = { format: '', name: '', tool: '', authors: '', created: '', files: [], edges: [] }
  return { image, graph: { ...none, packages } }
}

function readGraph(digest: string, bytes: Buffer): SbomGraph | undefined {
  try {
    return sbomGraph(bytes)
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    if (error.reason === 'LIMIT_EXCEEDED') throw tooLarge(digest, error.message)
    return undefined
  }
}

async function findDocument(call: Call, { repo, manifest }: FoundImage, digest: string): Promise<Buffer | undefined> {
  const { db } = call.app
  const walk = new Walk(imageWalk, call.signal, (limit) => tooLarge(digest, `its SBOMs list more than ${limit}`))
  for (const subject of new Set([manifest.digest, digest])) {
    for (const sbom of await listSboms(db, repo.id, subject)) {
      walk.spend(1, sbom.content.length)
      await walk.pause()
      const { layers } = readListed(sbom)
      const layer = layers.find(({ mediaType }) => sbomTypes.some((type) => type === mediaType)) ?? layers[0]
      const blob = layer && (await findRepoBlob(db, repo.id, layer.digest))
      if (!blob) continue
      if (blob.size > maxSbomAnswer)
        throw tooLarge(digest, `the SBOM ${blob.digest} has more than ${maxSbomAnswer} bytes`)
      const bytes = await readBlob(call, repo, blob, maxSbomAnswer)
      if (bytes) return bytes
    }
  }
  return undefined
}

/** One image in a request: its own digest, or the digest of an index and an architecture. */
export type ImageName = { digest: string; architecture?: string | undefined }
export type ImagePackages = { digest: string; packages: (Package & { purl: string; originPurl: string })[] }

const maxNamed = 100
const maxImages = 1000
const maxPackages = 100_000

/**
 * Packages of the named images. If none is named, packages of all images of the repository. Images with unknown contents are left
 * out.
 */
export async function listPackages(call: Call, repoUid: string, names: readonly ImageName[]): Promise<ImagePackages[]> {
  if (names.length > maxNamed) throw invalid({ field: 'items', description: `must have at most ${maxNamed} images` })
  const wrong = names.findIndex(({ digest }) => !isDigest(digest))
  if (wrong >= 0) throw invalid({ field: `items[${wrong}]`, description: 'must have a digest' })
  const { db } = call.app
  const repo = await findRepoRow(db, { uid: repoUid })
  if (!repo) return []
  const digests = new Set<string>()
  for (const { digest, architecture } of names) {
    const variants = architecture === undefined ? undefined : await findVariants(call, repo, digest)
    const image = architecture === undefined ? digest : variants?.get(architecture)
    if (image) digests.add(image)
  }
  const wanted = names.length > 0 ? [...digests] : await listKnownImages(db, repo.id, maxImages + 1)
  if (wanted.length > maxImages) throw tooMany(`${maxImages} images`)

  const walk = walkOf(call)
  const found: ImagePackages[] = []
  let total = 0
  for (const { digest, state, packages: listHash, distribution } of await findContents(db, repo.id, wanted)) {
    if (state !== 'known') continue
    const packages = (await packagesOf(db, listHash, walk)).map((one) => {
      const origin = { ...one, name: one.origin, version: one.originVersion }
      return { ...one, purl: packageUrl(one, distribution.id), originPurl: packageUrl(origin, distribution.id) }
    })
    total += packages.length
    if (total > maxPackages) throw tooMany(`${maxPackages} packages`)
    found.push({ digest, packages })
  }
  return found.sort((one, other) => (one.digest < other.digest ? -1 : 1))
}

function walkOf({ signal }: Call): Walk {
  return new Walk({ steps: maxImages, bytes: 64 * 2 ** 20 }, signal, (limit) => tooMany(limit))
}

function tooMany(limit: string): AppError {
  return new AppError('RESOURCE_EXHAUSTED', `the list has more than ${limit}; request fewer images`, {
    reason: 'LIST_TOO_LONG',
  })
}
