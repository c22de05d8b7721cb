// Limits on the chunks of HTTP/1.1 bodies. Each chunk costs the parser some microseconds, even if it is tiny, and one read of the
// socket can contain hundreds of thousands. Node also reads up to 2 MiB of each connection in one turn of the event loop, so
// bodies are spread over several turns.
import { AsyncLocalStorage } from 'node:async_hooks'
import { IncomingMessage } from 'node:http'
import { turns } from '#lib/scheduling/turns.ts'

/**
 * Number of bytes below which a chunk counts as small. Clients that stream log lines send far fewer small chunks than the limit.
 */
const smallBytes = 128
const mostSmall = 16_384

/** Number of bytes of one body that are read in one turn of the event loop. */
const mostOfTurn = 128 * 1024

/** Code of the error for a body with too many small chunks. */
const smallChunksCode = 'PINFOLD_SMALL_CHUNKS'

/** Request whose body is read over several turns of the event loop. After too many small chunks, its connection gets an error. */
export class BoundedMessage extends IncomingMessage {
  #small = 0
  #ofTurn = 0
  #waits = false
  /** Runs work in the async context of the code that reads the body. Node's parser has no such context. */
  #forReader: (<T>(work: () => T) => T) | undefined

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null || chunk.length >= smallBytes || ++this.#small <= mostSmall) {
      this.#ofTurn += chunk?.length ?? 0
      // After `false`, Node stops reading the socket until `_read` is called.
      return super.push(chunk, encoding) && this.#ofTurn < mostOfTurn
    }
    if (this.#small === mostSmall + 1) {
      const error = Object.assign(new Error('too many small chunks in a request body'), { code: smallChunksCode })
      const { server } = this.socket as { server?: NodeJS.EventEmitter }
      server?.emit('clientError', error, this.socket)
    }
    // Returns false, so the rest of the body is not read.
    return false
  }

  override _read(size: number): void {
    if (this.#waits) return
    this.#forReader ??= AsyncLocalStorage.snapshot()
    if (this.#ofTurn < mostOfTurn) super._read(size)
    else void this.#readLater(size)
  }

  async #readLater(size: number): Promise<void> {
    this.#waits = true
    await this.#forReader!(() => turns.next())
    this.#waits = false
    this.#ofTurn = 0
    if (!this.destroyed) super._read(size)
  }
}
