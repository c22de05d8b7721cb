// The images that can be looked at one by one.
import type { Reader, Tx } from '#db/sql.ts'
import { type Counted, lockRepo } from '../blobs/blobs.store.ts'
import { type ManifestDocument, manifestTypes } from '../manifests/manifests.model.ts'
import { findManifest, hasManifest } from '../manifests/manifests.store.ts'
import { hasContents } from './image-contents.model.ts'
import { typesOf } from './image-contents.store.ts'
import { imagesOf } from './read-image.ts'

export type Scannable = { digest: string; mediaType: string }

/** Whether a manifest is an image of one platform that can be run, and neither an index nor some other artifact. */
export function isScannable({
  mediaType,
  artifactType,
}: Pick<ManifestDocument, 'mediaType' | 'artifactType'>): boolean {
  return manifestTypes[mediaType] === 'image' && hasContents(mediaType, artifactType)
}

/** The image itself, or those that an index lists; none for what the repo does not have. */
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
 * Those that the repo still has. It stays locked, so that none of them goes until the transaction ends; `undefined` when the
 * repo itself is gone.
 */
export async function stillIn(tx: Tx, repo: Counted, images: readonly Scannable[]): Promise<Scannable[] | undefined> {
  if (!(await lockRepo(tx, repo, 'alone'))) return undefined
  const found: Scannable[] = []
  for (const image of images) if (await hasManifest(tx, repo.id, image.digest)) found.push(image)
  return found
}
