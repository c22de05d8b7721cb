// POST /oauth/token and /oauth/device_authorization: OAuth endpoints for programs.
import { afterUnread, answer } from '#edge/answer.ts'
import type { Edge } from '#edge/arrival.ts'
import { maxAnonymousBytes } from '#edge/body-bytes.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { isForm, readBody } from '#edge/read-body.ts'
import { devicesPath } from '#issuer/discovery.ts'
import type { OAuthAnswer } from '#issuer/oauth-words.ts'
import { answerDeviceRequest, answerTokenRequest } from '#issuer/token-endpoint.ts'
import { retryHeaders } from '#lib/errors.ts'
import { toAppError } from './errors.ts'
import { issuingOf, workOf } from './ui/visit.ts'

const tokenPath = '/oauth/token'

/** Entry point of the two endpoints. */
export function oauthEntryPoint(edge: Edge): EntryPoint {
  const paths = edge.app.config.deviceSignIn ? [tokenPath, devicesPath] : [tokenPath]
  return {
    name: 'oauth',
    methods: withVerbs(paths),
    deadlineMs: edge.app.config.requestTimeoutMs,
    matches: (path) => paths.includes(path),
    async serve(arrival) {
      arrival.named(arrival.path)
      send(arrival, await answerOf(arrival))
    },
    refuse: (arrival, error) => send(arrival, refusalOf(arrival, error)),
  }
}

async function answerOf(arrival: HttpArrival): Promise<OAuthAnswer> {
  const { req, path } = arrival
  if (req.method !== 'POST')
    return { status: 405, body: { error: 'invalid_request', error_description: 'only POST is allowed' } }
  if (!isForm(req)) {
    const description = 'the body must be application/x-www-form-urlencoded'
    return { status: 400, body: { error: 'invalid_request', error_description: description } }
  }
  const form = new URLSearchParams((await readBody(arrival, maxAnonymousBytes)).toString('utf8'))
  const answerForm = path === tokenPath ? answerTokenRequest : answerDeviceRequest
  return answerForm(workOf(arrival), issuingOf(arrival), form)
}

function refusalOf({ edge: { app }, requestId }: HttpArrival, error: unknown): OAuthAnswer {
  const known = toAppError(error)
  const { code, http, message } = known
  if (code === 'RESOURCE_EXHAUSTED') {
    const body = { error: 'slow_down', error_description: message }
    return { status: http, body, headers: retryHeaders(known) }
  }
  if (code === 'INVALID_ARGUMENT') {
    return { status: http, body: { error: 'invalid_request', error_description: message } }
  }
  if (code === 'CANCELLED') return { status: http, body: { error: 'invalid_request' } }
  if (code === 'DEADLINE_EXCEEDED') {
    // The form could not be read, so the error is the client's.
    return { status: http, body: { error: http < 500 ? 'invalid_request' : 'temporarily_unavailable' } }
  }
  app.failures.request(app.log, 'token request failed', error, { requestId })
  if (code !== 'UNAVAILABLE') return { status: 500, body: { error: 'server_error' } }
  return { status: 503, body: { error: 'temporarily_unavailable' }, headers: { 'retry-after': '1' } }
}

function send(arrival: HttpArrival, { status, body, headers }: OAuthAnswer): void {
  answer(arrival, status, JSON.stringify(body), {
    'content-type': 'application/json',
    ...headers,
    ...(status === 405 ? { allow: 'POST' } : {}),
    ...afterUnread(arrival),
  })
}
