import { manifestTypes } from '../manifests/manifests.model.ts'

// The numbers are stored; they keep their meaning for good.
/** `unknown`: it was read, and nothing in it says what is installed. */
export const contentsStates = { known: 1, unknown: 2, unreadable: 3 } as const
export type ContentsState = keyof typeof contentsStates

/** `images`: what the images of an index contain together. */
export const contentsSources = { none: 0, sbom: 1, layers: 2, images: 3 } as const
export type ContentsSource = keyof typeof contentsSources

/** What was found in the image or index of this digest. */
export type ContentsRecord = {
  digest: string
  state: ContentsState
  source: ContentsSource
  /** The hash of its list of packages; empty unless the state is known. */
  packages: string
  distribution: { id: string; version: string }
  /** Why it is unreadable, in a word and in a sentence. */
  reason: string
  message: string
}

/** What a config must be for the manifest to be an image that can be run, and not some other artifact. */
const imageConfigs: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
])

/** What an SBOM that refers to an image calls itself. */
export const sbomTypes = ['application/spdx+json', 'text/spdx+json', 'application/vnd.cyclonedx+json'] as const

/** How many SBOMs of one image are tried, the newest first. */
export const maxSboms = 10

/** Whether something can be installed in what a manifest of these types describes. */
export function hasContents(mediaType: string, artifactType: string): boolean {
  return manifestTypes[mediaType] === 'index' || imageConfigs.has(artifactType)
}
