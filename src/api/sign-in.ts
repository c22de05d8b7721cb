// /oauth: where discovery says that people sign in. Until they can, it says so, to them and to their programs.
import type { Edge } from '#edge/arrival.ts'
import { type Door, type HttpArrival, withVerbs } from '#edge/doors.ts'
import { retryAfterOf, toAppError } from './errors.ts'
import { isAtUrl, sendPage, sendText } from './pages.ts'

const path = '/oauth'
const title = 'Signing in is not available yet'
const description = 'this server cannot sign people in yet; programs trade a token of their platform at /oauth/token'

/** The door of the authorization endpoint. */
export function signInDoor(edge: Edge): Door {
  return {
    name: 'oauth',
    methods: withVerbs([path]),
    deadlineMs: edge.app.config.requestTimeoutMs,
    matches: (asked) => asked === path,
    serve(arrival) {
      const method = `${arrival.verb} ${path}`
      arrival.method = { name: method, fullName: method }
      const { req } = arrival
      if (req.method !== 'GET' && req.method !== 'HEAD') {
        return sendText(arrival, 405, 'text/plain', 'only GET\n', { allow: 'GET, HEAD' })
      }
      if (isAtUrl(arrival)) refuseSignIn(arrival)
    },
    refuse(arrival, error) {
      const known = toAppError(error)
      const retryAfter = retryAfterOf(known)
      if (known.http >= 500) edge.app.log.error('page failed', { requestId: arrival.requestId, error })
      const headers = retryAfter === undefined ? undefined : { 'retry-after': String(retryAfter) }
      sendText(arrival, known.http, 'text/plain', `${known.message}\n`, headers)
    },
  }
}

/** Nobody is sent back to where the request says, since no client is registered (RFC 6749, 4.1.2.1). */
function refuseSignIn(arrival: HttpArrival): void {
  if (/\btext\/html\b/i.test(arrival.req.headers.accept ?? '')) {
    sendPage(arrival, 501, title, [
      'This server cannot sign people in through a browser yet.',
      'Programs get a token by trading one of their platform; whoever runs the server prints one with “pinfold token”.',
    ])
    return
  }
  const error = { error: 'unsupported_response_type', error_description: description }
  sendText(arrival, 501, 'application/json', JSON.stringify(error))
}
