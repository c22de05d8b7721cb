// Receives the bodies of uploads. Bodies are written while they arrive, with a constant amount of memory.
import type { Hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Part } from '#blobs/blobs.ts'
import { ContentTooLarge, StoreFull } from '#blobs/blobs.ts'
import { AppError } from '#lib/errors.ts'
import { countedBytes } from '#lib/net/byte-budget.ts'
import { turnBytes, turns } from '#lib/scheduling/turns.ts'
import { OciError } from './errors.ts'
import type { Visit } from './visit.ts'

/** Size of one write, in bytes. Larger writes are not faster (measured). While one write runs, the next one is collected. */
const writeBytes = 1 << 20

/** Size of one write while too many bytes of uploads are in memory. */
const crowdedBytes = 64 * 1024
/** Average size below which chunks are joined, in bytes. */
const smallBytes = 1024

/** Chunks for one write, and their bytes in memory. `uncounted` are bytes above the limit on bytes of uploads. */
type Batch = { chunks: Buffer[]; counted: number; uncounted: number }
const emptyBatch = (): Batch => ({ chunks: [], counted: 0, uncounted: 0 })

/** `cut` is true if the client disconnected before the end of the body. The bytes that arrived are written even then. */
export type Receipt = { size: number; cut: boolean }

/**
 * Writes the body of the request to `part`. Resolves when all bytes are written, but not yet synced to disk. `take` is called
 * with the size of each chunk before the write, and may throw to stop. While too many bytes of uploads are in memory, writes are
 * small, and nothing is read during a write.
 */
export async function receive(
  { req, registry, call }: Visit,
  part: Part,
  hash: Hash | undefined,
  take: (bytes: number) => void,
): Promise<Receipt> {
  let size = 0
  let batch = emptyBatch()
  let writing: Promise<void> = Promise.resolve()
  let cut = false
  const held = call.openUpload()
  let unreserved = 0
  const writeBatch = async ({ chunks, counted, uncounted }: Batch): Promise<void> => {
    await part.write(joinSmall(chunks), uncounted > 0)
    const before = unreserved
    unreserved = part.unreserved ?? 0
    held.giveBack(Math.max(0, counted + before - unreserved))
  }
  const write = (): Promise<void> => {
    const written = writeBatch(batch)
    batch = emptyBatch()
    // The error is handled before the next write. This handler only prevents an unhandled rejection until then.
    written.catch(() => {})
    return written
  }
  // Without this option, Node would close the connection if a write fails, and the client would not receive the error.
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
      size += chunk.length
      batch.chunks.push(chunk)
      const bytes = countedBytes(chunk)
      if (held.tryTake(bytes)) batch.counted += bytes
      else batch.uncounted += bytes
      const isCrowded = batch.uncounted > 0
      if (batch.counted + batch.uncounted < (isCrowded ? crowdedBytes : writeBytes)) continue
      // The idle timeout is off while the server waits for the blob store.
      req.setTimeout(0)
      await writing
      writing = write()
      if (isCrowded) await writing
      req.setTimeout(registry.app.config.requestTimeoutMs)
    }
  } finally {
    await body.return?.()
  }
  // An HTTP/2 stream that the client reset ends the iterator without an error.
  if ('stream' in req && (req.stream as ServerHttp2Stream).rstCode !== 0) cut = true
  // The body has arrived. The idle timeout is off while the server waits for the blob store.
  req.setTimeout(0)
  await writing
  if (batch.chunks.length > 0) await write()
  return { size, cut }
}

/** Joins chunks that are small on average. A bucket keeps them for long, and a chunk of one byte takes hundreds of bytes. */
function joinSmall(chunks: Buffer[]): Buffer[] {
  const size = chunks.reduce((sum, { length }) => sum + length, 0)
  return size < chunks.length * smallBytes ? [Buffer.concat(chunks, size)] : chunks
}

/**
 * Reads a body into memory. Throws SIZE_INVALID if it is larger than `maxBytes`, and TOOMANYREQUESTS if too many bytes of other
 * bodies are in memory.
 */
export async function receiveSmall({ req, call }: Visit, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new OciError('SIZE_INVALID', `the request body exceeds the limit of ${maxBytes} bytes`)
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBytes) throw tooLarge()
      call.holdBody(chunk)
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof OciError || error instanceof AppError) throw error
    throw new OciError('SIZE_INVALID', 'the connection ended before the end of the request body; send it again', {
      status: 400,
    })
  }
  req.setTimeout(0)
  if (size > turnBytes) await turns.next()
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)
}

/** True if the request has a body. An HTTP/2 request can have a body without Content-Length. */
export function hasBody({ req }: Visit): boolean {
  if ('stream' in req) return !(req.stream as ServerHttp2Stream).endAfterHeaders
  return req.headers['transfer-encoding'] !== undefined || (req.headers['content-length'] ?? '0') !== '0'
}

/** Converts an error of the blob store to an error for the client. Returns other errors unchanged. */
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
 * Reads the rest of a refused request, for at most one second. With unread bytes, the operating system would reset the
 * connection, and the client could not read the error.
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
