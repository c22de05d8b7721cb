// Time limit for request bodies, at every path and over both protocols. Node has one limit for all, which is off, since an upload
// of gigabytes has no fixed duration. Uploads to the registry have a limit on silence instead, and after the response the same
// limit as all others.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import { lateBody } from '#edge/request-limits.ts'
import { Slots } from '#lib/caches/slots.ts'
import type { AppError } from '#lib/errors.ts'

export type SlowBodies = {
  /** Call it for each request. `refuse` responds with an error; without it, the request is only cut off. */
  watch(req: IncomingMessage, res: ServerResponse, refuse: Refuse | undefined): void
  stop(): void
}

type Refuse = (error: AppError) => void

/** A request whose body is still arriving. */
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
      // Once the response is sent, Node does not notify the request of a disconnected client.
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
    // Nothing reads the body any more, but the connection would accept it forever.
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

  // An entry point with a deadline responds first, in its own format.
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
 * Closes the stream of a request whose response is finished while its body is still arriving (RFC 9113, 8.1). A reset at once
 * would hold back the frame that ends the response, and clients drop a response without an end. So the rest of the body is read
 * and dropped for a moment first.
 */
function dropUnreadBody(req: IncomingMessage, stream: ServerHttp2Stream): void {
  // Node itself resets a finished stream that nothing reads.
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
