// Preconditions that a client sends with a write (RFC 9110, 13.1.1 and 13.1.2).
import { AppError, invalid } from './errors.ts'

/** Entity tags without quotes, or `*` for any. */
export type EntityTags = '*' | readonly string[]

/**
 * `match`: the resource must have one of these entity tags. `noneMatch`: it must have none of them; with `*`, it must not exist.
 */
export type Precondition = { match: EntityTags | undefined; noneMatch: EntityTags | undefined }

/** Value of a header or of gRPC metadata. Undefined if the client sends none. */
export type HeaderValue = string | undefined

const maxTags = 50
const maxLength = 16 * 1024
const one = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/

/**
 * Reads the preconditions. Returns `undefined` if the client sends none. Throws INVALID_ARGUMENT with the name of the header for
 * text that is not a list of entity tags.
 */
export function readPrecondition(ifMatch: HeaderValue, ifNoneMatch: HeaderValue): Precondition | undefined {
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined
  const match = ifMatch === undefined ? undefined : readTags('If-Match', ifMatch, false)
  const noneMatch = ifNoneMatch === undefined ? undefined : readTags('If-None-Match', ifNoneMatch, true)
  return { match, noneMatch }
}

/** Weak tags are refused: they mean that two states are equivalent, which is not enough for a change. */
function readTags(field: string, text: string, weak: boolean): EntityTags {
  const trimmed = text.trim()
  if (trimmed === '*') return trimmed
  const parts = trimmed.length > maxLength ? [] : trimmed.split(',', maxTags + 1).map((part) => one.exec(part.trim()))
  if (parts.length === 0 || parts.length > maxTags || parts.includes(null)) {
    throw invalid({ field, description: `must be * or at most ${maxTags} entity tags in quotes, such as "sha256:…"` })
  }
  return parts.flatMap((part) => (weak || part![1] === undefined ? [part![2]!] : []))
}

/** Checks the preconditions. `present` has all entity tags of the present state. It is empty if the resource does not exist. */
export function holds({ match, noneMatch }: Precondition, present: readonly string[]): boolean {
  const has = (tags: EntityTags): boolean => present.some((tag) => tags === '*' || tags.includes(tag))
  return (match === undefined || has(match)) && (noneMatch === undefined || !has(noneMatch))
}

/** Error for a resource that has changed. `present` is its present entity tag, if the caller is allowed to see it. */
export function preconditionFailed(message: string, present?: string): AppError {
  const metadata: Record<string, string> = present === undefined ? {} : { etag: present }
  return new AppError('ABORTED', message, { reason: 'ETAG_MISMATCH', http: 412, metadata })
}
