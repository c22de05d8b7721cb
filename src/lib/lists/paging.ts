import { hash } from 'node:crypto'
import type { SecretCipher } from '../crypto/secret-cipher.ts'
import { invalid } from '../errors.ts'
import { camelCase, type Field, snakeCase } from '../fields.ts'

/** Fields that all list requests have. */
export type PageRequest = { pageSize: number; pageToken: string; orderBy: string; skip: number }

/** Start, order and size of a page. Items with the same sort value are sorted by `uid`. */
export type Page = {
  order: { field: string; column: string; desc: boolean }
  after: { value: string; uid: string } | undefined
  size: number
  skip: number
  /** Hash of method, caller, order and filters. A page token is valid only for a list with the same hash. */
  binding: string
}

/** Range of numbered rows: at most `most` rows after the number `after`. */
export type Step = { after: number; most: number }

/** Part of the hierarchy that a list contains. Two branches of one list never overlap. */
export type Branch = { below: string } | { childrenOf: string } | { uids: readonly string[] }

/**
 * Result of a list: one page, the total, and the token of the next page. If counting could take too long, the total is `number |
 * undefined`.
 */
export type Listed<T, N extends number | undefined = number> = { items: T[]; total: N; next: string }

export type ListRules = {
  fields: Readonly<Record<string, Field>>
  /** Default order, in the form of `order_by`. Its field need not be one that requests can sort by. */
  defaultOrder: string
  /** True if the list has only the default order. Then `order_by` must be empty. */
  isFixed?: boolean
}

const defaultSize = 50
const maxSize = 200
/** Maximum of `skip`: the largest 32-bit integer, far above any useful value. */
const maxSkip = 2 ** 31 - 1
const tokenLifetime = 3 * 24 * 60 * 60 * 1000
const tokenPurpose = 'page-token'
const tokenVersion = 2

const synonyms: Record<string, string> = { createdAt: 'createTime', updatedAt: 'updateTime' }

/** Content of a page token. `s` is the number of items that the next page still has to skip. */
type Token = { v: number; b: string; k: string; u: string; t: number; s?: number }

/** Parts of a Call that paging needs. */
export type PagingCall = {
  app: { cipher: SecretCipher }
  method: { fullName: string }
  caller: { uid: string }
  now: string
}

/** Reads the paging fields of a list request. `filters` has all other parameters that change the result. */
export function readPage(call: PagingCall, request: PageRequest, rules: ListRules, filters: unknown): Page {
  if (request.pageSize < 0) throw invalid({ field: 'page_size', description: 'must not be negative' })
  if (request.skip < 0) throw invalid({ field: 'skip', description: 'must not be negative' })
  if (request.skip > maxSkip) throw invalid({ field: 'skip', description: `must be at most ${maxSkip}` })
  if (rules.isFixed && request.orderBy !== '') throw invalid({ field: 'order_by', description: 'must be empty' })
  const order = readOrder(request.orderBy, rules)
  const binding = bindingOf([call.method.fullName, call.caller.uid, order.field, order.desc, filters])
  const token = readToken(request.pageToken, binding, call.app.cipher, Date.parse(call.now))
  return {
    order,
    after: token && { value: token.k, uid: token.u },
    size: request.pageSize === 0 ? defaultSize : Math.min(request.pageSize, maxSize),
    skip: Math.min(request.skip + (token?.s ?? 0), maxSkip),
    binding,
  }
}

/** Maximum length of `order_by`. Longer text is refused before it is split into words, which would use memory. */
const maxOrderLength = 200

function readOrder(requested: string, { fields, defaultOrder }: ListRules): Page['order'] {
  const orderBy = requested || defaultOrder
  if (orderBy.length > maxOrderLength) {
    throw invalid({ field: 'order_by', description: `must be at most ${maxOrderLength} characters long` })
  }
  const [name = '', direction = 'asc', ...more] = orderBy.trim().split(/\s+/)
  if (more.length > 0 || (direction !== 'asc' && direction !== 'desc')) {
    throw invalid({ field: 'order_by', description: 'must be one field, optionally followed by asc or desc' })
  }
  const member = camelCase(name)
  const key = synonyms[member] ?? member
  const field = Object.hasOwn(fields, key) ? fields[key] : undefined
  if (!field || !(field.sort || requested === '')) {
    const known = Object.entries(fields).flatMap(([member, { sort }]) => (sort ? [snakeCase(member)] : []))
    throw invalid({ field: 'order_by', description: `must name one of: ${known.join(', ')}` })
  }
  return { field: key, column: field.column, desc: direction === 'desc' }
}

