// POST /oauth/token: the one path of the issuer that is neither in the contract nor a document.
import type { Edge } from '#edge/arrival.ts'
import { type Door, type HttpArrival, withVerbs } from '#edge/doors.ts'
import { isForm, maxFormBytes, readBody } from '#edge/read-body.ts'
import { type OAuthAnswer, tokenExchange } from '#issuer/oauth-token.ts'
import { retryAfterOf, toAppError } from './errors.ts'

const path = '/oauth/token'

/** The door of the token endpoint. */
export function oauthDoor(edge: Edge): Door {
  return {
    name: 'oauth',
    methods: withVerbs([path]),
    deadlineMs: edge.app.config.requestTimeoutMs,
    matches: (asked) => asked === path,
    async serve(arrival) {
      const method = `${arrival.verb} ${path}`
      arrival.method = { name: method, fullName: method }
      send(arrival, await answerOf(edge, arrival))
    },
    refuse: (arrival, error) => send(arrival, refusalOf(arrival, error)),
  }
}

async function answerOf({ app, url }: Edge, arrival: HttpArrival): Promise<OAuthAnswer> {
  const { req, source } = arrival
  if (req.method !== 'POST') return { status: 405, body: { error: 'invalid_request', error_description: 'only POST' } }
  if (!isForm(req)) {
    const description = 'the body must be application/x-www-form-urlencoded'
    return { status: 400, body: { error: 'invalid_request', error_description: description } }
  }
  const form = new URLSearchParams((await readBody(arrival, maxFormBytes)).toString('utf8'))
  return tokenExchange({ app, issuer: url, source }, form)
}

function refusalOf({ edge: { app }, requestId }: HttpArrival, error: unknown): OAuthAnswer {
  const known = toAppError(error)
  const { code, http, message } = known
  if (code === 'RESOURCE_EXHAUSTED') {
    const body = { error: 'slow_down', error_description: message }
    return { status: http, body, retryAfter: retryAfterOf(known) }
  }
  if (code === 'INVALID_ARGUMENT') {
    return { status: http, body: { error: 'invalid_request', error_description: message } }
  }
  if (code === 'CANCELLED') return { status: http, body: { error: 'invalid_request' } }
  if (code === 'DEADLINE_EXCEEDED') {
    // Theirs, if the form did not come.
    return { status: http, body: { error: http < 500 ? 'invalid_request' : 'temporarily_unavailable' } }
  }
  app.log.error('token request failed', { requestId, error })
  if (code !== 'UNAVAILABLE') return { status: 500, body: { error: 'server_error' } }
  return { status: 503, body: { error: 'temporarily_unavailable' }, retryAfter: 1 }
}

function send(arrival: HttpArrival, { status, body, retryAfter }: OAuthAnswer): void {
  if (!arrival.settle(String(status))) return
  const { req, res } = arrival
  if (res.headersSent) return
  const text = JSON.stringify(body)
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    ...(status === 405 ? { allow: 'POST' } : {}),
    ...(req.complete || req.httpVersionMajor === 2 ? {} : { connection: 'close' }),
  })
  res.end(text)
}
