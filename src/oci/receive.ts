// Receives bodies of uploads and writes them as they arrive, with a constant amount of memory.
import type { Hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Part } from '#blobs/blobs.ts'
import { ContentTooLarge, StoreFull } from '#blobs/blobs.ts'
import { turnBytes, turns } from '#lib/scheduling/turns.ts'
import { OciError } from './errors.ts'
import type { Visit } from './visit.ts'

/** Larger writes are not faster (measured). One is in progress while the next is collected. */
const writeBytes = 1 << 20

/** `cut` is true if the client disconnected before the end of the body. The bytes received before that are written. */
export type Receipt = { size: number; cut: boolean }

/**
 * Writes the body of the request to `part`. Resolves when all of it is written, but not yet synced to disk. `take` is called with
 * each size before the write, and may throw.
 */
export async function receive(
  { req, registry }: Visit,
  part: Part,
  hash: Hash | undefined,
  take: (bytes: number) => void,
): Promise<Receipt> {
  let size = 0
  let batch: Buffer[] = []
  let collected = 0
  let writing: Promise<void> = Promise.resolve()
  let cut = false
  const write = (): Promise<void> => {
    const chunks = batch
    batch = []
    collected = 0
    const written = part.write(chunks)
    // The result is checked before the next write. Until then a rejection would count as unhandled.
    written.catch(() => {})
    return written
  }
  // The default would close the connection if a write fails, and the client would not get the error.
  const body = req.iterator({ destroyOnReturn: false })
  try {
    for (;;) {
      const next = await body.next().catch(() => {
        cut = true
        return { done: true, value: undefined } as const
      })
      if (next.done) break
      const chunk = next.value as Buffer
      take(chunk.length)
      hash?.update(chunk)
      registry.app.buffers.passed(chunk.length)
      batch.push(chunk)
      size += chunk.length
      collected += chunk.length
      if (collected < writeBytes) continue
      // The blob store may be slow meanwhile, so the idle timeout is off.
      req.setTimeout(0)
      await writing
      req.setTimeout(registry.app.config.requestTimeoutMs)
      writing = write()
    }
  } finally {
    await body.return?.()
  }
  // A reset HTTP/2 stream ends like a complete one.
  if ('stream' in req && (req.stream as ServerHttp2Stream).rstCode !== 0) cut = true
  // The server is the slow side from here on, so the idle timeout is off.
  req.setTimeout(0)
  await writing
  if (batch.length > 0) await write()
  return { size, cut }
}

/** Reads a body into memory. Throws SIZE_INVALID if it is larger than `maxBytes`. */
export async function receiveSmall({ req }: Visit, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new OciError('SIZE_INVALID', `the request body exceeds the limit of ${maxBytes} bytes`)
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBytes) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof OciError) throw error
    throw new OciError('SIZE_INVALID', 'the connection ended before the end of the request body; send it again', {
      status: 400,
    })
  }
  req.setTimeout(0)
  if (size > turnBytes) await turns.next()
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)
}

/** True if the request has a body. Over HTTP/2 a body may come without a length. */
export function hasBody({ req }: Visit): boolean {
  if ('stream' in req) return !(req.stream as ServerHttp2Stream).endAfterHeaders
  return req.headers['transfer-encoding'] !== undefined || (req.headers['content-length'] ?? '0') !== '0'
}

/** Error for the client if a body could not be stored. */
export function storeProblem(error: unknown): unknown {
  if (error instanceof ContentTooLarge) return new OciError('SIZE_INVALID', error.message, { cause: error })
  if (!(error instanceof StoreFull)) return error
  return new OciError('UNAVAILABLE', 'the blob storage of the server is full; its operator must free or add space', {
    status: 507,
    cause: error,
  })
}

const lingerMs = 1000
const lingerBytes = 32 * 1024 * 1024

/**
 * Reads for a short time what a refused client still sends. With unread bytes the connection would be reset, and the client could
 * not read the error.
 */
export async function linger(req: IncomingMessage): Promise<void> {
  if (req.complete || req.destroyed || req.httpVersionMajor === 2 || req.headers.expect !== undefined) return
  await new Promise<void>((resolve) => {
    let bytes = 0
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > lingerBytes) done()
    }
    const timer = setTimeout(() => done(), lingerMs)
    const done = (): void => {
      clearTimeout(timer)
      req.off('data', take).off('end', done).off('close', done)
      resolve()
    }
    req.on('data', take).once('end', done).once('close', done)
  })
}