function bindingOf(parts: unknown): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 22)
}

/**
 * Reads a page token. For an expired token, returns undefined, so that the list starts at the first page. Throws for a token that
 * is not ours, or that is from another list.
 */
function readToken(text: string, binding: string, cipher: SecretCipher, now: number): Token | undefined {
  if (text === '') return undefined
  const opened = /^[A-Za-z0-9_-]+$/.test(text)
    ? cipher.decrypt(tokenPurpose, Buffer.from(text, 'base64url'))
    : undefined
  if (!opened)
    throw invalid({
      field: 'page_token',
      description: 'is not a page token of this server; use the next_page_token of an earlier answer',
    })
  const token = JSON.parse(opened.toString()) as Token
  if (token.v !== tokenVersion || now - token.t > tokenLifetime) return undefined
  if (token.b !== binding) {
    throw invalid({
      field: 'page_token',
      description: 'is from a list with another order, filter or caller; start again without a page token',
    })
  }
  return token
}

/** Creates the token of the page after the given row. */
function writeToken(call: PagingCall, page: Page, last: { value: string; uid: string }, toSkip = 0): string {
  const skipping = toSkip === 0 ? {} : { s: toSkip }
  const at = Date.parse(call.now)
  const token: Token = { v: tokenVersion, b: page.binding, k: last.value, u: last.uid, t: at, ...skipping }
  return call.app.cipher.encrypt(tokenPurpose, Buffer.from(JSON.stringify(token))).toString('base64url')
}

/**
 * Page of a search that stopped before the end, even if it found little. `last` is where the next page continues, and is
 * undefined on the last page. `toSkip` is the number of items that the next page still has to skip.
 */
export function listedUpTo<T, N extends number | undefined>(
  call: PagingCall,
  page: Page,
  { items, total, last, toSkip = 0 }: { items: T[]; total: N; last: Page['after'] | string; toSkip?: number },
): Listed<T, N> {
  const at = typeof last === 'string' ? { value: last, uid: last } : last
  return { items, total, next: at === undefined ? '' : writeToken(call, page, at, toSkip) }
}

/**
 * Page of a list that is in memory, such as a computed one. The caller limits its length. `keyOf` returns the sort value, and a
 * unique and stable key for items with the same value.
 */
export function pageOf<T>(
  call: PagingCall,
  page: Page,
  items: readonly T[],
  keyOf: (item: T) => { value: string; uid: string },
): Listed<T> {
  const { after, order, skip, size } = page
  const sign = order.desc ? -1 : 1
  const compare = (a: Key, b: Key) => sign * (compareTexts(a.value, b.value) || compareTexts(a.uid, b.uid))
  const keyed = items.map((item) => ({ item, ...keyOf(item) })).sort(compare)
  const from = (after ? keyed.filter((one) => compare(one, after) > 0) : keyed).slice(skip, skip + size + 1)
  const shown = from.slice(0, size)
  const last = from.length > size ? shown.at(-1) : undefined
  return listedUpTo(call, page, { items: shown.map(({ item }) => item), total: items.length, last })
}

type Key = { value: string; uid: string }

/** Compares two texts by UTF-16 code units. */
export function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Converts the rows of a store to a page. Removes the extra row, which shows that another page follows. */
export function toListed<T extends { uid: string }, N extends number | undefined>(
  call: PagingCall,
  page: Page,
  rows: readonly T[],
  total: N,
): Listed<T, N> {
  if (rows.length <= page.size) return { items: [...rows], total, next: '' }
  const items = rows.slice(0, page.size)
  const last = items.at(-1)!
  const value = String(last[page.order.field as keyof T])
  return { items, total, next: writeToken(call, page, { value, uid: last.uid }) }
}
