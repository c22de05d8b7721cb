// POST /oauth/token: the one path of the issuer that is neither in the contract nor a document.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tokenExchange } from '#issuer/oauth-token.ts'
import { sourceAddress } from '#lib/net/source-address.ts'
import { newRequestId } from '#lib/request-id.ts'
import type { Door } from './door.ts'
import { toAppError } from './errors.ts'
import { readBody } from './read-body.ts'

const maxFormBytes = 64 * 1024

/** Answers and returns true when the request is for the token endpoint. */
export function createOAuth(door: Door): (req: IncomingMessage, res: ServerResponse) => boolean {
  return (req, res) => {
    if ((req.url ?? '/').split('?', 1)[0] !== '/oauth/token') return false
    const requestId = newRequestId(req.headers['x-request-id']?.toString())
    answer(door, req)
      .catch((error: unknown) => {
        const { code, http, message } = toAppError(error)
        if (code === 'INVALID_ARGUMENT') {
          return { status: http, body: { error: 'invalid_request', error_description: message } }
        }
        if (code === 'CANCELLED') return { status: http, body: { error: 'invalid_request' } }
        door.app.log.error('token request failed', { requestId, error })
        if (code !== 'UNAVAILABLE') return { status: 500, body: { error: 'server_error' } }
        return { status: 503, body: { error: 'temporarily_unavailable' }, retryAfter: 1 }
      })
      .then(({ status, body, retryAfter }) => {
        door.app.log.info('token request', { requestId, status })
        const text = JSON.stringify(body)
        res.writeHead(status, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
          'cache-control': 'no-store',
          'x-request-id': requestId,
          ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
          ...(status === 405 ? { allow: 'POST' } : {}),
          ...(req.complete || req.httpVersionMajor === 2 ? {} : { connection: 'close' }),
        })
        res.end(text)
      })
    return true
  }
}

async function answer(door: Door, req: IncomingMessage): ReturnType<typeof tokenExchange> {
  if (req.method !== 'POST') return { status: 405, body: { error: 'invalid_request', error_description: 'only POST' } }
  if (!req.headers['content-type']?.toLowerCase().startsWith('application/x-www-form-urlencoded')) {
    const description = 'the body must be application/x-www-form-urlencoded'
    return { status: 400, body: { error: 'invalid_request', error_description: description } }
  }
  const form = new URLSearchParams((await readBody(req, maxFormBytes)).toString('utf8'))
  const forwardedFor = req.headers['x-forwarded-for']?.toString()
  const source = sourceAddress(req.socket.remoteAddress ?? '', forwardedFor, door.proxies)
  return tokenExchange({ app: door.app, issuer: door.url, source }, form)
}
