// Client for all requests to servers that users have named. Users must not reach servers that only this server can reach, and
// must not keep this server busy. So the address is checked when a connection is made, and time, size and redirects are limited.
import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'
import { decoded, encodingsOf, isSupported } from './content-encoding.ts'
import type { PrivateAddresses } from './private-addresses.ts'

const explanations = {
  'bad-url': 'the URL must be an http or https URL without user and password',
  insecure: 'the URL does not use https',
  'private-address': 'the host has a private address',
  timeout: 'the request timed out',
  'too-large': 'the response is too large',
  status: 'the response status is not 200',
  redirect: 'the redirect is not allowed, or there were too many redirects',
  encoding: 'the response is compressed',
  undecodable: 'the response has a damaged or unknown compression',
  'not-json': 'the response is not JSON',
  'not-text': 'the response is not UTF-8 text',
  unreachable: 'the host cannot be reached',
}
export type OutgoingReason = keyof typeof explanations

/** Failure of a request. The message contains nothing of the URL or the response. `cause` is for the log only. */
export class OutgoingError extends Error {
  override name = 'OutgoingError'
  readonly reason: OutgoingReason
  /** Status of the response, if the reason is the status. Otherwise undefined. */
  readonly status: number | undefined

  constructor(reason: OutgoingReason, cause?: unknown, status?: number) {
    super(explanations[reason], { cause })
    this.reason = reason
    this.status = status
  }
}

/** Looks up all addresses of a host, like `dns.lookup`. */
export type Lookup = (
  hostname: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

export type Outgoing = {
  /** Gets JSON. Every failure is an OutgoingError. By default, the limits are 5 s and 512 KiB. */
  getJson(url: string, limits?: OutgoingLimits): Promise<unknown>
  /** Like `getJson`, for a text in UTF-8. The headers are not sent to another origin. */
  getText(url: string, headers: Record<string, string>, limits?: OutgoingLimits): Promise<string>
  /**
   * Passes a large response to `take` while it arrives. Compressed files are not decompressed. Returns `undefined` if the content
   * still has this ETag. By default, the limits are ten minutes and 2 GiB.
   */
  download(
    url: string,
    etag: string,
    take: (chunks: AsyncIterable<Uint8Array>) => Promise<void>,
    limits?: OutgoingLimits,
  ): Promise<Downloaded | undefined>
  /**
   * Sends a POST request and returns any response, even with an error status. Follows no redirects. The limits are those of
   * `getJson`.
   */
  post(url: string, request: OutgoingPost, limits?: OutgoingLimits): Promise<{ status: number; body: string }>
  /** Sends a request with any method, and returns status, headers and body. For libraries that implement a protocol. */
  send(url: string, request: OutgoingRequest, limits?: OutgoingLimits): Promise<OutgoingAnswer>
}

/** If `signal` is aborted, the request fails with its reason. */
export type OutgoingLimits = { timeoutMs?: number; maxBytes?: number; signal?: AbortSignal }
export type OutgoingPost = { headers: Record<string, string>; body: string }
export type OutgoingRequest = { method: string; headers: Record<string, string>; body?: string | undefined }
/** Response to `send`. The only headers are `content-type`, `www-authenticate`, `retry-after` and `refresh-after`. */
export type OutgoingAnswer = { status: number; headers: Record<string, string>; body: string }

const maxRedirects = 3
const passedOn = ['content-type', 'www-authenticate', 'retry-after', 'refresh-after']

/** `allowed` has the private addresses that requests may reach. `allowHttp` permits requests without TLS. */
export type OutgoingOptions = { allowed: PrivateAddresses; allowHttp: boolean; lookup?: Lookup }

/** Headers of a downloaded response, empty if missing, and the size of its body. */
export type Downloaded = { etag: string; lastModified: string; bytes: number }

/** Creates the checks of every request. The URL is checked when it is parsed, and the address when the connection is made. */
export function createGate({ allowed, allowHttp, lookup = systemLookup }: OutgoingOptions) {
  const mayAsk = (host: string, address: string): boolean => isPublicAddress(address) || allowed.has(host, address)
  /** Parses a URL. Throws an OutgoingError if a request to the URL is never allowed. */
  const parse = (text: string): URL => {
    const url = URL.parse(text)
    if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
      throw new OutgoingError('bad-url')
    }
    if (url.protocol === 'http:' && !allowHttp) throw new OutgoingError('insecure')
    // A host that is an address is checked here, since there is no look-up for it.
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !mayAsk(host, host)) throw new OutgoingError('private-address')
    return url
  }

  // The connection uses exactly the addresses that were checked. Without a second look-up, the name cannot change in between.
  const checkedLookup: LookupFunction = (hostname, { all }, callback) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      const [first] = error ? [] : addresses
      if (!first) return callback(error ?? new Error('the host name has no address'), [])
      if (!addresses.every(({ address }) => mayAsk(hostname, address))) {
        return callback(new OutgoingError('private-address'), [])
      }
      return all ? callback(null, addresses) : callback(null, first.address, first.family)
    })
  }

  /** Sends a request. Resolves when the headers of the response have arrived. `idleMs` is the longest time without data. */
  const send = (url: URL, signal: AbortSignal, request: OutgoingRequest, idleMs = 0): Promise<IncomingMessage> => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const { method, headers, body } = request
    // Uses no agent, since it could reuse a connection or use a proxy whose address was not checked.
    const sent = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      agent: false,
      lookup: checkedLookup,
      signal,
      method,
      headers: { 'accept-encoding': 'identity', 'user-agent': 'pinfold', ...headers },
    })
    // After a response with status 101, Node emits no error but only `close`.
    sent
      .on('response', resolve)
      .on('error', reject)
      .on('close', () => reject(new Error('the connection was closed')))
    sent.setTimeout(idleMs, () => sent.destroy(new OutgoingError('timeout')))
    sent.end(body)
    return promise
  }
  return { parse, send, checkedLookup, mayAsk }
}

