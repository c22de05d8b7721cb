/** A manifest as it was pushed; its content never changes. */
export type Manifest = { digest: string; mediaType: string; content: Uint8Array }

/** What names a content in a manifest (image specification, "Descriptors"), as far as the registry has to know it. */
export type Descriptor = {
  mediaType: string
  digest: string
  /** In bytes, as the pusher wrote it. */
  size: number
  annotations: Readonly<Record<string, unknown>>
  /** Of the platform; undefined where the descriptor names none, empty where it is not a text. */
  architecture: string | undefined
  /** Operating system, architecture and variant with slashes; empty where the descriptor names none. */
  platform: string
}

/** The contents that a manifest lists: an image has a config and layers, an index has entries. */
export type Listed = { config: Descriptor | undefined; layers: readonly Descriptor[]; entries: readonly Descriptor[] }

/** What a manifest says, as far as the registry has to know it. */
export type ManifestDocument = {
  mediaType: string
  kind: 'image' | 'index'
  /** What referrers are filtered by: the artifact's own type, else that of an image's config. */
  artifactType: string
  annotations: Record<string, string>
  /** The digest of the manifest that this one is about; empty without one. */
  subject: string
  /** The content that must be there for the manifest to be of use. */
  blobs: readonly string[]
  manifests: readonly string[]
  /** Entries of an index that are no manifests by their media types, such as layers of a build cache: blobs satisfy them too. */
  listedBlobs: readonly string[]
  /** The images of an index that others of its entries make statements about, as builders' attestations do. */
  attested: readonly string[]
  /** The size in bytes that the manifest says each of these has. */
  sizes: ReadonlyMap<string, number>
  listed: Listed
}

export const dockerImageType = 'application/vnd.docker.distribution.manifest.v2+json'

/** What manifests may be, and whether they list other manifests (image specification, and Docker's version 2). */
export const manifestTypes: Readonly<Record<string, 'image' | 'index'>> = {
  'application/vnd.oci.image.manifest.v1+json': 'image',
  'application/vnd.oci.image.index.v1+json': 'index',
  [dockerImageType]: 'image',
  'application/vnd.docker.distribution.manifest.list.v2+json': 'index',
}

export const indexTypes = Object.keys(manifestTypes).filter((type) => manifestTypes[type] === 'index')

export const indexType = 'application/vnd.oci.image.index.v1+json'

/** Larger ones are refused (distribution specification, "Pushing manifests"). */
export const maxManifestBytes = 4 * 1024 * 1024

/** How many layers an image may have, and how many manifests an index. */
export const maxLayers = 1000
export const maxListedManifests = 2000

/** An index may list indexes, and these only images. */
export const maxIndexLevels = 2

/** How many indexes may list an index already when it is pushed. */
export const maxIndexesWith = 1000

/** How many tags one push may set. */
export const maxTagsAtOnce = 100

/** One of the manifests that name another as their subject. */
export type Referrer = {
  digest: string
  mediaType: string
  size: number
  artifactType: string
  annotations: Record<string, string>
}
