// What a manifest says, as far as the registry has to know it.
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

/** Such layers stay where their URLs say, and are not pushed (image specification, "Non-Distributable Layers"). */
export const staysElsewhere = /\.nondistributable\.|^application\/vnd\.docker\.image\.rootfs\.foreign\./

/** As `readManifest`, of what comes from outside, in which no member may be spelt otherwise: earlier servers took that. */
export function readNewManifest(content: Uint8Array, contentType: string | undefined): ManifestDocument {
  const document = newMembersOf(content)
  const odd = oddMember(document)
  if (odd !== undefined) {
    const name = membersByFold.get(folded(odd))!
    throw new ManifestProblem(`the member ${JSON.stringify(odd.slice(0, 64))} must be spelt ${name}`)
  }
  return checked(document, contentType)
}

/** Reads and checks a manifest; `contentType` is what the client calls it. Throws ManifestProblem. */
export function readManifest(content: Uint8Array, contentType: string | undefined): ManifestDocument {
  return checked(membersOf(content), contentType)
}

function checked(document: Members, contentType: string | undefined): ManifestDocument {
  const declared = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  const own = text(document.mediaType, 'mediaType')
  if (own !== '' && declared !== '' && own.toLowerCase() !== declared) {
    throw new ManifestProblem(`the content type is ${declared.slice(0, 200)}, and the manifest says that it is ${own}`)
  }
  const mediaType = declared || own
  if (mediaType === '') throw new ManifestProblem('a content type is required')
  const kind = Object.hasOwn(manifestTypes, mediaType) ? manifestTypes[mediaType]! : undefined
  if (!kind) throw new ManifestProblem(`manifests of the type ${mediaType.slice(0, 200)} are not supported`, true)
  if (document.schemaVersion !== 2) throw new ManifestProblem('schemaVersion must be 2')
  checkKind(document, kind)

  const listed = listedBy(document, kind)
  const { config, layers, entries } = listed
  const here = [...layers, ...entries].filter(({ mediaType: type }) => !staysElsewhere.test(type))
  const sizes = sizesOf(config ? [config, ...here] : here)
  const needed = unique(here.map(({ digest }) => digest))
  return {
    mediaType,
    kind,
    artifactType: text(document.artifactType, 'artifactType') || (config?.mediaType ?? ''),
    annotations: annotationsOf(document.annotations),
    subject: document.subject === undefined ? '' : descriptor(document.subject, 'subject').digest,
    blobs: config ? unique([config.digest, ...needed]) : [],
    manifests: kind === 'index' ? needed : [],
    listedBlobs: unique(entries.filter(isListedBlob).map(({ digest }) => digest)),
    attested: unique(entries.flatMap((entry) => attestedBy(entry) ?? [])),
    sizes,
    listed,
  }
}

/**
 * What an index lists but for the images of other platforms than these, each an operating system, an architecture and perhaps
 * a variant: `linux/arm64` is any variant of it. What names no platform is listed, and of attestations those about an image
 * that is; `lacksAll` where it has images of platforms, and none of these.
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

/** What an architecture without a variant is, as containerd has it. */
const usualVariants: Readonly<Record<string, string>> = { amd64: 'v1', arm: 'v7', arm64: 'v8' }

/** Empty for none, and for what says that it has none. */
function platformOf(platform: unknown): string {
  if (!isObject(platform)) return ''
  const { os, architecture, variant } = platform
  if (typeof os !== 'string' || typeof architecture !== 'string' || os === 'unknown') return ''
  const named = typeof variant === 'string' && variant !== '' ? variant : usualVariants[architecture]
  return [os, architecture, ...(named === undefined ? [] : [named])].join('/')
}

/** BuildKit lists the layers and the config of a cache in an index. */
const isListedBlob = ({ mediaType }: Descriptor): boolean =>
  !Object.hasOwn(manifestTypes, mediaType.toLowerCase()) && !staysElsewhere.test(mediaType)

/** The image that an entry of an index makes statements about, in the annotations that BuildKit began with. */
export function attestedBy({ annotations }: Descriptor): string | undefined {
  const about = annotations['vnd.docker.reference.digest']
  const isAttestation = annotations['vnd.docker.reference.type'] === 'attestation-manifest'
  return isAttestation && typeof about === 'string' && isDigest(about) ? about : undefined
}

function sizesOf(descriptors: readonly Descriptor[]): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const { digest, size } of descriptors) {
    if ((sizes.get(digest) ?? size) !== size) throw new ManifestProblem(`${digest} is listed with two sizes`)
    sizes.set(digest, size)
  }
  return sizes
}

/** What a manifest lists that was checked when it was pushed. Throws ManifestProblem only for what no push has taken. */
export function readListed({ content, mediaType }: Pick<Manifest, 'content' | 'mediaType'>): Listed {
  return listedBy(membersOf(content), manifestTypes[mediaType] ?? 'image')
}

