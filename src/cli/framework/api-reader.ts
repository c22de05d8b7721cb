import type { Body } from './api-client.ts'
import type { Session } from './session.ts'

const pageSize = 200

/** API for the user of a command: the identity that has signed in, or the operator next to a data folder. */
export type ApiReader = {
  session: Session
  /** Token that is sent to the API. */
  token: string
  /** Origin that requests go to. */
  origin: string
  /** True if the caller is the operator by access to the data folder, without a sign-in. */
  operator: boolean
  /** Sends a request to a path of the API and returns the JSON of the response. Throws ApiError. */
  call(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<Body>
  /**
   * Returns the first `limit` items of a list. `more` is true if the list has more items. A query parameter may have several
   * values.
   */
  list<T>(path: string, member: string, query: Query, limit?: number): Promise<{ items: T[]; more: boolean }>
}
/** Parts of the API that are needed to find a resource by its name. */
export type Lists = Pick<ApiReader, 'list' | 'operator'>
export type Query = Record<string, string | readonly string[] | undefined>

/** Items to read from a list: at most `limit` after the first `skip` ones, of those that `keep` accepts. */
type Selection<T> = {
  path: string
  member: string
  query: Query
  limit: number
  skip?: number
  keep?: (item: T) => boolean
}

/** Items of a list of the API, and its first page. `more` is true if the list has more items. */
export type Selected<T> = { items: T[]; more: boolean; first: Body }

/** Returns the selected items of a list of the API. */
export async function listPages<T>(
  get: (path: string) => Promise<Body>,
  { path, member, query, limit, skip = 0, keep }: Selection<T>,
): Promise<Selected<T>> {
  const items: T[] = []
  let first: Body | undefined
  // The server cannot skip items that only this filter selects.
  const isSkippedHere = keep !== undefined
  const end = isSkippedHere ? skip + limit : limit
  for (let page = ''; ; ) {
    const page_size = String(keep ? pageSize : Math.min(pageSize, end + 1 - items.length))
    // The page token contains the position, so only the first request skips items.
    const skipped = skip > 0 && page === '' && !isSkippedHere ? { skip: String(skip) } : {}
    const answer = await get(pathOf(path, { ...query, page_size, page_token: page, ...skipped }))
    first ??= answer
    const found = (answer[member] ?? []) as T[]
    items.push(...(keep ? found.filter(keep) : found))
    page = String(answer.nextPageToken ?? '')
    if (page === '' || items.length > end) {
      return { items: items.slice(isSkippedHere ? skip : 0, end), more: items.length > end, first }
    }
  }
}

/** Path with a query. */
export function pathOf(path: string, query: Query): string {
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value ?? []].flat()) if (one !== '') asked.append(name, one)
  }
  return `${path}?${asked}`
}
