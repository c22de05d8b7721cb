// Reading from the bucket: what breaks off on the way is asked for again from where it broke off.
import type { IncomingMessage } from 'node:http'
import { Readable, type Writable } from 'node:stream'
import { type Content, ContentMissing, type Located, type Range } from '../blobs.ts'
import { type Client, Refused } from './client.ts'

/** How often in a row it may break off without a byte in between. */
const mostBreaks = 3

/** Resolves once the store has begun to answer, with as many bytes as were asked for. Rejects with ContentMissing. */
export async function readObject(client: Client, { location, size }: Located, range?: Range): Promise<Content> {
  const { start, end } = range ?? { start: 0, end: size - 1 }
  const gone = new AbortController()
  const open = (from: number) => openRange(client, { location, size }, { start: from, end }, gone.signal)
  const first = start > end ? undefined : await open(start)

  async function* bytes(): AsyncGenerator<Buffer> {
    if (!first) return
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
  return {
    stream() {
      const stream = Readable.from(bytes(), { objectMode: false, highWaterMark: 1 << 20 })
      stream.once('close', () => gone.abort())
      return stream
    },
    async sendTo(target) {
      try {
        for await (const chunk of bytes()) await write(target, chunk)
        target.end()
      } finally {
        gone.abort()
      }
    },
  }
}

async function openRange(
  client: Client,
  { location, size }: Located,
  { start, end }: Range,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const isWhole = start === 0 && end === size - 1
  const headers = isWhole ? {} : { range: `bytes=${start}-${end}` }
  const ask = { operation: 'GetObject', method: 'GET', key: location, headers, signal } as const
  const res = await client.open(ask).catch((error: unknown) => {
    if (error instanceof Refused && error.status === 404) throw new ContentMissing(location, { cause: error })
    // There is something, but shorter than where we want to read.
    if (error instanceof Refused && error.status === 416) throw otherSize(location, size)
    throw error
  })
  const range = res.headers['content-range']
  const fits = isWhole || range === `bytes ${start}-${end}/${size}`
  if (fits && res.headers['content-length'] === String(end - start + 1)) return res
  res.destroy()
  throw otherSize(location, size)
}

/** Nothing of it is shown to anybody: it is not what was pushed. */
const otherSize = (location: string, size: number) => new ContentMissing(`${location} does not have ${size} bytes`)

/** Resolves when there is room for more. */
async function write(target: Writable, chunk: Buffer): Promise<void> {
  if (target.write(chunk)) return
  await new Promise<void>((resolve, reject) => {
    const drained = (): void => {
      target.off('close', closed)
      resolve()
    }
    const closed = (): void => {
      target.off('drain', drained)
      reject(new Error('the client went away'))
    }
    if (target.destroyed) return closed()
    target.once('drain', drained).once('close', closed)
  })
}