/** What layers are called that a runtime makes a file system of, or runs, whoever defined them. */
const runnable = /image\.(?:layer|rootfs)|[.+]tar\b|squashfs|erofs|\bdisk\b|\bwasm\b/i

/** Configs of images. Docker runs what has one that begins so, and of the others as well, since registries once called them so. */
const imageConfigs = ['application/vnd.oci.image.', 'application/vnd.docker.']
const oldImageConfigs: ReadonlySet<string> = new Set(['application/octet-stream', 'application/json', 'text/html'])

function isImageConfig({ mediaType }: Descriptor): boolean {
  const type = mediaType.trim().toLowerCase()
  return oldImageConfigs.has(type) || imageConfigs.some((one) => type.startsWith(one))
}

/** What signatures, attestations and SBOMs call their layers, perhaps with a version. */
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
  // Of Notation.
  'application/jose',
  'application/cose',
]

const isStated = (type: string): boolean =>
  stated.some((one) => type === one || (type.startsWith(one) && '.+;'.includes(type[one.length]!)))

/**
 * Whether a manifest can only be about another one, as a signature or an SBOM is: nothing could be run of it. Cosign and BuildKit
 * keep these under the config of an image, where some runtimes unpack layers of any type. Podman does so in a manifest of
 * Docker's whatever its config is.
 */
export function isStatement(manifest: Pick<Manifest, 'content' | 'mediaType'>): boolean {
  const document = membersOf(manifest.content)
  const { config, layers } = listedBy(document, manifestTypes[manifest.mediaType] ?? 'image')
  if (!config || layers.some(({ mediaType }) => runnable.test(mediaType)) || oddMember(document)) return false
  const isImage = manifest.mediaType === dockerImageType || isImageConfig(config)
  return !isImage || (layers.length > 0 && layers.every(({ mediaType }) => isStated(mediaType)))
}

const membersByFold = new Map(
  [
    ...['schemaVersion', 'mediaType', 'artifactType', 'config', 'layers', 'manifests', 'subject', 'annotations'],
    ...['digest', 'size', 'urls', 'data', 'platform', 'os', 'architecture', 'variant', 'fsLayers'],
  ].map((name) => [folded(name), name]),
)

/** As Go's `encoding/json` compares names: it takes `Layers` for `layers`, and the last of both counts. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/** A member that only some readers take for one that means something: they would disagree on what was pushed. */
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
  // Nearly all names are these, and folding one costs more than finding it.
  return !knownMembers.has(name) && membersByFold.has(folded(name))
}

function listedBy(document: Members, kind: 'image' | 'index'): Listed {
  return kind === 'image'
    ? { config: descriptor(document.config, 'config'), layers: list(document.layers, 'layers', maxLayers), entries: [] }
    : { config: undefined, layers: [], entries: list(document.manifests, 'manifests', maxListedManifests) }
}

/** A document that is an image to one reader and an index to another is refused (CVE-2021-41190). */
function checkKind(document: Members, kind: 'image' | 'index'): void {
  const foreign = kind === 'image' ? ['manifests'] : ['config', 'layers']
  const found = [...foreign, 'fsLayers'].find((name) => document[name] !== undefined)
  if (found) throw new ManifestProblem(`an ${kind} cannot have ${found}`)
}

function list(value: unknown, name: string, most: number): Descriptor[] {
  if (!Array.isArray(value)) throw new ManifestProblem(`${name} must be a list`)
  if (value.length > most) throw new ManifestLimit(`${name} must hold at most ${most} entries`)
  return value.map((entry, i) => descriptor(entry, name, i))
}

/** `index`: its place in the list of that name. The name is put together only for an error. */
function descriptor(value: unknown, list: string, index?: number): Descriptor {
  const name = () => (index === undefined ? list : `${list}[${index}]`)
  if (!isObject(value)) throw new ManifestProblem(`${name()} must be a descriptor`)
  const { digest, size, mediaType = '', annotations, platform } = value
  if (!isText(mediaType)) throw notText(`${name()}.mediaType`)
  if (mediaType === '') throw new ManifestProblem(`${name()}.mediaType is required`)
  if (typeof digest !== 'string' || !isDigest(digest)) {
    throw new ManifestProblem(`${name()}.digest must be a sha256 or sha512 digest`)
  }
  if (!Number.isSafeInteger(size) || (size as number) < 0) {
    throw new ManifestProblem(`${name()}.size must be a number of bytes`)
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
    throw new ManifestProblem('annotations must be texts by their names')
  }
  return value as Record<string, string>
}

function text(value: unknown, name: string): string {
  if (value === undefined) return ''
  if (!isText(value)) throw notText(name)
  return value
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 255 && !value.includes('\0')
}

function notText(name: string): ManifestProblem {
  return new ManifestProblem(`${name} must be a text of at most 255 characters`)
}

function unique(digests: readonly string[]): string[] {
  return [...new Set(digests)]
}