/** Creates the client, which checks each request. */
export function createOutgoing(options: OutgoingOptions): Outgoing {
  const gate = createGate(options)
  const { parse } = gate
  const send = (url: URL, signal: AbortSignal, { headers, ...request }: OutgoingRequest) =>
    gate.send(url, signal, { ...request, headers: { accept: 'application/json', ...headers } })

  const follow = async (start: URL, signal: AbortSignal, more: Record<string, string>): Promise<IncomingMessage> => {
    let url = start
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const answer = await send(url, signal, { method: 'GET', headers: more })
      if (answer.statusCode === 200 || (answer.statusCode === 304 && more['if-none-match'])) return answer
      answer.destroy()
      if (![301, 302, 303, 307, 308].includes(answer.statusCode ?? 0)) {
        throw new OutgoingError('status', undefined, answer.statusCode)
      }
      const { location } = answer.headers
      const next = location === undefined ? null : URL.parse(location, url.href)
      if (next?.origin !== start.origin) throw new OutgoingError('redirect')
      url = parse(next.href)
    }
    throw new OutgoingError('redirect')
  }

  return {
    getJson: (url, { timeoutMs, maxBytes } = {}) =>
      within(async (signal) => parseJson(await readBody(await follow(parse(url), signal, {}), maxBytes)), timeoutMs),
    getText: (url, more, { timeoutMs, maxBytes, signal: asked } = {}) =>
      within(
        async (signal) => textOf(await readBody(await follow(parse(url), signal, more), maxBytes)),
        timeoutMs,
        asked,
      ),
    download: (url, etag, take, { timeoutMs = 600_000, maxBytes = 2 ** 31, signal: asked } = {}) =>
      within(
        async (signal) => {
          const given: Record<string, string> = { accept: '*/*' }
          if (etag !== '') given['if-none-match'] = etag
          const answer = await follow(parse(url), signal, given)
          return passBody(answer, take, maxBytes)
        },
        timeoutMs,
        asked,
      ),
    post: (url, request, { timeoutMs, maxBytes } = {}) =>
      within(async (signal) => {
        const answer = await send(parse(url), signal, { method: 'POST', ...request })
        return { status: answer.statusCode ?? 0, body: (await readBody(answer, maxBytes)).toString('utf8') }
      }, timeoutMs),
    send: (url, request, { timeoutMs, maxBytes, signal: asked } = {}) =>
      within(
        async (signal) => {
          const answer = await send(parse(url), signal, request)
          const shown = Object.entries(answer.headers).filter(([name]) => passedOn.includes(name))
          const body = (await readBody(answer, maxBytes)).toString('utf8')
          return { status: answer.statusCode ?? 0, headers: Object.fromEntries(shown) as Record<string, string>, body }
        },
        timeoutMs,
        asked,
      ),
  }
}

