// Images that can be scanned one by one.
import type { Reader, Tx } from '#db/sql.ts'
import { type Counted, lockRepo } from '../blobs/blobs.store.ts'
import { type ManifestDocument, manifestTypes } from '../manifests/manifests.model.ts'
import { findManifest, hasManifest } from '../manifests/manifests.store.ts'
import { hasContents } from './image-contents.model.ts'
import { typesOf } from './image-contents.store.ts'
import { imagesOf } from './read-image.ts'

export type Scannable = { digest: string; mediaType: string }

/** True if a manifest is an image of one platform that can be run, and neither an index nor another artifact. */
export function isScannable({
  mediaType,
  artifactType,
}: Pick<ManifestDocument, 'mediaType' | 'artifactType'>): boolean {
  return manifestTypes[mediaType] === 'image' && hasContents(mediaType, artifactType)
}

/** The image itself, or the images that an index lists. Empty if the repository does not have the digest. */
export async function scannableIn(reader: Reader, repo: number, digest: string): Promise<Scannable[]> {
  const manifest = await findManifest(reader, repo, digest)
  if (!manifest) return []
  const isIndex = manifestTypes[manifest.mediaType] === 'index'
  const found: Scannable[] = []
  for (const one of new Set(isIndex ? imagesOf(manifest) : [digest])) {
    const types = await typesOf(reader, repo, one)
    if (types && isScannable(types)) found.push({ digest: one, mediaType: types.mediaType })
  }
  return found
}

/**
 * The given images that the repository still has. Locks the repository, so that no image is deleted before the transaction ends.
 * Returns undefined if the repository was deleted.
 */
export async function stillIn(tx: Tx, repo: Counted, images: readonly Scannable[]): Promise<Scannable[] | undefined> {
  if (!(await lockRepo(tx, repo, 'alone'))) return undefined
  const found: Scannable[] = []
  for (const image of images) if (await hasManifest(tx, repo.id, image.digest)) found.push(image)
  return found
}
