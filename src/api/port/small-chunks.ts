// Limit on the number of small chunks in a body over HTTP/1.1. Each chunk costs the parser some microseconds, whatever it
// holds, and one read of the socket can bring hundreds of thousands.
import { IncomingMessage } from 'node:http'

/** Chunks below `smallBytes` are counted. Clients that stream lines of a log stay far below the limit. */
const smallBytes = 128
const mostSmall = 16_384

/** The code of the error that a body with too many small chunks is refused with. */
export const smallChunksCode = 'PINFOLD_SMALL_CHUNKS'

/** Request whose connection is refused once its body has had too many small chunks. */
export class BoundedMessage extends IncomingMessage {
  #small = 0

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null || chunk.length >= smallBytes || ++this.#small <= mostSmall) return super.push(chunk, encoding)
    if (this.#small === mostSmall + 1) {
      const error = Object.assign(new Error('a body has too many small chunks'), { code: smallChunksCode })
      const { server } = this.socket as { server?: NodeJS.EventEmitter }
      server?.emit('clientError', error, this.socket)
    }
    // Nobody reads the rest.
    return false
  }
}
