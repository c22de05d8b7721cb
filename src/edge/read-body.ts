import type { IncomingMessage } from 'node:http'
import { AppError, type Detail, invalid } from '#lib/errors.ts'
import type { HttpArrival } from './doors.ts'

/** A form comes before anybody has shown a token of ours. */
export const maxFormBytes = 64 * 1024

/** Whether the body is a form. */
export function isForm({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.toLowerCase().startsWith('application/x-www-form-urlencoded') ?? false
}

/** Reads on when the body is too large, and keeps nothing, so that the answer arrives and the connection can go on. */
export async function readBody(arrival: HttpArrival, limit: number): Promise<Buffer> {
  arrival.awaitsBody = true
  try {
    return await wholeBody(arrival.req, limit)
  } finally {
    arrival.awaitsBody = false
  }
}

function wholeBody(req: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(req.headers['content-length'] ?? 0) > limit) return reject(tooLarge(limit))
    const chunks: Buffer[] = []
    let length = 0
    req.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= limit) chunks.push(chunk)
      else reject(tooLarge(limit))
    })
    req.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    const gone = (cause?: unknown) =>
      reject(new AppError('CANCELLED', 'the client went away before it had sent the whole body', { cause }))
    req.once('error', gone)
    req.once('close', gone)
    if (req.destroyed) gone() // its `close` has passed, while the token was looked at
  })
}

function tooLarge(limit: number): AppError {
  const violation = { field: 'body', description: `must be at most ${limit} bytes` }
  const details: Detail[] = [{ type: 'BadRequest', fieldViolations: [violation] }]
  return new AppError('INVALID_ARGUMENT', invalid(violation).message, { http: 413, details })
}