/** Awaits the work, with a time limit. Throws an OutgoingError, or the reason of the caller's signal. */
export async function within<T>(
  work: (signal: AbortSignal) => Promise<T>,
  timeoutMs = 5000,
  asked?: AbortSignal,
): Promise<T> {
  asked?.throwIfAborted()
  const deadline = new AbortController()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new OutgoingError('timeout'))
    deadline.abort()
  }, timeoutMs)
  const end = () => {
    late.reject(asked?.reason)
    deadline.abort()
  }
  asked?.addEventListener('abort', end)
  try {
    return await Promise.race([work(deadline.signal), late.promise])
  } catch (error) {
    asked?.throwIfAborted()
    throw error instanceof OutgoingError ? error : new OutgoingError('unreachable', error)
  } finally {
    asked?.removeEventListener('abort', end)
    clearTimeout(timer)
  }
}

async function readBody(answer: IncomingMessage, maxBytes = 512 * 1024): Promise<Buffer> {
  const { 'content-encoding': encoding = 'identity', 'content-length': length = '0' } = answer.headers
  const refuse = (reason: OutgoingReason): never => {
    answer.destroy()
    throw new OutgoingError(reason)
  }
  if (encoding.toLowerCase() !== 'identity') refuse('encoding')
  if (Number(length) > maxBytes) refuse('too-large')
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) refuse('too-large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function passBody(
  answer: IncomingMessage,
  take: (chunks: AsyncIterable<Uint8Array>) => Promise<void>,
  maxBytes: number,
): Promise<Downloaded | undefined> {
  if (answer.statusCode === 304) {
    answer.destroy()
    return undefined
  }
  const limited = bounded(answer, maxBytes)
  await take(limited.chunks)
  const { etag = '', 'last-modified': lastModified = '' } = answer.headers
  return { etag, lastModified, bytes: limited.read() }
}

/** Ways to treat a body with a Content-Encoding: refuse it, decompress it, or pass it on as received. */
export type EncodedBodies = 'refuse' | 'decode' | 'raw'

/** Chunks of a body while it arrives. Throws if the body is larger than `maxBytes`, compressed or not. */
export function bounded(answer: IncomingMessage, maxBytes: number, encoded: EncodedBodies = 'refuse') {
  let size = 0
  const encodings = encodingsOf(answer.headers['content-encoding'])
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    const isEncoded = encoded !== 'raw' && encodings.length > 0
    if (isEncoded && (encoded === 'refuse' || !isSupported(encodings))) {
      answer.destroy()
      throw new OutgoingError(encoded === 'refuse' ? 'encoding' : 'undecodable')
    }
    const counted = atMost(answer as AsyncIterable<Buffer>, maxBytes, answer, (read) => (size = read))
    const failed = (cause: unknown): Error => new OutgoingError('undecodable', cause)
    yield* isEncoded ? atMost(decoded(counted, encodings, failed), maxBytes, answer) : counted
  }
  return { chunks: chunks(), read: () => size }
}

async function* atMost(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  answer: IncomingMessage,
  count: (size: number) => void = () => {},
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    count(size)
    if (size > maxBytes) {
      answer.destroy()
      throw new OutgoingError('too-large')
    }
    yield chunk
  }
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(textOf(body))
  } catch {
    // The error of JSON.parse is dropped, since it quotes the response.
    throw new OutgoingError('not-json')
  }
}

function textOf(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    throw new OutgoingError('not-text')
  }
}

// Address ranges for special purposes (RFC 6890). Also the address at which Azure provides credentials to a machine.
const notPublic4 = blockList('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
])

// All IPv6 addresses outside of 2000::/3, the only range that is routed on the public internet. These include ::1, mapped IPv4,
// NAT64, unique local, link-local and multicast addresses. Inside 2000::/3, the list has Teredo, ORCHID and benchmarks
// (2001::/23), 6to4, and ranges for documentation.
const notPublic6 = blockList('ipv6', [
  '::/3',
  '4000::/2',
  '8000::/1',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
])

function blockList(family: 'ipv4' | 'ipv6', subnets: string[]): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [net, prefix] = subnet.split('/')
    list.addSubnet(net!, Number(prefix), family)
  }
  return list
}

/** True if the address is routed on the public internet; false for text that is not an address. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !notPublic4.check(address, 'ipv4')
  // IPv4 and IPv6 have separate lists. A common list would treat every IPv4 address as a mapped one, which is inside ::/3.
  return isIP(address) === 6 && !notPublic6.check(address, 'ipv6')
}
