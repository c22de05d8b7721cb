import type { IncomingMessage } from 'node:http'
import { AppError, type Detail, invalid } from '#lib/errors.ts'
import { type JsonLimits, jsonProblem } from '#lib/json/json-limits.ts'
import { turnBytes, turns } from '#lib/scheduling/turns.ts'
import type { HttpArrival } from './entry-points.ts'

/** True if the Content-Type of the request is a form. */
export function isForm({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.toLowerCase().startsWith('application/x-www-form-urlencoded') ?? false
}

/**
 * Reads a body. Throws if it is too large, or if too many bytes of other bodies are in memory. Still reads the rest of such a
 * body and drops it, so that the client receives the response and the connection stays usable.
 */
export async function readBody(arrival: HttpArrival, limit: number): Promise<Buffer> {
  arrival.awaitsBody = true
  let pieces: Pieces
  try {
    pieces = await piecesOf(arrival, limit)
  } finally {
    arrival.awaitsBody = false
  }
  const { chunks, length } = pieces
  if (length > 0) requirePlain(arrival.req)
  // Waits for a later turn of the event loop. Many bodies can be complete in one turn, and joining the chunks of 4 MiB takes
  // milliseconds.
  if (length > turnBytes) await turns.next()
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length)
}

type Pieces = { chunks: Buffer[]; length: number }

function piecesOf(arrival: HttpArrival, limit: number): Promise<Pieces> {
  const { req } = arrival
  return new Promise((resolve, reject) => {
    if (Number(req.headers['content-length'] ?? 0) > limit) return reject(tooLarge(limit))
    let chunks: Buffer[] = []
    let length = 0
    let isRefused = false
    const refuse = (error: unknown): void => {
      isRefused = true
      chunks = []
      arrival.releaseBody()
      reject(error)
    }
    req.on('data', (chunk: Buffer) => {
      arrival.chargeTurn()
      if (isRefused) return
      length += chunk.length
      if (length > limit) return refuse(tooLarge(limit))
      try {
        arrival.holdBody(chunk)
        chunks.push(chunk)
      } catch (error) {
        refuse(error)
      }
    })
    req.once('end', () => resolve({ chunks, length }))
    const gone = (cause?: unknown) =>
      reject(new AppError('CANCELLED', 'the client disconnected before it had sent the whole body', { cause }))
    req.once('error', gone)
    req.once('close', gone)
    if (req.destroyed) gone() // The request was already closed while the token was verified, so `close` is not emitted again.
  })
}

/** Error for a body with a Content-Encoding, such as gzip. Clients may send the body again without one. */
export class EncodedBody extends AppError {
  constructor(encoding: string) {
    const text = `the body has the Content-Encoding "${encoding.slice(0, 32)}", which the API does not accept; send it uncompressed`
    super('INVALID_ARGUMENT', text, { http: 415 })
  }
}

function requirePlain({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') throw new EncodedBody(encoding)
}

function tooLarge(limit: number): AppError {
  const violation = { field: 'body', description: `must be at most ${limit} bytes` }
  const details: Detail[] = [{ type: 'BadRequest', fieldViolations: [violation] }]
  return new AppError('INVALID_ARGUMENT', invalid(violation).message, { http: 413, details })
}

/** Limits of JSON in a body, far above any valid request. JSON within them is parsed within milliseconds. */
export const jsonLimits: JsonLimits = { depth: 64, members: 20_000 }

/**
 * Throws INVALID_ARGUMENT if a JSON body exceeds the limits. Call it before JSON.parse, which would use memory for the values.
 */
export function checkJson(body: Uint8Array, limits: JsonLimits = jsonLimits): void {
  const problem = jsonProblem(body, limits)
  if (problem !== undefined) throw invalid({ field: 'body', description: problem })
}
