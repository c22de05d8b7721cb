// Reads objects of a bucket. After an interruption, a read continues at the same position.
import type { IncomingMessage } from 'node:http'
import { Readable, type Writable } from 'node:stream'
import { type Content, ContentMissing, type Located, type Range, type Reading } from '../blobs.ts'
import { type Client, Refused, type Turn } from './client.ts'

/** Most interruptions in a row without any received byte. */
const mostBreaks = 3

/**
 * Opens an object. Resolves when the response headers arrive and announce the requested number of bytes. Rejects with
 * ContentMissing if the object is missing or has another size. After an interruption, the same reserved connection is used.
 */
export async function readObject(client: Client, blob: Located, reading: Reading = {}): Promise<Content> {
  const { location, size } = blob
  const { start, end } = reading.range ?? { start: 0, end: size - 1 }
  if (start > end)
    return contentOf(
      () => Readable.from([]),
      () => {},
    )
  const gone = new AbortController()
  const turn = await client.turn(reading.client ? 'streamed' : 'read', reading.client ?? gone.signal)
  const open = (from: number) => openRange(client, turn, blob, { start: from, end }, gone.signal)
  const first = await open(start).catch((error: unknown) => {
    turn.free()
    throw error
  })
  let isBegun = false
  // If nobody reads the body, the response times out and closes. Then the reserved connection is freed here.
  first.once('close', () => {
    if (!isBegun) turn.free()
  })

  async function* bytes(): AsyncGenerator<Buffer> {
    isBegun = true
    let at = start
    let answer = first
    for (let breaks = 0; ; breaks++) {
      try {
        for await (const chunk of answer as AsyncIterable<Buffer>) {
          if (at + chunk.length > end + 1) throw new Error(`${location} has more bytes than it should`)
          at += chunk.length
          breaks = 0
          yield chunk
        }
        if (at > end) return
      } catch (error) {
        if (gone.signal.aborted || breaks >= mostBreaks) throw error
      }
      if (breaks >= mostBreaks) throw new Error(`${location} ends after ${at} of ${size} bytes`)
      answer = await open(at)
    }
  }
  return contentOf(bytes, () => {
    gone.abort()
    turn.free()
  })
}

/** Content of an object. `end` is called after the last byte, or when the reader stops earlier. */
function contentOf(bytes: () => AsyncIterable<Buffer>, end: () => void): Content {
  return {
    stream() {
      const stream = Readable.from(bytes(), { objectMode: false, highWaterMark: 1 << 20 })
      stream.once('close', end)
      return stream
    },
    async sendTo(target) {
      try {
        for await (const chunk of bytes()) await write(target, chunk)
        target.end()
      } finally {
        end()
      }
    },
  }
}

async function openRange(
  client: Client,
  turn: Turn,
  { location, size }: Located,
  { start, end }: Range,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const isWhole = start === 0 && end === size - 1
  const headers = isWhole ? {} : { range: `bytes=${start}-${end}` }
  const ask = { operation: 'GetObject', method: 'GET', key: location, headers, signal } as const
  const res = await client.open(ask, turn).catch((error: unknown) => {
    if (error instanceof Refused && error.status === 404) throw new ContentMissing(location, { cause: error })
    // With 416, the object exists but is shorter than the blob.
    if (error instanceof Refused && error.status === 416) throw createSizeError(location, size)
    throw error
  })
  const range = res.headers['content-range']
  const fits = isWhole || range === `bytes ${start}-${end}/${size}`
  if (fits && res.headers['content-length'] === String(end - start + 1)) return res
  res.destroy()
  throw createSizeError(location, size)
}

/** Error if an object has another size than the blob. No byte of it is sent to the client. */
const createSizeError = (location: string, size: number) =>
  new ContentMissing(`${location} does not have ${size} bytes`)

/** Writes a chunk. Resolves when the target accepts more data. Rejects if the client disconnects. */
async function write(target: Writable, chunk: Buffer): Promise<void> {
  if (target.write(chunk)) return
  await new Promise<void>((resolve, reject) => {
    const drained = (): void => {
      target.off('close', closed)
      resolve()
    }
    const closed = (): void => {
      target.off('drain', drained)
      reject(new Error('the client disconnected'))
    }
    if (target.destroyed) return closed()
    target.once('drain', drained).once('close', closed)
  })
}
