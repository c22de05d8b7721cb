import { type Agent, type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'

export type Sent = {
  url: string
  method: string
  headers: Readonly<Record<string, string>>
  body?: readonly Buffer[] | undefined
  /** After how long without a byte in either direction it is lost; connecting counts. */
  timeoutMs: number
  agent?: Agent | undefined
  signal?: AbortSignal | undefined
  /** Told when the connection is free for another request, or gone. */
  closed?: (() => void) | undefined
}

/** Sends a request; resolves once the head of the answer is there. Its body must be read, or destroyed. */
export function send(sent: Sent): Promise<IncomingMessage> {
  const { url, method, headers, body = [], timeoutMs, agent, signal, closed } = sent
  return new Promise((resolve, reject) => {
    const make = url.startsWith('https:') ? tlsRequest : plainRequest
    // `setTimeout` would count from when there is a connection.
    const req = make(url, { method, headers, timeout: timeoutMs, ...(agent && { agent }), ...(signal && { signal }) })
    req.once('timeout', () => req.destroy(new Error(`no sign of life for ${timeoutMs} ms`)))
    if (closed) req.once('close', closed)
    req.on('error', reject)
    req.once('response', (res) => {
      // What comes later is told by the answer.
      res.on('error', () => {})
      resolve(res)
    })
    for (const chunk of body) req.write(chunk)
    req.end()
  })
}

/** The body of an answer. Rejects when it is longer, or ends early. */
export async function readAll(res: IncomingMessage, most: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of res as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > most) throw new Error(`the answer has more than ${most} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
