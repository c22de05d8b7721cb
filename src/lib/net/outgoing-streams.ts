// Streaming requests to servers that users have named. Returns status, headers and a body of any size, and follows redirects. The
// address of each redirect is checked like that of any other outgoing request.
import type { IncomingHttpHeaders } from 'node:http'
import { bounded, createGate, OutgoingError, type OutgoingLimits, type OutgoingOptions, within } from './outgoing.ts'

/** `secret` has headers that are sent only to the origin of the URL, not to the target of a redirect. */
export type StreamRequest = { method: 'GET' | 'HEAD'; headers: Record<string, string>; secret: Record<string, string> }

/** `chunks` decompresses the body. It throws an OutgoingError if the compression is damaged, or if the body is too long. */
export type StreamAnswer = {
  status: number
  headers: IncomingHttpHeaders
  chunks: AsyncIterable<Uint8Array>
  /** Origin that has sent the response. It differs from that of the request after a redirect. */
  origin: string
}

/** `idleMs` is the longest time without data in milliseconds. The default is 10 s. */
export type StreamLimits = OutgoingLimits & {
  idleMs?: number
  /** Called before a request is redirected to another origin. If it throws, the request fails with that error. */
  pass?(url: URL): Promise<void>
  /** `raw` passes on the bytes as received, and ignores the content encoding of the response. The default is `decode`. */
  encoded?: 'decode' | 'raw'
}

export type OutgoingStreams = {
  /** Reason why a request to this URL is never allowed. `undefined` if a request may be tried. */
  problemOf(url: string): OutgoingError['reason'] | undefined
  /**
   * Passes the response to `take`, with any status. Closes the connection when `take` ends, even if the body was not read.
   * Follows at most five redirects, also to other origins. Rejects with an OutgoingError, or with the error of `take`. By
   * default, the limits are 5 s and 512 KiB.
   */
  stream<T>(
    url: string,
    request: StreamRequest,
    take: (answer: StreamAnswer) => Promise<T>,
    limits?: StreamLimits,
  ): Promise<T>
}

const maxRedirects = 5
const redirects = [301, 302, 303, 307, 308]

export function createOutgoingStreams(options: OutgoingOptions): OutgoingStreams {
  const gate = createGate(options)

  const follow = async (
    start: URL,
    { method, headers, secret }: StreamRequest,
    idleMs: number,
    signal: AbortSignal,
    pass: (url: URL) => Promise<void>,
  ) => {
    let url = start
    for (let hops = 0; hops <= maxRedirects; hops++) {
      if (url.origin !== start.origin) await pass(url)
      const own = url.origin === start.origin ? { ...headers, ...secret } : headers
      const answer = await gate.send(url, signal, { method, headers: own }, idleMs)
      const { location } = answer.headers
      if (!redirects.includes(answer.statusCode ?? 0) || location === undefined) return { answer, origin: url.origin }
      answer.destroy()
      const next = URL.parse(location, url.href)
      // A request over HTTPS is never redirected to HTTP.
      if (!next || (start.protocol === 'https:' && next.protocol !== 'https:')) throw new OutgoingError('redirect')
      url = gate.parse(next.href)
    }
    throw new OutgoingError('redirect')
  }

  return {
    problemOf(url) {
      try {
        gate.parse(url)
        return undefined
      } catch (error) {
        if (error instanceof OutgoingError) return error.reason
        throw error
      }
    },
    async stream(url, request, take, limits = {}) {
      const { timeoutMs, maxBytes = 512 * 1024, idleMs = 10_000, signal: asked, pass, encoded = 'decode' } = limits
      // Errors of `take` and `pass` are thrown unchanged, since they are not failures of the request.
      let thrown: { error: unknown } | undefined
      const ours = (error: unknown): never => {
        thrown = { error }
        throw error
      }
      const passOn = async (next: URL): Promise<void> => pass?.(next).catch(ours)
      const work = async (signal: AbortSignal) => {
        const { answer, origin } = await follow(gate.parse(url), request, idleMs, signal, passOn)
        try {
          const { chunks } = bounded(answer, maxBytes, encoded)
          const given = { status: answer.statusCode ?? 0, headers: answer.headers, chunks: named(chunks), origin }
          return await take(given).catch(ours)
        } finally {
          answer.destroy()
        }
      }
      try {
        return await within(work, timeoutMs, asked)
      } catch (error) {
        throw thrown && !(error instanceof OutgoingError && error.reason === 'timeout') ? thrown.error : error
      }
    },
  }
}

/** Converts the error of a broken connection to an OutgoingError for the reader of the chunks. */
async function* named(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    throw error instanceof OutgoingError ? error : new OutgoingError('unreachable', error)
  }
}
