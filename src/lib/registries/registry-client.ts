// Client for the registries of mirrors (distribution specification, "Pull"). Every request goes through `outgoing`, which checks
// each address. Responses are limited in size and time. Only content whose digest was verified can be trusted.
import { Newest } from '../caches/newest.ts'
import { encodingsOf } from '../net/content-encoding.ts'
import { OutgoingError } from '../net/outgoing.ts'
import type { OutgoingStreams, StreamAnswer, StreamLimits, StreamRequest } from '../net/outgoing-streams.ts'
import { createHostQueues, type HostQueues } from './host-queues.ts'
import { type HostRateLimits, type RequestSender, retryAfterMs } from './host-rate-limits.ts'
import { firstPageOf, type HistoryApi, type HistoryPage, readHistory } from './registry-histories.ts'
import {
  type FetchedManifest,
  HeadlessTags,
  manifestTypes,
  noHead,
  readByDigest,
  readHead,
} from './registry-manifests.ts'
import { readReferrers, readTags, type TagsPage } from './registry-pages.ts'
import { type Account, type RegistryTokens, secretOf } from './registry-tokens.ts'
import { UpstreamError } from './upstream-error.ts'

/** Another registry, with the account that is used there. */
export type Upstream = Account &
  RequestSender & {
    /** Origin of its URL, such as `https://registry.example.com`. */
    origin: string
  }

/** Digest that a reference points to. `undefined` if the registry responds that the reference does not exist. */
export type Pointed = { digest: string } | undefined
export type TakeBlob<T> = (chunks: AsyncIterable<Uint8Array>, size: number | undefined) => Promise<T>
/** `patienceMs` is the longest wait for the rate limit of the host. The default is 0. */
export type AskOptions = { timeoutMs?: number; signal?: AbortSignal; patienceMs?: number }

export type RegistryClient = {
  /** Reason why a request to this URL is never allowed. `undefined` if a request may be tried. */
  problemOf(url: string): OutgoingError['reason'] | undefined
  /** Finds the digest of a manifest with HEAD. Sends GET only if the response to HEAD has no digest. Throws an UpstreamError. */
  head(upstream: Upstream, path: string, reference: string, options?: AskOptions): Promise<Pointed>
  /**
   * Gets a manifest by its digest, which is verified. `undefined` if the registry responds that there is none. Throws an
   * UpstreamError.
   */
  manifest(upstream: Upstream, path: string, digest: string, options?: AskOptions): Promise<FetchedManifest | undefined>
  /**
   * Passes the chunks of a blob to `take`, without a check of the digest. `undefined` if the registry responds that there is
   * none. `size` is the declared size, or undefined. If the response has a content encoding and `take` throws the UpstreamError
   * `wrong-digest`, calls `take` again with other chunks. Rejects with an UpstreamError, or with the error of `take`.
   */
  blob<T>(
    upstream: Upstream,
    path: string,
    digest: string,
    take: TakeBlob<T>,
    options?: AskOptions,
  ): Promise<T | undefined>
  /** Size of a blob, as declared by the registry. `none` if the registry responds that there is none. */
  blobSize(upstream: Upstream, path: string, digest: string, options?: AskOptions): Promise<number | 'none' | 'unknown'>
  /**
   * Digests of the referrers of a manifest. Reads pages until there are more than `most`. `undefined` if the registry does not
   * list referrers. `lost` is the reason why further pages could not be read.
   */
  referrers(
    upstream: Upstream,
    path: string,
    asked: { digest: string; most: number },
    options?: AskOptions,
  ): Promise<{ digests: string[]; lost: UpstreamError | undefined } | undefined>
  /** Names of at most `most` tags, page by page. Throws an UpstreamError if there are more tags, or if a page cannot be read. */
  tags(upstream: Upstream, path: string, most: number, options?: AskOptions): AsyncIterable<string[]>
  /**
   * Page of the history of a tag after a time. `undefined` if the registry has no history of this tag. Throws an UpstreamError.
   */
  history(
    upstream: Upstream,
    path: string,
    asked: { api: HistoryApi; tag: string; after: string; page?: string | undefined },
    options?: AskOptions,
  ): Promise<HistoryPage | undefined>
}

const headTimeoutMs = 10_000
const listTimeoutMs = 30_000
const maxPageBytes = 4 * 1024 * 1024
const maxPages = 200
const manifestTimeoutMs = 20_000
const maxManifestBytes = 4 * 1024 * 1024
/** Time limit for one blob, even if data keeps arriving. */
const blobTimeoutMs = 3_600_000
const blobIdleMs = 30_000
const maxBlobBytes = 64 * 2 ** 30
/** Longest wait for the rate limit of a token service, or of the target of a redirect. */
const onTheWayMs = 5_000

