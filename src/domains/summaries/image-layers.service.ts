// Layers of an image with the build steps that created them, and its configuration.
import type { Call } from '#app.ts'
import { type ImageDetails, imageDetails } from '#domains/registry/images/image-details.service.ts'
import { imageType } from '#domains/registry/images/images.model.ts'
import { getArchitectures } from '#domains/registry/images/images.service.ts'
import { notFound } from '#lib/errors.ts'

export type ImageLayers = ImageDetails & { architecture: string; architectures: string[] }

/** Without an architecture, chooses amd64, or else the first one of the index. */
export async function getImageLayers(
  call: Call,
  repoUid: string,
  digest: string,
  architecture: string,
): Promise<ImageLayers> {
  const architectures = await getArchitectures(call, repoUid, digest)
  const usual = architectures.includes('amd64') ? 'amd64' : architectures[0]
  const wanted = architecture === '' ? usual : architecture
  if (wanted === undefined) throw notFound(imageType, digest)
  return { ...(await imageDetails(call, repoUid, digest, wanted)), architecture: wanted, architectures }
}
