import { type Agent, type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'

export type Sent = {
  url: string
  method: string
  headers: Readonly<Record<string, string>>
  body?: readonly Buffer[] | undefined
  /** Milliseconds without any received or sent data after which the request fails. The time for connecting is included. */
  timeoutMs: number
  agent?: Agent | undefined
  signal?: AbortSignal | undefined
  /** Called when the connection is closed, or free for another request. */
  closed?: (() => void) | undefined
}

/** Sends a request. Resolves when the response headers arrive. The caller must read or destroy the body. */
export function send(sent: Sent): Promise<IncomingMessage> {
  const { url, method, headers, body = [], timeoutMs, agent, signal, closed } = sent
  return new Promise((resolve, reject) => {
    const make = url.startsWith('https:') ? tlsRequest : plainRequest
    // `req.setTimeout` would start only after the connection is established.
    const req = make(url, { method, headers, timeout: timeoutMs, ...(agent && { agent }), ...(signal && { signal }) })
    req.once('timeout', () => req.destroy(new Error(`no data for ${timeoutMs} ms`)))
    if (closed) req.once('close', closed)
    req.on('error', reject)
    req.once('response', (res) => {
      // Errors after the response headers are reported to the reader of the body.
      res.on('error', () => {})
      resolve(res)
    })
    for (const chunk of body) req.write(chunk)
    req.end()
  })
}

/** Reads the body of a response. Rejects if it is longer than `most` bytes, or incomplete. */
export async function readAll(res: IncomingMessage, most: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of res as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > most) throw new Error(`the response has more than ${most} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
