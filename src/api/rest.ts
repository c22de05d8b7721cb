// The management API over HTTP: finds the method, reads the request, writes the response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { Caller } from '#app.ts'
import { AppError, type Code } from '#lib/errors.ts'
import { sourceAddress } from '#lib/net/source-address.ts'
import { newRequestId } from '#lib/request-id.ts'
import { type Door, enter, fail, gone, invoke, leave, open, type Passage } from './door.ts'
import { errorJson, type Rendered } from './errors.ts'
import { type Endpoint, isStreaming } from './methods.ts'
import { permitAt, permitEverywhere } from './permit.ts'
import { readBody } from './read-body.ts'
import { resumeFrom, sendMessages, statusEvent } from './server-sent-events.ts'
import { jsonText } from './transcoding/json-write.ts'
import type { Variable } from './transcoding/path-template.ts'
import { buildRoutes, type Matched, type Routes } from './transcoding/routes.ts'
import { readRequest, type Transcoded } from './transcoding/transcode.ts'

/** A form comes before anybody has shown a token of ours. */
const maxFormBytes = 64 * 1024

export type Rest = (req: IncomingMessage, res: ServerResponse) => Promise<void>

export function createRest(door: Door, endpoints: readonly Endpoint[]): Rest {
  const routes = buildRoutes(endpoints)
  const { metrics, config } = door.app

  return async (req, res) => {
    const passage = passageOf(door, req, res)
    let endpoint: Endpoint | undefined
    let caller: Caller | undefined
    let code: Code | 'OK' = 'OK'
    const refuse = (error: unknown): void => {
      const rendered = fail(door, error, passage)
      if (code !== 'OK') return
      code = rendered.code
      if (res.headersSent) {
        if (!res.writableEnded) res.end(statusEvent(rendered))
        return
      }
      send(res, rendered.http, passage.requestId, errorJson(rendered), headersOf(error, rendered))
      // Over HTTP/2 an answer does not end a request whose body is still coming.
      if (!req.complete && req.httpVersionMajor === 2) (res as unknown as Http2ServerResponse).stream.close()
    }
    metrics.inFlight.inc()
    // What a handler does afterwards is thrown away.
    const late = () => refuse(new AppError('DEADLINE_EXCEEDED', 'the request took too long'))
    const deadline = setTimeout(late, config.requestTimeoutMs)
    try {
      const url = req.url ?? '/'
      const query = url.indexOf('?')
      const matched = find(routes, req.method ?? 'GET', query < 0 ? url : url.slice(0, query))
      endpoint = matched.entry
      caller = await enter(door, endpoint, passage.authorization)
      permitEarly(endpoint, caller, matched.variables)

      const { request, bodyKeys } = await requestOf(
        matched,
        req,
        query < 0 ? '' : url.slice(query + 1),
        config.maxBodyBytes,
      )
      if (isStreaming(endpoint)) {
        resumeFrom(req, request)
        const messages = await open(door, endpoint, caller, request, passage)
        const onStart = () => clearTimeout(deadline)
        const options = { requestId: passage.requestId, stallMs: config.requestTimeoutMs, onStart }
        return await sendMessages(res, endpoint.desc.output, messages, options)
      }
      const response = await invoke(door, endpoint, caller, request, bodyKeys, passage)
      send(res, 200, passage.requestId, isEmpty(endpoint) ? '' : jsonText(endpoint.desc.output, response))
    } catch (error) {
      refuse(error)
    } finally {
      clearTimeout(deadline)
      metrics.inFlight.dec()
      leave(door, endpoint, caller, code, passage)
    }
  }
}

async function requestOf(
  matched: Matched<Endpoint>,
  req: IncomingMessage,
  inPath: string,
  maxBodyBytes: number,
): Promise<Transcoded> {
  const isForm = takesForm(matched, req)
  const reads = matched.binding.body !== '' || isForm
  const body = reads ? await readBody(req, isForm ? maxFormBytes : maxBodyBytes) : undefined
  const search = isForm ? `${inPath}&${body?.toString('latin1')}` : inPath
  return readRequest(matched.entry, matched.binding, matched.variables, search, body)
}

/** A method without a JSON body, such as the exchange, reads its parameters from a form as well. */
function takesForm({ binding }: Matched<Endpoint>, req: IncomingMessage): boolean {
  const type = req.headers['content-type']?.toLowerCase() ?? ''
  return binding.body === '' && req.method === 'POST' && type.startsWith('application/x-www-form-urlencoded')
}

class MethodNotAllowed extends AppError {
  readonly allowed: readonly string[]
  constructor(allowed: readonly string[]) {
    super('UNIMPLEMENTED', `this path has no such method; it has ${allowed.join(', ')}`, { http: 405 })
    this.allowed = allowed
  }
}

function find(routes: Routes<Endpoint>, method: string, path: string): Matched<Endpoint> {
  const found = routes.match(method, path)
  if (found === undefined) throw new AppError('NOT_FOUND', 'there is no such path')
  if ('allowed' in found) throw new MethodNotAllowed(found.allowed)
  return found
}

/** Where the path already says what the request is about, permission comes before anything else is looked at. */
function permitEarly({ method: { access } }: Endpoint, caller: Caller, variables: readonly Variable[]): void {
  if (access.mode === 'everywhere') permitEverywhere(access, caller)
  if (access.mode !== 'scoped') return
  const scope = variables.find(([field]) => field === access.scope.join('.'))
  if (scope) permitAt(access, caller, scope[1])
}

function isEmpty({ desc }: Endpoint): boolean {
  return desc.output.typeName === 'google.protobuf.Empty'
}

function passageOf(door: Door, req: IncomingMessage, res: ServerResponse): Passage {
  const given = req.headers['x-request-id']
  const forwardedFor = req.headers['x-forwarded-for']?.toString()
  return {
    transport: 'rest',
    requestId: newRequestId(typeof given === 'string' ? given : undefined),
    remoteAddress: sourceAddress(req.socket.remoteAddress ?? '', forwardedFor, door.proxies),
    userAgent: req.headers['user-agent'] ?? '',
    authorization: req.headers.authorization,
    startedAt: performance.now(),
    signal: () => {
      const controller = new AbortController()
      if (res.destroyed) controller.abort(gone())
      else res.once('close', () => controller.abort(gone()))
      return controller.signal
    },
  }
}

function headersOf(error: unknown, { code, retryAfter }: Rendered): Record<string, string> {
  const headers: Record<string, string> = {}
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
  if (error instanceof MethodNotAllowed) headers.allow = error.allowed.join(', ')
  if (code === 'UNAUTHENTICATED') headers['www-authenticate'] = 'Bearer'
  return headers
}

function isOver(res: ServerResponse): boolean {
  return res.headersSent || res.destroyed
}

function send(res: ServerResponse, status: number, requestId: string, text: string, more = {}): void {
  if (isOver(res)) return
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-request-id': requestId,
    ...more,
  }
  res.writeHead(status, headers)
  res.end(text)
}
