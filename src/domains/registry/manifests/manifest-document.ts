// Parses the parts of a manifest that the registry needs.
import { isDigest } from '#lib/digest.ts'
import { isObject, ManifestLimit, ManifestProblem, type Members, membersOf, newMembersOf } from './manifest-json.ts'
import {
  type Descriptor,
  dockerImageType,
  type Listed,
  type Manifest,
  type ManifestDocument,
  manifestTypes,
  maxLayers,
  maxListedManifests,
} from './manifests.model.ts'

export { ManifestLimit, ManifestProblem } from './manifest-json.ts'

/**
 * Media types of layers that clients download from other URLs. Such layers are not pushed (image specification,
 * "Non-Distributable Layers").
 */
export const foreignLayerTypes = /\.nondistributable\.|^application\/vnd\.docker\.image\.rootfs\.foreign\./

/** Reads a new manifest as `readManifest` does. Refuses members with another spelling, which earlier releases accepted. */
export function readNewManifest(content: Uint8Array, contentType: string | undefined): ManifestDocument {
  const document = newMembersOf(content)
  const odd = oddMember(document)
  if (odd !== undefined) {
    const name = membersByFold.get(foldName(odd))!
    throw new ManifestProblem(`the member ${JSON.stringify(odd.slice(0, 64))} must be spelled ${name}`)
  }
  return checkDocument(document, contentType)
}

/** Reads and checks a manifest; `contentType` is the media type from the client. Throws ManifestProblem. */
export function readManifest(content: Uint8Array, contentType: string | undefined): ManifestDocument {
  return checkDocument(membersOf(content), contentType)
}

function checkDocument(document: Members, contentType: string | undefined): ManifestDocument {
  const declared = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  const own = readText(document.mediaType, 'mediaType')
  if (own !== '' && declared !== '' && own.toLowerCase() !== declared) {
    throw new ManifestProblem(
      `the Content-Type header is ${declared.slice(0, 200)}, but the mediaType of the manifest is ${own}`,
    )
  }
  const mediaType = declared || own
  if (mediaType === '') throw new ManifestProblem('a Content-Type header or a mediaType in the manifest is required')
  const kind = Object.hasOwn(manifestTypes, mediaType) ? manifestTypes[mediaType]! : undefined
  if (!kind) throw new ManifestProblem(`manifests of the media type ${mediaType.slice(0, 200)} are not supported`, true)
  if (document.schemaVersion !== 2) throw new ManifestProblem('schemaVersion must be 2')
  checkKind(document, kind)

  const listed = readLists(document, kind)
  const { config, layers, entries } = listed
  const here = [...layers, ...entries].filter(({ mediaType: type }) => !foreignLayerTypes.test(type))
  const sizes = sizesOf(config ? [config, ...here] : here)
  const needed = unique(here.map(({ digest }) => digest))
  return {
    mediaType,
    kind,
    artifactType: readText(document.artifactType, 'artifactType') || (config?.mediaType ?? ''),
    annotations: annotationsOf(document.annotations),
    subject: document.subject === undefined ? '' : readDescriptor(document.subject, 'subject').digest,
    blobs: config ? unique([config.digest, ...needed]) : [],
    manifests: kind === 'index' ? needed : [],
    listedBlobs: unique(entries.filter(isListedBlob).map(({ digest }) => digest)),
    attested: unique(entries.flatMap((entry) => attestedBy(entry) ?? [])),
    sizes,
    listed,
  }
}

/**
 * Digests that an index lists for the given platforms. A platform has an operating system, an architecture and an optional
 * variant: `linux/arm64` includes every variant. Entries without a platform are included, and so are attestations of included
 * images. `lacksAll` is true if the index has images for platforms, but for none of these.
 */
export function listedFor(
  entries: readonly Descriptor[],
  platforms: readonly string[],
): { digests: string[]; lacksAll: boolean } {
  const isWanted = ({ platform }: Descriptor): boolean =>
    platform === '' || platforms.some((one) => platform === one || platform.startsWith(`${one}/`))
  const images = entries.filter((one) => attestedBy(one) === undefined)
  const wanted = images.filter(isWanted)
  const digests = new Set(wanted.map(({ digest }) => digest))
  return {
    digests: unique(entries.filter((one) => digests.has(attestedBy(one) ?? one.digest)).map(({ digest }) => digest)),
    lacksAll: images.some(({ platform }) => platform !== '') && !wanted.some(({ platform }) => platform !== ''),
  }
}