/** Limit on upstreams whose encoding of blobs is remembered. */
const mostUpstreams = 1000
type EncodedBlobs = 'raw' | 'decode'

type Parts = ClientParts & {
  turns: HostQueues
  headless: HeadlessTags
  /** Treatment of blobs with a content encoding, by upstream. */
  encodedBlobs: Newest<string, EncodedBlobs>
}
export type ClientParts = {
  outgoing: OutgoingStreams
  tokens: RegistryTokens
  paces: HostRateLimits
  now: () => number
}

export function createRegistryClient(given: ClientParts): RegistryClient {
  const [turns, encodedBlobs] = [createHostQueues(given.paces), new Newest<string, EncodedBlobs>(mostUpstreams)]
  const parts: Parts = { ...given, turns, headless: new HeadlessTags(), encodedBlobs }
  return {
    problemOf: parts.outgoing.problemOf,
    head: (upstream, path, reference, options) => headOf(parts, upstream, path, reference, options),

    async manifest(upstream, path, digest, { timeoutMs = manifestTimeoutMs, signal, patienceMs } = {}) {
      const kept = parts.headless.take(nameOf(upstream, path, digest))
      if (kept) return kept
      const request = { method: 'GET', path: `manifests/${digest}`, accept: anyManifest, patienceMs } as const
      const limits = { timeoutMs, maxBytes: maxManifestBytes, ...(signal && { signal }) }
      return ask(parts, upstream, path, request, limits, async (answer) => {
        return answer.status === 404 ? undefined : readByDigest(answer, digest)
      })
    },

    blob: (upstream, path, digest, take, options) => blobOf(parts, upstream, path, { digest, take }, options),

    async blobSize(upstream, path, digest, { timeoutMs = headTimeoutMs, signal, patienceMs } = {}) {
      const limits = { timeoutMs, idleMs: timeoutMs, ...(signal && { signal }) }
      const sizeBy = (method: 'HEAD' | 'GET') => {
        const also = method === 'HEAD' ? noHead : []
        const request = { method, path: `blobs/${digest}`, accept: '*/*', patienceMs, also } as const
        return ask(parts, upstream, path, request, limits, async ({ status, headers }) => {
          if (status === 404) return 'none'
          const isSize = status === 200 && encodingsOf(headers['content-encoding']).length === 0
          return isSize ? sizeOf(headers['content-length']) : undefined
        })
      }
      // Some pull-through registries respond 404 to HEAD for content that they would fetch for GET. So GET follows; its body is
      // not read.
      const answered = await sizeBy('HEAD')
      const size = typeof answered === 'number' ? answered : await sizeBy('GET')
      return size ?? 'unknown'
    },

    referrers: (upstream, path, asked, options) => referrersOf(parts, upstream, path, asked, options),

    async *tags(upstream, path, most, { timeoutMs = listTimeoutMs, signal } = {}) {
      const limits = { timeoutMs, maxBytes: maxPageBytes, ...(signal && { signal }) }
      let left = most
      let next: string | undefined = 'tags/list?n=1000'
      for (let page = 0; next !== undefined; page++) {
        if (page === maxPages) throw new UpstreamError('too-large')
        const request: RegistryRequest = { method: 'GET', path: next, accept: 'application/json' }
        const read: TagsPage | undefined = await ask(parts, upstream, path, request, limits, readTags)
        if (!read && page > 0) throw new UpstreamError('lost-page')
        // A registry may respond 404 to the list of a repository without tags.
        if (!read) return
        left -= read.names.length
        if (left < 0) throw new UpstreamError('too-large')
        yield read.names
        if (read.next === 'lost') throw new UpstreamError('lost-page')
        next = read.next
      }
    },

    async history(upstream, path, { api, tag, after, page }, { timeoutMs = listTimeoutMs, signal, patienceMs } = {}) {
      const next = page ?? firstPageOf(api, tag, after)
      const accept = api === 'service' ? 'application/json' : manifestTypes[0]!
      const limits = { timeoutMs, maxBytes: maxPageBytes, ...(signal && { signal }) }
      // `apart`, since an unavailable history must not pause the reads of content.
      const request = { method: 'GET', path: next, accept, patienceMs, apart: 'history' } as const
      return ask(parts, upstream, path, request, limits, (answer) => {
        return readHistory(api, { tag, after, now: given.now() }, answer)
      })
    },
  }
}

const anyManifest = manifestTypes.join(', ')

/** Cache key of a tag or a digest in a repository, different for each account. */
const nameOf = ({ key }: Upstream, path: string, reference: string): string => `${key} ${path} ${reference}`

/**
 * Finds the digest of a manifest. Sends GET only if HEAD returned no digest, since registries limit the number of GET requests.
 */
