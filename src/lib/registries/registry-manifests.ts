// Manifests of other registries: their media types and digests. Also caches manifests that were fetched because HEAD returned no
// digest.
import { Newest } from '../caches/newest.ts'
import { algorithmOf, digestOf, isDigest } from '../digest.ts'
import { jsonProblem } from '../json/json-limits.ts'
import type { StreamAnswer } from '../net/outgoing-streams.ts'
import { UpstreamError } from './upstream-error.ts'

export type FetchedManifest = { content: Buffer; mediaType: string }

const indexType = 'application/vnd.oci.image.index.v1+json'
const imageType = 'application/vnd.oci.image.manifest.v1+json'
/** Media types of images and image indexes. */
export const manifestTypes = [
  indexType,
  imageType,
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
]

/** Limits for reading the media type from a manifest. A manifest above them is not parsed. */
const limits = { depth: 255, members: 100_000 }

/**
 * Media type of a manifest. It is the manifest's own `mediaType`, else the Content-Type of the response, else a guess from its
 * members. If none of these is a known type, returns the Content-Type.
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

/** Reads the manifest in the response to a GET by digest. Throws an UpstreamError if the content has another digest. */
export async function readByDigest(answer: StreamAnswer, digest: string): Promise<FetchedManifest> {
  const content = await contentOf(answer)
  if (digestOf(algorithmOf(digest), content) !== digest) throw new UpstreamError('wrong-digest')
  return { content, mediaType: typeOf(content, String(answer.headers['content-type'] ?? '')) }
}

/**
 * Reads the manifest in the response to a GET by tag, and computes its digest. Throws an UpstreamError if the content is not a
 * manifest.
 */
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

/** Statuses of registries that do not support HEAD. */
export const noHead = [405, 501]

/**
 * Reads the digest and the entity tag of a response to HEAD. Each is empty if it is missing. Throws an UpstreamError if the
 * digest is malformed.
 */
export function readHead({ status, headers }: StreamAnswer): { digest: string; etag: string } {
  if (noHead.includes(status)) return { digest: '', etag: '' }
  const digest = String(headers['docker-content-digest'] ?? '')
  if (digest !== '' && !isDigest(digest)) throw new UpstreamError('malformed')
  return { digest, etag: etagOf(headers.etag) }
}

/** Strong entity tag of a response. Weak ones are ignored, since they may stay the same when bytes change. */
const etagOf = (header: string | undefined): string =>
  header !== undefined && /^"[\x21\x23-\x7e]{1,512}"$/.test(header) ? header : ''

const maxKnown = 10_000
const maxKept = 32
const maxKeptBytes = 256 * 1024

/** Results of GET for tags for which HEAD returned no digest. */
export class HeadlessTags {
  readonly #known = new Newest<string, { digest: string; etag: string }>(maxKnown)
  readonly #kept = new Newest<string, FetchedManifest>(maxKept)

  /** Entity tag and digest from the last GET of a tag. While the entity tag stays the same, the tag points to that digest. */
  known(tag: string): { digest: string; etag: string } | undefined {
    return this.#known.get(tag)
  }

  /**
   * Reads the response to GET, and returns the digest of the tag. Keeps a small manifest for `take`, under the name that `nameOf`
   * returns.
   */
  async read(tag: string, answer: StreamAnswer, nameOf: (digest: string) => string): Promise<string> {
    const { digest, ...manifest } = await readByTag(answer)
    const etag = etagOf(answer.headers.etag)
    if (etag === '') this.#known.delete(tag)
    else this.#known.set(tag, { digest, etag })
    if (manifest.content.length <= maxKeptBytes) this.#kept.set(nameOf(digest), manifest)
    return digest
  }

  /**
   * Returns a manifest that was fetched by tag, and removes it from the cache. Its caller stores it, so it is not needed again.
   */
  take(name: string): FetchedManifest | undefined {
    const manifest = this.#kept.get(name)
    this.#kept.delete(name)
    return manifest
  }
}
