// Conditions of a client on the state that its write is meant for (RFC 9110, 13.1.1 and 13.1.2).
import { AppError, invalid } from './errors.ts'

/** Entity tags without their quotes, or `*` for any. */
export type EntityTags = '*' | readonly string[]

/** `match`: one of these has to be there now. `noneMatch`: none of these may be; of `*`, nothing at all. */
export type Precondition = { match: EntityTags | undefined; noneMatch: EntityTags | undefined }

/** A header or an item of gRPC metadata; absent where the client sends none. */
export type Said = string | undefined

const maxTags = 50
const maxLength = 16 * 1024
const one = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/

/**
 * Returns `undefined` if the client sends no precondition. Throws INVALID_ARGUMENT, which names the header, for text that is no
 * list of tags.
 */
export function readPrecondition(ifMatch: Said, ifNoneMatch: Said): Precondition | undefined {
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined
  const match = ifMatch === undefined ? undefined : readTags('If-Match', ifMatch, false)
  const noneMatch = ifNoneMatch === undefined ? undefined : readTags('If-None-Match', ifNoneMatch, true)
  return { match, noneMatch }
}

/** A weak tag means that two states are equivalent, which is not enough for a change. */
function readTags(field: string, text: string, weak: boolean): EntityTags {
  const trimmed = text.trim()
  if (trimmed === '*') return trimmed
  const parts = trimmed.length > maxLength ? [] : trimmed.split(',', maxTags + 1).map((part) => one.exec(part.trim()))
  if (parts.length === 0 || parts.length > maxTags || parts.includes(null)) {
    throw invalid({ field, description: `must be * or at most ${maxTags} entity tags in quotes, such as "sha256:…"` })
  }
  return parts.flatMap((part) => (weak || part![1] === undefined ? [part![2]!] : []))
}

/** `present` has the tags of the present state, which are equivalent; empty if the resource does not exist. */
export function holds({ match, noneMatch }: Precondition, present: readonly string[]): boolean {
  const has = (tags: EntityTags): boolean => present.some((tag) => tags === '*' || tags.includes(tag))
  return (match === undefined || has(match)) && (noneMatch === undefined || !has(noneMatch))
}

/**
 * The write was meant for another state than the present one. `present` is its entity tag, if the caller is allowed to know it.
 */
export function preconditionFailed(message: string, present?: string): AppError {
  const metadata: Record<string, string> = present === undefined ? {} : { etag: present }
  return new AppError('ABORTED', message, { reason: 'ETAG_MISMATCH', http: 412, metadata })
}