async function headOf(
  parts: Parts,
  upstream: Upstream,
  path: string,
  reference: string,
  { timeoutMs = headTimeoutMs, signal, patienceMs }: AskOptions = {},
): Promise<Pointed> {
  const asked = { path: `manifests/${reference}`, accept: anyManifest, patienceMs }
  const limits = { timeoutMs, idleMs: timeoutMs, maxBytes: maxManifestBytes, ...(signal && { signal }) }
  const head = { ...asked, method: 'HEAD', also: noHead } as const
  const answered = await ask(parts, upstream, path, head, limits, async (answer) => {
    return answer.status === 404 ? undefined : readHead(answer)
  })
  if (!answered) return undefined
  if (answered.digest !== '') return { digest: answered.digest }
  const { headless } = parts
  const tag = nameOf(upstream, path, reference)
  const known = headless.known(tag)
  if (known && known.etag === answered.etag) return { digest: known.digest }
  const get = { ...asked, method: 'GET', ...(known && { ifNoneMatch: known.etag, also: [304] }) } as const
  return ask(parts, upstream, path, get, limits, async (answer) => {
    if (answer.status === 404) return undefined
    if (answer.status === 304) return { digest: known!.digest }
    return { digest: await headless.read(tag, answer, (digest) => nameOf(upstream, path, digest)) }
  })
}

/**
 * Fetches a blob. Some servers declare the compression of a layer as a content encoding, and some proxies really compress layers.
 * Only the digest shows the difference. If the first treatment gives another digest, the blob is fetched again with the other
 * one, which the next blob of the upstream begins with.
 */
async function blobOf<T>(
  parts: Parts,
  upstream: Upstream,
  path: string,
  { digest, take }: { digest: string; take: TakeBlob<T> },
  { timeoutMs = blobTimeoutMs, signal, patienceMs }: AskOptions = {},
): Promise<T | undefined> {
  const request = { method: 'GET', path: `blobs/${digest}`, accept: '*/*', patienceMs } as const
  const limits = { timeoutMs, idleMs: blobIdleMs, maxBytes: maxBlobBytes, ...(signal && { signal }) }
  let isEncoded = false
  const fetch = (encoded: EncodedBlobs) =>
    ask(parts, upstream, path, request, { ...limits, encoded }, async ({ status, headers, chunks }) => {
      isEncoded = encodingsOf(headers['content-encoding']).length > 0
      // The declared size of an encoded response may be that of other bytes.
      return status === 404 ? undefined : take(chunks, isEncoded ? undefined : sizeOf(headers['content-length']))
    })
  const first = parts.encodedBlobs.get(upstream.key) ?? 'raw'
  try {
    return await fetch(first)
  } catch (error) {
    const isOther = error instanceof UpstreamError && ['wrong-digest', 'malformed'].includes(error.reason)
    if (!isOther || !isEncoded) throw error
  }
  const other = first === 'raw' ? 'decode' : 'raw'
  const fetched = await fetch(other)
  parts.encodedBlobs.set(upstream.key, other)
  return fetched
}

async function referrersOf(
  parts: Parts,
  upstream: Upstream,
  path: string,
  { digest, most }: { digest: string; most: number },
  { timeoutMs = listTimeoutMs, signal, patienceMs }: AskOptions = {},
): Promise<{ digests: string[]; lost: UpstreamError | undefined } | undefined> {
  const limits = { timeoutMs, maxBytes: maxPageBytes, ...(signal && { signal }) }
  const digests: string[] = []
  const lost = new UpstreamError('lost-page')
  for (let next = `referrers/${digest}`, page = 0; digests.length <= most; page++) {
    const request: RegistryRequest = { method: 'GET', path: next, accept: manifestTypes[0]!, patienceMs }
    const read = await ask(parts, upstream, path, request, limits, (answer) => readReferrers(answer, digest))
    if (!read) return page === 0 ? undefined : { digests, lost }
    for (const one of read.digests) digests.push(one)
    if (read.next === undefined) break
    if (read.next === 'lost' || page === maxPages) return { digests, lost }
    next = read.next
  }
  return { digests, lost: undefined }
}

/**
 * `apart` names a kind of request that gets a pause of its own if no user waits for it. `also` has statuses that the caller
 * accepts besides 200 and 404.
 */
type RegistryRequest = {
  method: 'GET' | 'HEAD'
  path: string
  accept: string
  patienceMs?: number | undefined
  apart?: 'history'
  ifNoneMatch?: string
  also?: readonly number[]
}

