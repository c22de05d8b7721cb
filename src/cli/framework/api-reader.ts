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

/** Returns the first `limit` items of a list of the API. `more` is true if the list has more items. */
export async function listPages<T>(
  get: (path: string) => Promise<Body>,
  { path, member, query, limit }: { path: string; member: string; query: Query; limit: number },
): Promise<{ items: T[]; more: boolean }> {
  const items: T[] = []
  for (let page = ''; ; ) {
    const size = String(Math.min(pageSize, limit + 1 - items.length))
    const answer = await get(pathOf(path, { ...query, page_size: size, page_token: page }))
    items.push(...((answer[member] ?? []) as T[]))
    page = String(answer.nextPageToken ?? '')
    if (page === '' || items.length > limit) break
  }
  return { items: items.slice(0, limit), more: items.length > limit }
}

function pathOf(path: string, query: Query): string {
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value ?? []].flat()) if (one !== '') asked.append(name, one)
  }
  return `${path}?${asked}`
}
