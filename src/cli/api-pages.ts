import { type Body, send } from './api-client.ts'
import type { Options, Terminal } from './command.ts'
import { callerToken, type Session, sessionOf } from './session.ts'

/** Lists of the API as whoever is signed in sees them. */
export type ApiReader = {
  session: Session
  /** The first `limit` items of a list, and whether there are more. A query may give a parameter several values. */
  list<T>(path: string, member: string, query: Query, limit?: number): Promise<{ items: T[]; more: boolean }>
}
export type Query = Record<string, string | readonly string[] | undefined>

const pageSize = 200

export async function apiReader(terminal: Terminal, options: Options): Promise<ApiReader> {
  const session = sessionOf(terminal, options)
  const token = await callerToken(terminal, session)
  return {
    session,
    async list<T>(path: string, member: string, query: Query, limit = Number.POSITIVE_INFINITY) {
      const items: T[] = []
      for (let page = ''; ; ) {
        const size = String(Math.min(pageSize, limit + 1 - items.length))
        const url = urlOf(session.api, path, { ...query, page_size: size, page_token: page })
        const answer: Body = await send('GET', url, token)
        items.push(...((answer[member] ?? []) as T[]))
        page = String(answer.nextPageToken ?? '')
        if (page === '' || items.length > limit) break
      }
      return { items: items.slice(0, limit), more: items.length > limit }
    },
  }
}

function urlOf(api: string, path: string, query: Query): URL {
  const url = new URL(path, api)
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value ?? []].flat()) if (one !== '') url.searchParams.append(name, one)
  }
  return url
}
