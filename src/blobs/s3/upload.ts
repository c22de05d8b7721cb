// Upload of content to a bucket. Small content is sent in one request, and larger content as a multipart upload. All parts but
// the last have the same size, since some stores require that. Larger content has larger parts, since a multipart upload can have
// at most 10,000.
import { createHash } from 'node:crypto'
import type { Memory, Reserved } from '#lib/scheduling/memory.ts'
import { ContentTooLarge, type Part } from '../blobs.ts'
import { type Client, Refused } from './client.ts'
import { escaped, textOf } from './xml.ts'

const leastPieceBytes = 16 * 1024 * 1024
/** Largest part of a multipart upload, in bytes. One upload has at most three parts in memory. */
const mostPieceBytes = 64 * 1024 * 1024
const mostPieces = 10_000
/** Part sizes are chosen for this number of parts, so that content can be longer than expected. */
const plannedPieces = 9000
/** Most parts that are sent at the same time, while the next one is filled. */
const inFlight = 2
const mebibyte = 1024 * 1024

/** Size in bytes of every part but the last. The size has a maximum, since clients choose `expected`. */
export function pieceBytes(expected: number): number {
  const needed = Math.ceil(expected / plannedPieces / mebibyte) * mebibyte
  return Math.min(mostPieceBytes, Math.max(leastPieceBytes, needed))
}

/**
 * The first bytes of an upload need no reserved memory, so that small uploads do not wait. The request counts them with its own
 * buffers (src/edge/body-bytes.ts).
 */
const unreservedBytes = mebibyte

const createTooLarge = () => new ContentTooLarge(`the blob store accepts at most ${mostPieces * mostPieceBytes} bytes`)

type Filling = { chunks: Buffer[]; size: number; reserved?: Reserved }

/**
 * Creates an upload to `key`, the permanent location of the content. `expected` is 0 if the size is unknown. The reserved memory
 * counts against the share of `owner`.
 */
export function createUpload(client: Client, memory: Memory, key: string, expected: number, owner: string): Part {
  const whole = pieceBytes(expected)
  if (expected > mostPieces * mostPieceBytes) throw createTooLarge()
  const gone = new AbortController()
  const { signal } = gone
  const pieces = createPieces(client, key, signal)
  let filling: Filling | undefined
  let total = 0
  let isSending = false
  let isThere = false
  let mayBeThere = false

  const reserve = async (piece: Filling): Promise<void> => {
    // Small content reserves only its expected size. The last part of large content may reserve more than it needs.
    const bytes = expected > 0 ? Math.min(expected, whole) : whole
    piece.reserved = await memory.reserve(bytes, signal, {
      owner,
      filled: () => (filling === piece && !isSending && piece.size < whole ? piece.size : undefined),
      take(why) {
        gone.abort(why)
        if (filling === piece) filling = undefined
      },
    })
  }
  const fill = async (chunk: Buffer, mustReserve: boolean): Promise<Buffer> => {
    signal.throwIfAborted()
    if (filling?.size === whole) await sendFilling()
    filling ??= { chunks: [], size: 0 }
    if (!filling.reserved && (mustReserve || total + chunk.length > unreservedBytes)) await reserve(filling)
    const taken = chunk.subarray(0, whole - filling.size)
    filling.chunks.push(taken)
    filling.size += taken.length
    total += taken.length
    return chunk.subarray(taken.length)
  }
  const sendFilling = async (): Promise<void> => {
    const piece = filling
    filling = undefined
    if (piece) await pieces.send(piece)
  }
  const putWhole = async (digest: string | undefined): Promise<void> => {
    const { chunks } = filling ?? { chunks: [] }
    isSending = true
    const body = { body: chunks, digest: digest ?? digestOf({ chunks }) }
    await client.ask({ operation: 'PutObject', method: 'PUT', key, ...body, signal })
    filling?.reserved?.free()
    filling = undefined
  }

  return {
    name: key,
    get unreserved() {
      return filling && !filling.reserved ? filling.size : 0
    },
    async write(chunks, mustReserve = false) {
      for (const chunk of chunks) for (let rest = chunk; rest.length > 0; ) rest = await fill(rest, mustReserve)
    },
    async finish(digest) {
      if (isThere) return
      signal.throwIfAborted()
      mayBeThere = true
      if (pieces.begun()) {
        await sendFilling()
        await pieces.complete(total)
      } else await putWhole(digest)
      isThere = true
    },
    async discard() {
      gone.abort(new Error('the upload was aborted'))
      filling?.reserved?.free()
      filling = undefined
      await pieces.settled()
      // While the bucket is unavailable, the object is not deleted here. Garbage collection deletes it later.
      if (!client.isUp()) return
      if (!isThere) await pieces.abort()
      // The object may exist even after an error, if only the response was lost.
      const ask = { operation: 'DeleteObject', method: 'DELETE', key, retries: 0 } as const
      if (mayBeThere) await client.ask(ask).catch(() => {})
    },
  }
}

