// Summaries of images, repositories and groups.

/** Most images, and most groups and repositories, in one request. */
export const mostImages = 50
export const mostScopes = 100

/** Most platforms, tags and signatures of one image in a summary. */
export const mostPlatforms = 50
export const mostTags = 10
export const mostSignatures = 100

/** Days over which pulls are counted. */
export const pullDays = 30

/** Largest manifest that is read for a summary. The platforms of a larger one are left out. */
export const maxManifestBytes = 256 * 1024

/** A stored manifest without its content. */
export type StoredImage = {
  digest: string
  mediaType: string
  artifactType: string
  size: number
  createTime: string
}

export type SeverityCounts = { critical: number; high: number; medium: number; low: number; unknown: number }

/** Artifact types of signatures. A bundle is a signature unless its annotations say that it is an attestation. */
export const signatureTypes = [
  'application/vnd.dev.cosign.artifact.sig.v1+json',
  'application/vnd.cncf.notary.signature',
  'application/vnd.dev.sigstore.bundle.v0.3+json',
]

const predicate = 'dev.sigstore.bundle.predicateType'
const content = 'dev.sigstore.bundle.content'

/** True if a referrer with one of `signatureTypes` is a signature, and not an attestation in a bundle. */
export function isSignature({ artifactType, annotations }: { artifactType: string; annotations: string }): boolean {
  if (!artifactType.includes('sigstore.bundle')) return true
  const members = JSON.parse(annotations) as Record<string, string>
  const type = members[predicate] ?? ''
  return members[content] === 'message-signature' || type.includes('cosign/sign')
}

/** Tags whose images an overview examines, and images that it checks against policies. */
export const tagsOfOverview = 500
export const imagesOfDryRun = 50

/** Number of tag updates in one response: at most, and if the request has none. */
export const mostUpdates = 50
export const usualUpdates = 10

/** Time after which an overview stops and is incomplete, in milliseconds. */
export const overviewMs = 2000

/** Most reasons and images that an overview lists, and most examples for one policy. */
export const mostListed = 5
export const mostExamples = 3

/** Severities from the highest to the lowest. An unknown severity can be any severity, so it ranks above low. */
export const severityNames = ['critical', 'high', 'medium', 'unknown', 'low'] as const
