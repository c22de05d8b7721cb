// Proxy between a server and its bucket. It forwards requests, and simulates failures of a bucket.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const faults = ['500', 'SlowDown', 'error inside 200', 'lost answer', 'hangs', 'cut', 'away'] as const
/** Errors of a bucket at a limit. A retry does not help. */
export const limits = ['507', 'QuotaExceeded', '413'] as const
/** `400` is the answer of S3 to a HEAD request with expired credentials. */
export type Fault = (typeof faults)[number] | (typeof limits)[number] | '400'

/** Returns the fault for a request. Undefined if the request is forwarded. */
export type Plan = (asked: { method: string; url: string }) => Fault | undefined

export async function startFaultProxy(target: string) {
  let plan: Plan = () => undefined
  const tally = new Map<string, number>()
  const asked: string[] = []
  const server = createServer((req, res) => {
    const { method = '', url = '' } = req
    asked.push(`${method} ${url}`)
    const fault = plan({ method, url })
    if (fault) tally.set(fault, (tally.get(fault) ?? 0) + 1)
    if (fault) failures[fault](req, res)
    else pass(req, res, (answer) => answer.pipe(res))
  })

  function pass(
    req: IncomingMessage,
    res: ServerResponse,
    then: (answer: IncomingMessage) => void,
    isSilent = false,
  ): void {
    const { method, url, headers } = req
    const on = request(target + url, { method: method!, headers, agent: false }, (answer) => {
      // Without a body, the head alone would be a complete answer.
      if (!isSilent) res.writeHead(answer.statusCode!, answer.headers).flushHeaders()
      then(answer)
    })
    on.on('error', () => res.destroy())
    req.on('error', () => on.destroy())
    req.pipe(on)
  }

  /** Forwards the request, and then returns no answer or half of the answer. */
  function lose(req: IncomingMessage, res: ServerResponse, half: boolean): void {
    const end = (answer: IncomingMessage): void => {
      if (half) answer.once('data', (chunk: Buffer) => res.write(chunk.subarray(0, chunk.length >> 1)))
      answer.resume().once('end', () => res.destroy())
    }
    pass(req, res, end, !half)
  }

  function refuse(req: IncomingMessage, res: ServerResponse, status: number, code: string): void {
    req.resume()
    res.writeHead(status, { 'content-type': 'application/xml' })
    res.end(`<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code></Error>`)
  }

  const failures: Record<Fault, (req: IncomingMessage, res: ServerResponse) => void> = {
    400: (req, res) => refuse(req, res, 400, ''),
    500: (req, res) => refuse(req, res, 500, 'InternalError'),
    SlowDown: (req, res) => refuse(req, res, 503, 'SlowDown'),
    507: (req, res) => refuse(req, res, 507, ''),
    QuotaExceeded: (req, res) => refuse(req, res, 403, 'QuotaExceeded'),
    413: (req, res) => refuse(req, res, 413, 'EntityTooLarge'),
    'error inside 200': (req, res) => refuse(req, res, 200, 'InternalError'),
    'lost answer': (req, res) => lose(req, res, false),
    cut: (req, res) => lose(req, res, true),
    hangs: (req) => void req.resume(),
    away: (req) => void req.socket.destroy(),
  }

  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Number of requests so far. */
    asked,
    tally,
    /** Sets the faults of later requests. */
    fail(next: Plan | undefined): void {
      plan = next ?? (() => undefined)
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
