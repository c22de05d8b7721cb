import { manifestTypes } from '../manifests/manifests.model.ts'

// The numbers are stored and never change their meaning.
/** `unknown`: the image was read, but nothing in it lists the installed packages. */
export const contentsStates = { known: 1, unknown: 2, unreadable: 3 } as const
export type ContentsState = keyof typeof contentsStates

/**
 * `images`: joined contents of the images that an index lists. `languages` and `languagesOfImages`: an image or an index without
 * a package database, so only language packages are known.
 */
export const contentsSources = {
  ...{ none: 0, sbom: 1, layers: 2, images: 3, layersAndSbom: 4 },
  ...{ languages: 5, languagesOfImages: 6 },
} as const
export type ContentsSource = keyof typeof contentsSources

/** True if packages of the distribution are known. Only then can a comparison report a removed package. */
export const knowsDistribution = (source: ContentsSource): boolean =>
  source !== 'languages' && source !== 'languagesOfImages'

/**
 * Version of the code that reads images. Images that an earlier version has read are read again in the background. Version 0
 * found packages of distributions only. Version 1 added packages of languages. Version 2 added rpm, every entry of an SBOM, SBOMs
 * in envelopes, and coverage gaps for the rest. Version 3 applies the write-ahead log of rpm's SQLite database, and knows more
 * ecosystem names of OSV.
 */
export const readerVersion = 3

/** Path of unread content, a reason code, and a sentence. */
export type ContentsGap = { path: string; reason: string; message: string }

/** Contents found in the image or index of this digest. */
export type ContentsRecord = {
  digest: string
  state: ContentsState
  source: ContentsSource
  /** Hash of the list of packages. Empty unless the state is `known`. */
  packages: string
  distribution: { id: string; version: string }
  /** Coverage gaps. An index has the coverage gaps of all its images. */
  gaps: readonly ContentsGap[]
  /** Reason code and sentence if the state is `unreadable`. */
  reason: string
  message: string
}

/** Contents of an image during a period. An empty `fromTime` means no lower limit, and an empty `untilTime` means now. */
export type ContentsSpan = ContentsRecord & { fromTime: string; untilTime: string }

/** Config types of images that can be run. Manifests with another config are other artifacts. */
const imageConfigs: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
])

/** Artifact types of SBOMs that refer to an image. */
export const sbomTypes = ['application/spdx+json', 'text/spdx+json', 'application/vnd.cyclonedx+json'] as const

/** Media type of statements of builders and scanners, which may contain an SBOM. */
export const statementType = 'application/vnd.in-toto+json'

/**
 * Most statements in envelopes that are read for one image, the newest first. If there are more, the image has a coverage gap.
 */
export const maxEnvelopes = 100

/** Most SBOMs that are tried for one image, the newest first. */
export const maxSboms = 10

/** True if a manifest of these types describes an image or index, so that packages can be installed in it. */
export function hasContents(mediaType: string, artifactType: string): boolean {
  return manifestTypes[mediaType] === 'index' || imageConfigs.has(artifactType)
}