/** Default variants of architectures, as in containerd. */
const usualVariants: Readonly<Record<string, string>> = { amd64: 'v1', arm: 'v7', arm64: 'v8' }

/** Platform as text. Empty if the descriptor has none, or if the platform is declared as unknown. */
function platformOf(platform: unknown): string {
  if (!isObject(platform)) return ''
  const { os, architecture, variant } = platform
  if (typeof os !== 'string' || typeof architecture !== 'string' || os === 'unknown') return ''
  const named = typeof variant === 'string' && variant !== '' ? variant : usualVariants[architecture]
  return [os, architecture, ...(named === undefined ? [] : [named])].join('/')
}

/** True if an entry of an index is a blob. BuildKit lists the layers and the config of a build cache in an index. */
const isListedBlob = ({ mediaType }: Descriptor): boolean =>
  !Object.hasOwn(manifestTypes, mediaType.toLowerCase()) && !foreignLayerTypes.test(mediaType)

/** Digest of the image that an attestation entry of an index is about, from the annotations that BuildKit introduced. */
export function attestedBy({ annotations }: Descriptor): string | undefined {
  const about = annotations['vnd.docker.reference.digest']
  const isAttestation = annotations['vnd.docker.reference.type'] === 'attestation-manifest'
  return isAttestation && typeof about === 'string' && isDigest(about) ? about : undefined
}

function sizesOf(descriptors: readonly Descriptor[]): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const { digest, size } of descriptors) {
    if ((sizes.get(digest) ?? size) !== size) throw new ManifestProblem(`${digest} is listed with two different sizes`)
    sizes.set(digest, size)
  }
  return sizes
}

/**
 * Content that a stored manifest lists. The manifest was checked when it was pushed. Throws ManifestProblem only for manifests
 * that no push accepts.
 */
export function readListed({ content, mediaType }: Pick<Manifest, 'content' | 'mediaType'>): Listed {
  return readLists(membersOf(content), manifestTypes[mediaType] ?? 'image')
}

/** Media types of layers that runtimes unpack into a file system or run. */
const runnable = /image\.(?:layer|rootfs)|[.+]tar\b|squashfs|erofs|\bdisk\b|\bwasm\b/i

/**
 * Media types of image configs. Docker runs images whose config type begins with one of `imageConfigs`. It also accepts the old
 * types, which registries used in the past.
 */
const imageConfigs = ['application/vnd.oci.image.', 'application/vnd.docker.']
const oldImageConfigs: ReadonlySet<string> = new Set(['application/octet-stream', 'application/json', 'text/html'])

function isImageConfig({ mediaType }: Descriptor): boolean {
  const type = mediaType.trim().toLowerCase()
  return oldImageConfigs.has(type) || imageConfigs.some((one) => type.startsWith(one))
}

/** Media types of layers of signatures, attestations and SBOMs, possibly with a version. */
const stated = [
  'application/vnd.dev.cosign.simplesigning',
  'application/vnd.dev.sigstore.bundle',
  'application/vnd.dsse.envelope',
  'application/vnd.in-toto',
  'application/vnd.cyclonedx',
  'application/vnd.openvex',
  'application/vnd.syft',
  'application/spdx',
  'text/spdx',
  'application/csaf',
  // Notation.
  'application/jose',
  'application/cose',
]

const isStated = (type: string): boolean =>
  stated.some((one) => type === one || (type.startsWith(one) && '.+;'.includes(type[one.length]!)))

/**
 * True if a manifest can only be a statement about another manifest, such as a signature or an SBOM, and cannot be run. Cosign
 * and BuildKit store statements as manifests with the config of an image. Some runtimes unpack the layers of such a manifest,
 * whatever their type. Podman does so for Docker manifests with any config.
 */
export function isStatement(manifest: Pick<Manifest, 'content' | 'mediaType'>): boolean {
  const document = membersOf(manifest.content)
  const { config, layers } = readLists(document, manifestTypes[manifest.mediaType] ?? 'image')
  if (!config || layers.some(({ mediaType }) => runnable.test(mediaType)) || oddMember(document)) return false
  const isImage = manifest.mediaType === dockerImageType || isImageConfig(config)
  return !isImage || (layers.length > 0 && layers.every(({ mediaType }) => isStated(mediaType)))
}

