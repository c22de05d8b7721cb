// The rest of a body that nobody reads, of a request over HTTP/2 that is answered already.
import type { IncomingMessage } from 'node:http'
import { constants, type ServerHttp2Stream } from 'node:http2'

const longestMs = 1000
const mostBytes = 32 * 1024 * 1024

/**
 * Closes the stream of a request that is answered while its body is still coming (RFC 9113, 8.1). A reset right after the
 * answer would keep back the frame that ends it, and clients drop an answer without an end. So the rest of the body is read
 * and dropped for a moment first.
 */
export function dropUnreadBody(req: IncomingMessage, stream: ServerHttp2Stream): void {
  // Node itself resets a stream that is finished while nobody reads it.
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