/** Multipart upload of content that is too large for one request. */
function createPieces(client: Client, key: string, signal: AbortSignal) {
  const etags: string[] = []
  const sending = new Set<Promise<void>>()
  let upload = ''
  let failure: { error: unknown } | undefined

  const put = async (piece: Filling, at: number): Promise<void> => {
    const query = [
      ['partNumber', String(at + 1)],
      ['uploadId', upload],
    ] as const
    const body = { body: piece.chunks, digest: digestOf(piece) }
    try {
      const { headers } = await client.ask({ operation: 'UploadPart', method: 'PUT', key, query, ...body, signal })
      etags[at] = String(headers.etag)
    } catch (error) {
      failure ??= { error }
    } finally {
      piece.reserved?.free()
    }
  }

  return {
    begun: () => upload !== '',
    /** Starts to send a part. Waits if too many parts are being sent. Rejects if an earlier part has failed. */
    async send(piece: Filling): Promise<void> {
      try {
        if (upload === '') upload = await createMultipart(client, key, signal)
        while (sending.size >= inFlight) await Promise.race(sending)
        if (failure) throw failure.error
        if (etags.length >= mostPieces) throw createTooLarge()
      } catch (error) {
        piece.reserved?.free()
        throw error
      }
      const sent = put(piece, etags.push('') - 1).then(() => {
        sending.delete(sent)
      })
      sending.add(sent)
    },
    async complete(total: number): Promise<void> {
      await Promise.all(sending)
      if (failure) throw failure.error
      await complete(client, key, { upload, etags, total, signal })
    },
    async settled(): Promise<void> {
      await Promise.all(sending)
    },
    /** Aborts the multipart upload. Never rejects. */
    async abort(): Promise<void> {
      if (upload !== '') await abort(client, key, upload).catch(() => {})
    },
  }
}

function digestOf({ chunks }: { chunks: readonly Buffer[] }): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

async function createMultipart(client: Client, key: string, signal: AbortSignal): Promise<string> {
  const query = [['uploads', '']] as const
  const { text } = await client.ask({ operation: 'CreateMultipartUpload', method: 'POST', key, query, signal })
  const upload = textOf(text, 'UploadId')
  if (!upload) throw new Error('the bucket started an upload without an upload ID')
  return upload
}

type Complete = { upload: string; etags: readonly string[]; total: number; signal: AbortSignal }

async function complete(client: Client, key: string, { upload, etags, total, signal }: Complete): Promise<void> {
  const parts = etags.map((etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`)
  const body = [Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)]
  const query = [['uploadId', upload]] as const
  try {
    await client.ask({ operation: 'CompleteMultipartUpload', method: 'POST', key, query, body, signal })
  } catch (error) {
    // With 404, the upload may be complete already: an earlier attempt succeeded, but its response was lost.
    const isOver = error instanceof Refused && error.status === 404
    if (!isOver || (await sizeOf(client, key, signal)) !== total) throw error
  }
}

/** Size of an object. Returns undefined if the object does not exist. */
export async function sizeOf(client: Client, key: string, signal?: AbortSignal): Promise<number | undefined> {
  try {
    const { headers } = await client.ask({ operation: 'HeadObject', method: 'HEAD', key, signal })
    return Number(headers['content-length'])
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  }
}

export async function abort(client: Client, key: string, upload: string): Promise<void> {
  const query = [['uploadId', upload]] as const
  await client.ask({ operation: 'AbortMultipartUpload', method: 'DELETE', key, query, retries: 1 })
}
