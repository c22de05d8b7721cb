import type { IncomingMessage } from 'node:http'
import type { Range } from '#blobs/blobs.ts'
import { OciError } from './errors.ts'

/**
 * The part of a blob that a request is for (RFC 9110, 14.2). Nothing where it is for all of it: without a range, with
 * several, or with one of another unit. Throws 416 for a range outside.
 */
export function rangeOf({ method, headers }: IncomingMessage, size: number, etag: string): Range | undefined {
  const { range } = headers
  if (range === undefined || method !== 'GET') return undefined
  const condition = headers['if-range']
  if (condition !== undefined && condition !== etag) return undefined
  const match = /^bytes=(\d*)-(\d*)$/.exec(range.trim())
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  const [, first, last] = match
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (start > end || start >= size) {
    throw new OciError('SIZE_INVALID', `the blob has ${size} bytes`, {
      status: 416,
      headers: { 'content-range': `bytes */${size}` },
    })
  }
  return { start, end }
}
