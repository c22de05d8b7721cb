// Time limit for request bodies, for all paths and both protocols. Node's own limit is off, since it would also apply to uploads,
// which have no fixed duration. An upload to the registry instead has a limit on the time without data. After its response, it
// has the same limit as other requests.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import { lateBody } from '#edge/request-limits.ts'
import { Slots } from '#lib/caches/slots.ts'
import type { AppError } from '#lib/errors.ts'

export type SlowBodies = {
  /**
   * Call it for each request. When the time is over, calls `refuse`, which responds with an error. Without `refuse`, or after the
   * response has started, closes the connection or the stream.
   */
  watch(req: IncomingMessage, res: ServerResponse, refuse: Refuse | undefined): void
  stop(): void
}

type Refuse = (error: AppError) => void

/** Request whose body has not arrived completely. */
type PendingBody = { until: number; isOver(): boolean; isGone(): boolean; cut(): void }

export function limitBodies(limitMs: number, isUpload: (path: string) => boolean): SlowBodies {
  const everyMs = Math.min(1000, limitMs / 4)
  const coming = new Slots<PendingBody>()
  const check = (): void => {
    const now = performance.now()
    for (const [slot, one] of coming.items.entries()) {
      if (!one) continue
      if (one.isOver()) coming.remove(slot, one)
      else if (one.until <= now || one.isGone()) {
        coming.remove(slot, one)
        one.cut()
      }
    }
  }
  const timer = setInterval(check, everyMs)
  timer.unref()

  const watchHttp1 = (req: IncomingMessage, res: ServerResponse, refuse: Refuse | undefined): void => {
    const { headers } = req
    if (headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0') return
    const one: PendingBody = {
      until: untilOf(req),
      isOver: () => req.complete || req.destroyed,
      // Checks the socket. After the response, Node does not notify the request if the client disconnects.
      isGone: () => req.socket.destroyed,
      cut() {
        if (res.headersSent || !refuse) {
          req.destroy()
          return
        }
        res.setHeader('connection', 'close')
        res.once('finish', () => req.socket.end(() => req.destroy()))
        refuse(lateBody())
      },
    }
    const slot = coming.add(one)
    // After the response, nothing reads the body. Without this limit, the client could send it forever.
    res.once('finish', () => {
      if (one.isOver()) coming.remove(slot, one)
      else one.until = Math.min(one.until, performance.now() + limitMs)
    })
  }

  const watchHttp2 = (req: IncomingMessage, res: ServerResponse, refuse: Refuse | undefined): void => {
    const { stream } = res as unknown as Http2ServerResponse
    if ((stream as ServerHttp2Stream & { endAfterHeaders: boolean }).endAfterHeaders) return
    coming.add({
      until: untilOf(req),
      isOver: () => req.complete || stream.closed,
      isGone: () => false,
      cut() {
        if (stream.headersSent || stream.destroyed || !refuse) stream.close(constants.NGHTTP2_CANCEL)
        else refuse(lateBody())
      },
    })
    dropUnreadBody(req, stream)
  }

  // This limit is a little later than the deadline of entry points, so they can respond first in their own format.
  const untilOf = ({ url = '' }: IncomingMessage): number =>
    isUpload(url) ? Number.POSITIVE_INFINITY : performance.now() + limitMs + everyMs

  return {
    watch(req, res, refuse) {
      if (req.httpVersionMajor === 2) watchHttp2(req, res, refuse)
      else watchHttp1(req, res, refuse)
    },
    stop: () => clearInterval(timer),
  }
}

const longestMs = 1000
const mostBytes = 32 * 1024 * 1024

/**
 * Closes the stream of a request if its response has ended before its body (RFC 9113, 8.1). Before the reset, reads and drops the
 * body for a moment. With an immediate reset, the last frame of the response would not be sent, and clients would drop the
 * response.
 */
function dropUnreadBody(req: IncomingMessage, stream: ServerHttp2Stream): void {
  // If nothing reads a finished stream, Node itself resets it.
  stream.once('prefinish', () => {
    if (req.complete || stream.destroyed) return
    let bytes = 0
    const stop = (): void => stream.close(constants.NGHTTP2_NO_ERROR)
    const timer = setTimeout(stop, longestMs)
    stream.once('close', () => clearTimeout(timer))
    req.once('end', () => clearTimeout(timer))
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > mostBytes) stop()
    })
    req.resume()
  })
}