/** Sends a request. If the registry responds with a challenge, gets a token and sends the request again. */
async function ask<T>(
  { outgoing, tokens, paces, turns, now }: Parts,
  upstream: Upstream,
  path: string,
  asked: RegistryRequest,
  limits: StreamLimits & { timeoutMs: number },
  take: (answer: StreamAnswer) => Promise<T>,
): Promise<T> {
  const { host, protocol } = new URL(upstream.origin)
  const whole = accountOf(upstream)
  // If no user waits for a request, its failure pauses only other such requests, not the whole account.
  const account = upstream.spare ? `${whole} ${asked.apart ?? 'spare'}` : whole
  const pausedMs = Math.max(paces.pausedMs(whole), paces.pausedMs(account))
  if (pausedMs > 0) throw new UpstreamError('paused', { waitMs: pausedMs })
  const { patienceMs = 0 } = asked
  const turnOf = async (at: string, patience: number): Promise<void> => {
    const waitMs = await turns.take(at, upstream, patience)
    if (waitMs > 0) throw new UpstreamError('paced', { waitMs })
  }
  // A request in progress may wait for the rate limit of another host, but for at most half of its time limit.
  const onTheWay = Math.max(patienceMs, Math.min(onTheWayMs, limits.timeoutMs / 2))
  const pass = ({ host: at }: URL): Promise<void> => turnOf(at, Math.min(onTheWay, limits.timeoutMs / 2))
  const once = async (authorization: string, last: boolean): Promise<{ challenge: string } | { value: T }> => {
    await turnOf(host, last ? onTheWay : patienceMs)
    const request: StreamRequest = {
      method: asked.method,
      headers: { accept: asked.accept, ...(asked.ifNoneMatch && { 'if-none-match': asked.ifNoneMatch }) },
      secret: secretOf(authorization),
    }
    const url = `${upstream.origin}/v2/${path}/${asked.path}`
    return outgoing.stream(
      url,
      request,
      async (answer) => {
        const challenge = String(answer.headers['www-authenticate'] ?? '')
        // A challenge after a redirect is not answered, since the other host may not be trusted with the credentials.
        const isOwn = answer.origin === upstream.origin
        if (answer.status === 401 && isOwn && !last && challenge !== '') return { challenge }
        if (answer.status === 404 && !isOwn) throw new UpstreamError('malformed', { status: 404 })
        if (!asked.also?.includes(answer.status)) refuse(answer, now())
        return { value: await take(answer) }
      },
      { ...limits, pass },
    )
  }
  try {
    const known = tokens.known(upstream, path)
    let result = await once(known, false)
    if ('challenge' in result) {
      tokens.forget(upstream, path)
      const { challenge } = result
      const way = { secure: protocol === 'https:', signal: limits.signal, pass }
      const authorization = await tokens.answer(upstream, path, challenge, way)
      if (authorization === undefined) throw new UpstreamError('unauthorized')
      result = await once(authorization, true)
    }
    if ('challenge' in result) throw new UpstreamError('unauthorized')
    paces.succeeded(account)
    return result.value
  } catch (thrown) {
    if (limits.signal?.aborted) throw thrown
    const error = thrown instanceof UpstreamError ? thrown : failureOf(thrown)
    if (error.reason === 'throttled' || error.reason === 'unavailable') paces.failed(account, error.waitMs)
    throw error
  }
}

/**
 * Key of the account that a pause applies to. To a registry, all anonymous requests are one account. Here each holder has its own
 * pause, so that one holder cannot pause the others.
 */
export function accountOf({ origin, holder, username, key }: Upstream): string {
  return username === '' ? `${origin} ${holder}` : `${origin} ${holder} ${key}`
}

/** Throws an UpstreamError for any status but 200 and 404. */
function refuse({ status, headers }: StreamAnswer, now: number): void {
  if (status === 200 || status === 404) return
  const waitMs = retryAfterMs(headers['retry-after'], now)
  if (status === 401) throw new UpstreamError('unauthorized', { status })
  if (status === 403) throw new UpstreamError('forbidden', { status })
  if (status === 429) throw new UpstreamError('throttled', { status, waitMs })
  if (status >= 500) throw new UpstreamError('unavailable', { status, waitMs })
  throw new UpstreamError('malformed', { status })
}

function failureOf(cause: unknown): UpstreamError {
  // Errors of `take` are thrown unchanged, since they are not failures of the registry.
  if (!(cause instanceof OutgoingError)) throw cause
  const { reason, status } = cause
  if (reason === 'too-large') return new UpstreamError('too-large', { cause })
  if (['private-address', 'redirect', 'insecure', 'bad-url'].includes(reason))
    return new UpstreamError('refused', { cause })
  if (['not-json', 'not-text', 'encoding', 'undecodable'].includes(reason))
    return new UpstreamError('malformed', { cause })
  return new UpstreamError(status === 429 ? 'throttled' : 'unavailable', { cause, ...(status && { status }) })
}

function sizeOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : undefined
}
