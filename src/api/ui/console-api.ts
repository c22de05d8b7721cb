// /ui/api/…: the methods of the API for the console, which shows the cookie of a session instead of a token.
import type { Caller } from '#caller.ts'
import { callerOf } from '#edge/caller.ts'
import type { Door, HttpArrival } from '#edge/doors.ts'
import { sessionOfCookie, tokenOfSession } from '#issuer/people/sessions.ts'
import { permissionDenied, unauthenticated } from '#lib/errors.ts'
import type { Api } from '../door.ts'
import type { Endpoint } from '../methods.ts'
import { openRest } from '../rest.ts'
import { readCookie } from './cookies.ts'
import { isAtUrl } from './page.ts'
import { isOwn } from './visit.ts'

const prefix = '/ui/api'

/**
 * The door of the console. What follows the prefix is a path of the API, and what comes of it is decided as for a token of the
 * session. A bearer token counts for nothing here, as the cookie does anywhere else.
 */
export function consoleApiDoor(api: Api, endpoints: readonly Endpoint[]): Door {
  // The console speaks our own names, whoever else's the settings serve.
  const rest = openRest({ ...api, members: undefined }, endpoints)
  return {
    name: 'ui-api',
    countsItself: true,
    methods: rest.methods,
    deadlineMs: api.app.config.requestTimeoutMs,
    matches: (path) => path.startsWith(`${prefix}/`),
    async serve(arrival) {
      // Known before anything else is looked at, also where the method asks for nobody.
      let known = await callerOfConsole(api, arrival)
      if (!known) return
      arrival.identify = async () => {
        const caller = known ?? (await callerBySession(api, arrival))
        // A stream asks again, and wants to know what is true then.
        known = undefined
        return caller
      }
      await rest.serve(arrival, arrival.path.slice(prefix.length))
    },
    refuse: rest.refuse,
  }
}

/** Where the console reads what is no method of the API, such as the proofs of tags; by the same cookie. */
export const ledgerOfConsole = (api: Pick<Api, 'app' | 'url'>) => ({
  ...{ name: 'ui-ledger', prefix, kinds: ['proof', 'policy'] as const, verifies: false },
  callerOf: (arrival: HttpArrival) => callerOfConsole(api, arrival),
})

/** Whose session the cookie of a request of the console is. Nothing for a request that went to another name and is answered. */
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
  if (!session) throw unauthenticated('the browser is not signed in, or not any more')
  return callerOf(app, session.identityUid, tokenOfSession(url, session))
}

/** A page of somebody else can have a browser send requests, but not as one of ours. What only reads may come without a word. */
function requireOwn(arrival: HttpArrival): void {
  if (isOwn(arrival)) return
  arrival.countStranger()
  const { headers, method } = arrival.req
  const isSilent = headers['sec-fetch-site'] === undefined && headers.origin === undefined
  if (isSilent && (method === 'GET' || method === 'HEAD')) return
  throw permissionDenied('the request does not come from a page of this server')
}
