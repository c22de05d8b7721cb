// How long a client may take to send a body. Node's own limit would be one for all, and an upload of gigabytes takes as
// long as it takes, so it is off; the registry's uploads have a limit on silence instead.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { safeHeaderLines } from '#edge/safe-headers.ts'

export type SlowBodies = {
  /** Call it for each request over HTTP/1.1. */
  watch(req: IncomingMessage, res: ServerResponse): void
  stop(): void
}

const late = `HTTP/1.1 408 Request Timeout\r\n${safeHeaderLines}Connection: close\r\n\r\n`

export function limitBodies(limitMs: number, isUpload: (path: string) => boolean): SlowBodies {
  const coming = new Map<IncomingMessage, { res: ServerResponse; until: number }>()
  const check = (): void => {
    const now = performance.now()
    for (const [req, { res, until }] of coming) {
      if (req.complete || req.destroyed) coming.delete(req)
      else if (until <= now) {
        coming.delete(req)
        if (res.headersSent) req.socket.destroy()
        else req.socket.end(late, () => req.socket.destroy())
      }
    }
  }
  const timer = setInterval(check, Math.min(1000, limitMs / 4))
  timer.unref()
  return {
    watch(req, res) {
      const { headers } = req
      const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
      if (hasBody && !isUpload(req.url ?? '')) coming.set(req, { res, until: performance.now() + limitMs })
    },
    stop: () => clearInterval(timer),
  }
}
