// /ui/api/…: methods of the API for the console, which sends a session cookie instead of a token.
import type { Caller } from '#caller.ts'
import { callerOf } from '#edge/caller.ts'
import type { EntryPoint, HttpArrival } from '#edge/entry-points.ts'
import { sessionOfCookie, tokenOfSession } from '#issuer/people/sessions.ts'
import { permissionDenied, unauthenticated } from '#lib/errors.ts'
import type { Api } from '../entry-point.ts'
import type { Endpoint } from '../methods.ts'
import { openRest } from '../rest.ts'
import { readCookie } from './cookies.ts'
import { isAtUrl } from './page.ts'
import { isOwn } from './visit.ts'

const prefix = '/ui/api'

/**
 * Entry point of the console. The path after the prefix is a path of the API, with the permissions of a token of the session. A
 * bearer token is ignored here, and the cookie is ignored anywhere else.
 */
export function consoleApiEntryPoint(api: Api, endpoints: readonly Endpoint[]): EntryPoint {
  // The console uses our own names, whichever vendor the settings have.
  const rest = openRest({ ...api, members: undefined }, endpoints)
  return {
    name: 'ui-api',
    countsItself: true,
    methods: rest.methods,
    deadlineMs: api.app.config.requestTimeoutMs,
    matches: (path) => path.startsWith(`${prefix}/`),
    async serve(arrival) {
      // Checked before anything else, even for open methods.
      let known = await callerOfConsole(api, arrival)
      if (!known) return
      arrival.identify = async () => {
        const caller = known ?? (await callerBySession(api, arrival))
        // A stream asks again, and needs the present state then.
        known = undefined
        return caller
      }
      await rest.serve(arrival, arrival.path.slice(prefix.length))
    },
    refuse: rest.refuse,
  }
}

/** Entry point for the console's reads outside of the API, such as proofs of tags, with the same cookie. */
export const ledgerOfConsole = (api: Pick<Api, 'app' | 'url'>) => ({
  ...{ name: 'ui-ledger', prefix, kinds: ['proof', 'policy'] as const, verifies: false },
  callerOf: (arrival: HttpArrival) => callerOfConsole(api, arrival),
})

/** Caller of a console request by its cookie. Undefined if the request had another host name and already has a response. */
async function callerOfConsole(api: Pick<Api, 'app' | 'url'>, arrival: HttpArrival): Promise<Caller | undefined> {
  if (!isAtUrl(arrival)) return undefined
  requireOwn(arrival)
  return callerBySession(api, arrival).catch((error: unknown) => {
    arrival.countStranger()
    throw error
  })
}

async function callerBySession({ app, url }: Pick<Api, 'app' | 'url'>, arrival: HttpArrival): Promise<Caller> {
  const shown = readCookie(arrival, 'pinfold')
  const session = shown === undefined ? undefined : await sessionOfCookie(app, shown)
  if (!session) throw unauthenticated('the browser is not signed in, or the session has ended; sign in again')
  return callerOf(app, session.identityUid, tokenOfSession(url, session))
}

/**
 * Throws PERMISSION_DENIED unless the request comes from one of our pages. Foreign pages can make a browser send requests, but
 * their headers differ. Reads without these headers are accepted.
 */
function requireOwn(arrival: HttpArrival): void {
  if (isOwn(arrival)) return
  arrival.countStranger()
  const { headers, method } = arrival.req
  const isSilent = headers['sec-fetch-site'] === undefined && headers.origin === undefined
  if (isSilent && (method === 'GET' || method === 'HEAD')) return
  throw permissionDenied('the request was refused because it does not come from a page of this server')
}
