// Responses while the server waits for its database at the start. `/healthz` succeeds, `/readyz` fails, and all other requests
// get an error that asks to retry.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import http2, { type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { App } from '#app.ts'
import { setRequestId, setSafeHeaders } from '#edge/safe-headers.ts'
import { type AppError, unavailable } from '#lib/errors.ts'
import { newRequestId } from '#lib/request-id.ts'
import { ociErrorJson, toOciError } from '#oci/errors.ts'
import { scimErrorJson, toScimError } from '#scim/errors.ts'
import { errorJson, renderError } from '../errors.ts'
import { endWithStatus, statusOf } from '../grpc-calls.ts'
import { sendText } from '../send-text.ts'
import type { Answers } from './open-port.ts'

export function answerWaiting({ errorDomain }: App['config']): Answers {
  const error = unavailable('the server is starting and waits for its database; retry later')

  function onRequest(req: IncomingMessage, res: ServerResponse): undefined {
    const requestId = newRequestId(req.headers['x-request-id']?.toString())
    setRequestId(res, requestId)
    // Drops the body, since nothing uses it and it may be large.
    req.resume()
    if (req.httpVersionMajor === 1) res.shouldKeepAlive = false
    const path = req.url?.replace(/^https?:\/\/[^/?#]*/i, '').split('?', 1)[0] || '/'
    if (path === '/healthz') {
      sendText(res, 200, 'text/plain', 'ok\n')
      return
    }
    res.setHeader('retry-after', '1')
    const inWordsOf = words.find(({ isFor }) => isFor(path))
    if (inWordsOf) sendText(res, 503, inWordsOf.type, inWordsOf.textOf(error))
    else sendText(res, 503, 'application/json', errorJson(renderError(error, requestId, errorDomain)))
  }

  function onGrpc(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const requestId = newRequestId(headers['x-request-id']?.toString())
    endWithStatus(stream, statusOf(renderError(error, requestId, errorDomain), requestId))
  }

  const { accept, leave } = serveHttp2(onRequest, onGrpc)
  return { onRequest, onHttp2: accept, leave }
}

/** Paths whose error format differs from that of the API. */
const words: readonly { isFor(path: string): boolean; type: string; textOf(error: AppError): string }[] = [
  { isFor: (path) => path === '/readyz', type: 'text/plain', textOf: ({ message }) => `${message}\n` },
  {
    isFor: (path) => path.startsWith('/v2/') || path === '/v2' || path === '/token',
    type: 'application/json',
    textOf: (error) => ociErrorJson(toOciError(error)),
  },
  {
    isFor: (path) => path.startsWith('/scim/'),
    type: 'application/scim+json',
    textOf: (error) => scimErrorJson(toScimError(error)),
  },
]

type OnGrpc = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

function serveHttp2(onRest: RequestListener, onGrpc: OnGrpc) {
  const sessions = new Set<ServerHttp2Session>()
  const server = http2.createServer()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {}).once('close', () => void sessions.delete(session))
  })
  server.on('stream', (stream, headers, _flags, raw) => {
    stream.on('error', () => {})
    if (stream.destroyed) return
    if (headers['content-type']?.startsWith('application/grpc')) return onGrpc(stream, headers)
    const req = new http2.Http2ServerRequest(stream, headers, {}, raw as unknown as readonly string[])
    const res = new http2.Http2ServerResponse(stream) as unknown as ServerResponse
    setSafeHeaders(res)
    onRest(req as unknown as IncomingMessage, res as Parameters<RequestListener>[1])
  })
  return {
    accept: (socket: unknown) => void server.emit('connection', socket),
    leave: () => {
      for (const session of sessions) session.close()
    },
  }
}
