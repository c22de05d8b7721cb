// Manifests of other registries: their types, their digests, and those that were fetched in place of a HEAD.
import { Newest } from '../caches/newest.ts'
import { algorithmOf, digestOf, isDigest } from '../digest.ts'
import { jsonProblem } from '../json/json-limits.ts'
import type { StreamAnswer } from '../net/outgoing-streams.ts'
import { UpstreamError } from './upstream-error.ts'

export type FetchedManifest = { content: Buffer; mediaType: string }

const indexType = 'application/vnd.oci.image.index.v1+json'
const imageType = 'application/vnd.oci.image.manifest.v1+json'
/** Types of manifests that clients pull. */
export const manifestTypes = [
  indexType,
  imageType,
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
]

/** Larger documents are not parsed for their type. */
const limits = { depth: 255, members: 100_000 }

/**
 * Media type of a manifest: its own `mediaType`, else the type that it was served as, else the one that its members show. Returns
 * the type that it was served as if none of these is the type of a manifest.
 */
function typeOf(content: Buffer, served: string): string {
  const declared = served.split(';', 1)[0]!.trim().toLowerCase()
  const document = membersOf(content)
  const own = typeof document?.mediaType === 'string' ? document.mediaType.toLowerCase() : ''
  if (manifestTypes.includes(own)) return own
  if (!document || own !== '' || manifestTypes.includes(declared)) return served
  if (Array.isArray(document.manifests)) return indexType
  return typeof document.config === 'object' && Array.isArray(document.layers) ? imageType : served
}

function membersOf(content: Buffer): Record<string, unknown> | undefined {
  if (jsonProblem(content, limits)) return undefined
  try {
    const document = JSON.parse(content.toString('utf8')) as unknown
    return typeof document === 'object' && document !== null ? (document as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

async function contentOf({ chunks }: StreamAnswer): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks))
}

/** The manifest of an answer to a GET by digest. Throws an UpstreamError where it has another digest. */
export async function readByDigest(answer: StreamAnswer, digest: string): Promise<FetchedManifest> {
  const content = await contentOf(answer)
  if (digestOf(algorithmOf(digest), content) !== digest) throw new UpstreamError('wrong-digest')
  return { content, mediaType: typeOf(content, String(answer.headers['content-type'] ?? '')) }
}

/** Reads the manifest of a GET by tag, with its digest. Throws an UpstreamError if it is no manifest. */
async function readByTag(answer: StreamAnswer): Promise<FetchedManifest & { digest: string }> {
  const content = await contentOf(answer)
  const mediaType = typeOf(content, String(answer.headers['content-type'] ?? ''))
  if (!manifestTypes.includes(mediaType.split(';', 1)[0]!.trim().toLowerCase())) throw new UpstreamError('malformed')
  const named = String(answer.headers['docker-content-digest'] ?? '')
  if (named !== '' && !isDigest(named)) throw new UpstreamError('malformed')
  const digest = digestOf(named === '' ? 'sha256' : algorithmOf(named), content)
  if (named !== '' && named !== digest) throw new UpstreamError('wrong-digest')
  return { content, mediaType, digest }
}

/** Statuses of a registry that does not answer HEAD. */
export const noHead = [405, 501]

/**
 * Digest in the answer to a HEAD, or the entity tag of an answer without one. Throws an UpstreamError if the digest is malformed.
 */
export function readHead({ status, headers }: StreamAnswer): { digest: string; etag: string } {
  if (noHead.includes(status)) return { digest: '', etag: '' }
  const digest = String(headers['docker-content-digest'] ?? '')
  if (digest !== '' && !isDigest(digest)) throw new UpstreamError('malformed')
  return { digest, etag: etagOf(headers.etag) }
}

/** A weak entity tag may stay the same while bytes change. */
const etagOf = (header: string | undefined): string =>
  header !== undefined && /^"[\x21\x23-\x7e]{1,512}"$/.test(header) ? header : ''

const maxKnown = 10_000
const maxKept = 32
const maxKeptBytes = 256 * 1024

/** Results of a GET for tags whose HEAD did not return a digest. */
export class HeadlessTags {
  readonly #known = new Newest<string, { digest: string; etag: string }>(maxKnown)
  readonly #kept = new Newest<string, FetchedManifest>(maxKept)

  /** Entity tag and digest of the content of a tag. If the entity tag is the same, the tag still points to that digest. */
  known(tag: string): { digest: string; etag: string } | undefined {
    return this.#known.get(tag)
  }

  /** The digest that the tag points to. `nameOf` names a digest for `take`. */
  async read(tag: string, answer: StreamAnswer, nameOf: (digest: string) => string): Promise<string> {
    const { digest, ...manifest } = await readByTag(answer)
    const etag = etagOf(answer.headers.etag)
    if (etag === '') this.#known.delete(tag)
    else this.#known.set(tag, { digest, etag })
    if (manifest.content.length <= maxKeptBytes) this.#kept.set(nameOf(digest), manifest)
    return digest
  }

  /** Returns a manifest that came with a tag, and forgets it: the next caller stores it. */
  take(name: string): FetchedManifest | undefined {
    const manifest = this.#kept.get(name)
    this.#kept.delete(name)
    return manifest
  }
}
