/** A manifest as it was pushed. Its content never changes. */
export type Manifest = { digest: string; mediaType: string; content: Uint8Array }

/** Descriptor of content in a manifest (image specification, "Descriptors"). It has only the members that the registry needs. */
export type Descriptor = {
  mediaType: string
  digest: string
  /** Size in bytes, as the client wrote it. */
  size: number
  annotations: Readonly<Record<string, unknown>>
  /** Architecture of the platform. Undefined if the descriptor has none, and empty if it is not a string. */
  architecture: string | undefined
  /** Operating system, architecture and variant, separated by slashes. Empty if the descriptor has none. */
  platform: string
}

/** Content that a manifest lists: an image has a config and layers, an index has entries. */
export type Listed = { config: Descriptor | undefined; layers: readonly Descriptor[]; entries: readonly Descriptor[] }

/** Parts of a parsed manifest that the registry needs. */
export type ManifestDocument = {
  mediaType: string
  kind: 'image' | 'index'
  /** Type for filtering referrers: the artifact type, or else the media type of the config. */
  artifactType: string
  annotations: Record<string, string>
  /** Digest of the subject. Empty if the manifest has no subject. */
  subject: string
  /** Content that must exist for the manifest to be usable. */
  blobs: readonly string[]
  manifests: readonly string[]
  /**
   * Entries of an index whose media type is not that of a manifest, such as layers of a build cache. Either a manifest or a blob
   * can be pushed for such an entry.
   */
  listedBlobs: readonly string[]
  /** Images of an index that attestations in the same index are about. */
  attested: readonly string[]
  /** Size in bytes of each content, according to the manifest. */
  sizes: ReadonlyMap<string, number>
  listed: Listed
}

export const dockerImageType = 'application/vnd.docker.distribution.manifest.v2+json'

/** Media types of manifests, and whether they are an image or an index (image specification, and Docker's version 2). */
export const manifestTypes: Readonly<Record<string, 'image' | 'index'>> = {
  'application/vnd.oci.image.manifest.v1+json': 'image',
  'application/vnd.oci.image.index.v1+json': 'index',
  [dockerImageType]: 'image',
  'application/vnd.docker.distribution.manifest.list.v2+json': 'index',
}

export const indexTypes = Object.keys(manifestTypes).filter((type) => manifestTypes[type] === 'index')

export const indexType = 'application/vnd.oci.image.index.v1+json'

/** Larger manifests are refused (distribution specification, "Pushing manifests"). */
export const maxManifestBytes = 4 * 1024 * 1024

/** Most layers of an image, and most manifests in an index. */
export const maxLayers = 1000
export const maxListedManifests = 2000

/** Most levels of indexes. An index may list indexes, and the listed indexes may list only images. */
export const maxIndexLevels = 2

/** Most existing indexes that may list a new index. */
export const maxIndexesWith = 1000

/** Most tags in one push. */
export const maxTagsAtOnce = 100

/** Manifest whose subject is another manifest. */
export type Referrer = {
  digest: string
  mediaType: string
  size: number
  artifactType: string
  annotations: Record<string, string>
}
