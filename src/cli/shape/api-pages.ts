import { isUid, rootOf } from '#lib/uid.ts'
import { type Body, send } from './api-client.ts'
import { CliError, exitCodes, type Options, type Terminal } from './command.ts'
import { callerToken, claimsOf, type Session, sessionOf } from './session.ts'

/** Lists of the API as whoever is signed in sees them. */
export type ApiReader = {
  session: Session
  /** The token that the lists are read with. */
  token: string
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
    token,
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

/** The group that `--parent` gives: a uid, the name of an organisation, or without one the caller's own organisation. */
export async function parentOf({ token, list }: ApiReader, given: unknown): Promise<string> {
  if (given === undefined) {
    const subject = claimsOf(token)?.subject ?? ''
    if (subject.includes('/')) return rootOf(subject)
    throw new CliError(exitCodes.usage, '--parent must name a group, since you belong to none')
  }
  const name = String(given)
  if (isUid(name)) return name
  const { items } = await list<{ uid: string }>('/iam/v2/groups', 'groups', { name, 'uidp.in_root': 'true' }, 1)
  const [group] = items
  if (!group) throw new CliError(exitCodes.usage, `--parent: there is no organisation ${name} that you can see`)
  return group.uid
}

function urlOf(api: string, path: string, query: Query): URL {
  const url = new URL(path, api)
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value ?? []].flat()) if (one !== '') url.searchParams.append(name, one)
  }
  return url
}
