import { manifestTypes } from '../manifests/manifests.model.ts'

// The numbers are stored; they keep their meaning for good.
/** `unknown`: it was read, and nothing in it says what is installed. */
export const contentsStates = { known: 1, unknown: 2, unreadable: 3 } as const
export type ContentsState = keyof typeof contentsStates

/**
 * `images`: what the images of an index contain together. The last two are an image and an index of which nothing says which
 * packages of a distribution there are, but some of languages are known.
 */
export const contentsSources = {
  ...{ none: 0, sbom: 1, layers: 2, images: 3, layersAndSbom: 4 },
  ...{ languages: 5, languagesOfImages: 6 },
} as const
export type ContentsSource = keyof typeof contentsSources

/** Whether a comparison with it can tell that a package of a distribution has gone. */
export const knowsDistribution = (source: ContentsSource): boolean =>
  source !== 'languages' && source !== 'languagesOfImages'

/**
 * Which reader we are: what an earlier one has read is read again in the background. 0 knew packages of distributions only,
 * 1 knows those of languages as well, 2 those of rpm, every entry of an SBOM, SBOMs in envelopes, and gaps for the rest.
 */
export const readerVersion = 2

/** Where what could not be read is, a word for why, and a sentence. */
export type ContentsGap = { path: string; reason: string; message: string }

/** What was found in the image or index of this digest. */
export type ContentsRecord = {
  digest: string
  state: ContentsState
  source: ContentsSource
  /** The hash of its list of packages; empty unless the state is known. */
  packages: string
  distribution: { id: string; version: string }
  /** What of it could not be read; of an index of all its images. */
  gaps: readonly ContentsGap[]
  /** Why it is unreadable, in a word and in a sentence. */
  reason: string
  message: string
}

/** What it was known to contain, from one moment to another: empty is since ever, and until now. */
export type ContentsSpan = ContentsRecord & { fromTime: string; untilTime: string }

/** What a config must be for the manifest to be an image that can be run, and not some other artifact. */
const imageConfigs: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
])

/** What an SBOM that refers to an image calls itself. */
export const sbomTypes = ['application/spdx+json', 'text/spdx+json', 'application/vnd.cyclonedx+json'] as const

/** What a statement of a builder or a scanner calls itself; what it states may be an SBOM. */
export const statementType = 'application/vnd.in-toto+json'

/** How many statements in envelopes are looked at of one image, the newest first; the others are a coverage gap. */
export const maxEnvelopes = 100

/** How many SBOMs of one image are tried, the newest first. */
export const maxSboms = 10

/** Whether something can be installed in what a manifest of these types describes. */
export function hasContents(mediaType: string, artifactType: string): boolean {
  return manifestTypes[mediaType] === 'index' || imageConfigs.has(artifactType)
}
