// Limits on bodies over HTTP/1.1. Each chunk costs the parser some microseconds, whatever its size, and one read of the socket
// can bring hundreds of thousands. Node reads up to 2 MiB of each connection in one turn of the event loop, so bodies take turns.
import { AsyncLocalStorage } from 'node:async_hooks'
import { IncomingMessage } from 'node:http'
import { turns } from '#lib/scheduling/turns.ts'

/** Chunks below `smallBytes` are counted. Clients that stream log lines stay far below the limit. */
const smallBytes = 128
const mostSmall = 16_384

/** A body waits for another turn after this number of bytes. */
const mostOfTurn = 128 * 1024

/** Code of the error for a body with too many small chunks. */
const smallChunksCode = 'PINFOLD_SMALL_CHUNKS'

/** Request that reads its body in turns, and whose connection is refused after too many small chunks. */
export class BoundedMessage extends IncomingMessage {
  #small = 0
  #ofTurn = 0
  #waits = false
  /** Runs work in the async context of the body's reader, since the parser has none. */
  #forReader: (<T>(work: () => T) => T) | undefined

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null || chunk.length >= smallBytes || ++this.#small <= mostSmall) {
      this.#ofTurn += chunk?.length ?? 0
      // Node stops reading the socket at `false`, and continues with `_read`.
      return super.push(chunk, encoding) && this.#ofTurn < mostOfTurn
    }
    if (this.#small === mostSmall + 1) {
      const error = Object.assign(new Error('too many small chunks in a request body'), { code: smallChunksCode })
      const { server } = this.socket as { server?: NodeJS.EventEmitter }
      server?.emit('clientError', error, this.socket)
    }
    // The rest is not read.
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
