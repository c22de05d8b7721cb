// HTTP client for deliveries to the URLs of subscriptions. Unlike other outgoing requests, deliveries reuse connections, since
// there are thousands of them. The address is checked when a connection is made. Redirects are not followed.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { createGate, OutgoingError, type OutgoingOptions, type OutgoingReason } from './outgoing.ts'

export type SinkAnswer = {
  status: number
  /** Value of the Retry-After header. Empty if there is none. */
  retryAfter: string
}

export type SinkClient = {
  /** Reason why a request to this URL is never allowed. `undefined` if a request may be tried. */
  problemOf(url: string): OutgoingReason | undefined
  /** Sends a POST request. Resolves with any response, also a redirect, without its body. Rejects with an OutgoingError. */
  post(url: string, headers: Record<string, string>, body: string, timeoutMs: number): Promise<SinkAnswer>
  /** Closes idle connections. */
  close(): void
}

/** Maximum size of a response in bytes. A longer response closes the connection. */
const maxAnswerBytes = 64 * 1024
const idleMs = 30_000

export function createSinkClient(options: OutgoingOptions): SinkClient {
  const { parse, checkedLookup, mayAsk } = createGate(options)
  const kept = { keepAlive: true, maxFreeSockets: 64, timeout: idleMs }
  const agents = { 'http:': new HttpAgent(kept), 'https:': new HttpsAgent(kept) }

  const send = (url: URL, headers: Record<string, string>, body: string, timeoutMs: number): Promise<SinkAnswer> => {
    const { promise, resolve, reject } = Promise.withResolvers<SinkAnswer>()
    const secure = url.protocol === 'https:'
    const agent = agents[secure ? 'https:' : 'http:']
    const options = { method: 'POST', agent, lookup: checkedLookup, headers }
    const sent = (secure ? httpsRequest : httpRequest)(url, options)
    let answered: SinkAnswer | undefined
    const timer = setTimeout(() => {
      settle(new OutgoingError('timeout'))
      sent.destroy()
    }, timeoutMs)
    // Once the status has arrived, errors in the body do not change the result.
    const settle = (error: unknown): void => {
      clearTimeout(timer)
      if (answered) resolve(answered)
      else reject(error)
    }
    sent.on('response', (answer) => {
      answered = { status: answer.statusCode ?? 0, retryAfter: answer.headers['retry-after'] ?? '' }
      drain(answer, () => settle(undefined))
    })
    sent.on('error', (error) => settle(Object.assign(error, { reused: sent.reusedSocket })))
    sent.on('close', () => settle(new Error('the connection was closed')))
    sent.end(body)
    return promise
  }

  return {
    problemOf(url) {
      try {
        const { hostname } = parse(url)
        const own = hostname === 'localhost' || hostname.endsWith('.localhost')
        return own && !['127.0.0.1', '::1'].some((address) => mayAsk(hostname, address)) ? 'private-address' : undefined
      } catch (error) {
        return (error as OutgoingError).reason
      }
    },

    async post(url, headers, body, timeoutMs) {
      const parsed = parse(url)
      const all = { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }
      for (let again = false; ; again = true) {
        try {
          return await send(parsed, all, body, timeoutMs)
        } catch (error) {
          if (error instanceof OutgoingError) throw error
          // The receiver may close an idle connection just when it is used again. That is no failure, so the request is sent once
          // more.
          if (!again && isReusedConnection(error)) continue
          throw new OutgoingError('unreachable', error)
        }
      }
    },

    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

function isReusedConnection(error: unknown): boolean {
  const { code, reused } = error as { code?: unknown; reused?: unknown }
  return reused === true && (code === 'ECONNRESET' || code === 'EPIPE')
}

/**
 * Reads the body of a response and drops it, so that the connection can be reused. Closes the connection if the body is too long.
 */
function drain(answer: IncomingMessage, done: () => void): void {
  let size = 0
  answer.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > maxAnswerBytes) answer.destroy()
  })
  answer.on('end', done)
  answer.on('close', done)
  answer.on('error', done)
}
