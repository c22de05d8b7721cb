import type { Body } from './api-client.ts'
import type { Session } from './session.ts'

/** The API as whoever runs a command sees it: as whom they are signed in, or as the operator beside a data folder. */
export type ApiReader = {
  session: Session
  /** The token that the API is called with. */
  token: string
  /** Where it is called. */
  origin: string
  /** Whether nobody is signed in, and the data folder says who we are. */
  operator: boolean
  /** The path is one of the API; what comes back is the JSON of the response. Throws ApiError. */
  call(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<Body>
  /** The first `limit` items of a list, and whether there are more. A query may give a parameter several values. */
  list<T>(path: string, member: string, query: Query, limit?: number): Promise<{ items: T[]; more: boolean }>
}
export type Query = Record<string, string | readonly string[] | undefined>