const membersByFold = new Map(
  [
    ...['schemaVersion', 'mediaType', 'artifactType', 'config', 'layers', 'manifests', 'subject', 'annotations'],
    ...['digest', 'size', 'urls', 'data', 'platform', 'os', 'architecture', 'variant', 'fsLayers'],
  ].map((name) => [foldName(name), name]),
)

/**
 * Folds a name as Go's `encoding/json` does. Go reads the member `Layers` as `layers`, and uses the last one if a document has
 * both.
 */
function foldName(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/** Name of a member that only some JSON readers recognize. Readers would disagree about the content of such a manifest. */
function oddMember(document: Members): string | undefined {
  const { config, subject, layers, manifests } = document
  for (const one of [document, ...[config, subject, layers, manifests].flat()]) {
    if (!isObject(one)) continue
    const platform = one === document || !isObject(one.platform) ? {} : one.platform
    const odd = Object.keys(one).find(isOdd) ?? Object.keys(platform).find(isOdd)
    if (odd !== undefined) return odd
  }
  return undefined
}

const knownMembers = new Set(membersByFold.values())

function isOdd(name: string): boolean {
  // Nearly all names are known, and folding a name is slower than a look-up.
  return !knownMembers.has(name) && membersByFold.has(foldName(name))
}

function readLists(document: Members, kind: 'image' | 'index'): Listed {
  return kind === 'image'
    ? {
        config: readDescriptor(document.config, 'config'),
        layers: list(document.layers, 'layers', maxLayers),
        entries: [],
      }
    : { config: undefined, layers: [], entries: list(document.manifests, 'manifests', maxListedManifests) }
}

/** Refuses a document that is an image to one reader and an index to another (CVE-2021-41190). */
function checkKind(document: Members, kind: 'image' | 'index'): void {
  const foreign = kind === 'image' ? ['manifests'] : ['config', 'layers']
  const found = [...foreign, 'fsLayers'].find((name) => document[name] !== undefined)
  if (found) throw new ManifestProblem(`an ${kind} cannot have the member ${found}`)
}

function list(value: unknown, name: string, most: number): Descriptor[] {
  if (!Array.isArray(value)) throw new ManifestProblem(`${name} must be a list`)
  if (value.length > most) throw new ManifestLimit(`${name} must have at most ${most} entries`)
  return value.map((entry, i) => readDescriptor(entry, name, i))
}

/** Reads a descriptor. `index` is its position in the list, for the name in errors only. */
function readDescriptor(value: unknown, list: string, index?: number): Descriptor {
  const name = () => (index === undefined ? list : `${list}[${index}]`)
  if (!isObject(value)) throw new ManifestProblem(`${name()} must be a descriptor`)
  const { digest, size, mediaType = '', annotations, platform } = value
  if (!isText(mediaType)) throw createTextProblem(`${name()}.mediaType`)
  if (mediaType === '') throw new ManifestProblem(`${name()}.mediaType is required`)
  if (typeof digest !== 'string' || !isDigest(digest)) {
    throw new ManifestProblem(`${name()}.digest must be a sha256 or sha512 digest`)
  }
  if (!Number.isSafeInteger(size) || (size as number) < 0) {
    throw new ManifestProblem(`${name()}.size must be a whole number of bytes`)
  }
  return {
    digest,
    mediaType,
    size: size as number,
    annotations: isObject(annotations) ? annotations : {},
    architecture: architectureOf(platform),
    platform: platformOf(platform),
  }
}

function architectureOf(platform: unknown): string | undefined {
  const architecture = isObject(platform) ? platform.architecture : undefined
  return architecture === undefined || typeof architecture === 'string' ? architecture : ''
}

function annotationsOf(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {}
  if (!isObject(value) || Object.keys(value).some((name) => typeof value[name] !== 'string')) {
    throw new ManifestProblem('annotations must be an object with strings as values')
  }
  return value as Record<string, string>
}

function readText(value: unknown, name: string): string {
  if (value === undefined) return ''
  if (!isText(value)) throw createTextProblem(name)
  return value
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 255 && !value.includes('\0')
}

function createTextProblem(name: string): ManifestProblem {
  return new ManifestProblem(`${name} must be a string of at most 255 characters`)
}

function unique(digests: readonly string[]): string[] {
  return [...new Set(digests)]
}
