// /ui/api/…: the API for the console. A session cookie takes the place of a token.
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

/** Header with the uid of the user that the page shows. With it, a tab cannot act as a user who signed in with another tab. */
const userHeader = 'pinfold-user'

/**
 * Entry point of the console's API. The path after the prefix is a path of the API. The caller has the permissions of a token of
 * the session. Bearer tokens are ignored here, and other entry points ignore the cookie.
 */
export function consoleApiEntryPoint(api: Api, endpoints: readonly Endpoint[]): EntryPoint {
  // The console always uses our own names, even if a setting names a vendor.
  const rest = openRest({ ...api, members: undefined }, endpoints)
  return {
    name: 'ui-api',
    countsItself: true,
    methods: rest.methods,
    deadlineMs: api.app.config.requestTimeoutMs,
    matches: (path) => path.startsWith(`${prefix}/`),
    async serve(arrival) {
      // The session is checked first, even for methods that need no token.
      let known = await callerOfConsole(api, arrival)
      if (!known) return
      arrival.identify = async () => {
        const caller = known ?? (await callerBySession(api, arrival))
        // A stream calls this again later. The session is then read again.
        known = undefined
        return caller
      }
      await rest.serve(arrival, arrival.path.slice(prefix.length))
    },
    refuse: rest.refuse,
  }
}

/** Options of the ledger's entry point for the console, such as for proofs of tags. Its requests have the same cookie. */
export const ledgerOfConsole = (api: Pick<Api, 'app' | 'url'>) => ({
  ...{ name: 'ui-ledger', prefix, kinds: ['proof', 'policy'] as const, verifies: false },
  callerOf: (arrival: HttpArrival) => callerOfConsole(api, arrival),
})

/**
 * Caller of a console request, found by the cookie. Undefined if the request has another host name. Such a request already has a
 * response.
 */
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
  const user = arrival.req.headers[userHeader]
  if (user !== undefined && user !== session.identityUid) {
    throw unauthenticated('another user has signed in with this browser since the page was loaded; reload the page')
  }
  return callerOf(app, session.identityUid, tokenOfSession(url, session))
}

/**
 * Throws PERMISSION_DENIED if the request comes from another site. Other sites can make a browser send requests, but with
 * different headers. Reads without these headers are accepted.
 */
function requireOwn(arrival: HttpArrival): void {
  if (isOwn(arrival)) return
  arrival.countStranger()
  const { headers, method } = arrival.req
  const isSilent = headers['sec-fetch-site'] === undefined && headers.origin === undefined
  if (isSilent && (method === 'GET' || method === 'HEAD')) return
  throw permissionDenied('the request was refused because it does not come from a page of this server')
}
