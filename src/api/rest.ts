// The management API over HTTP: finds the method, reads the request, writes the response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '#app.ts'
import { AppError, type Code, invalid } from '#lib/errors.ts'
import { type Door, enter, fail, invoke, leave, type Passage } from './door.ts'
import { errorJson } from './errors.ts'
import { resolveMask } from './field-mask.ts'
import { jsonText } from './json-write.ts'
import type { Endpoint } from './methods.ts'
import type { Variable } from './path-template.ts'
import { permitAt } from './permit.ts'
import { newRequestId } from './request-id.ts'
import { buildRoutes, type Matched, type Routes } from './routes.ts'
import { readRequest } from './transcode.ts'

export type Rest = (req: IncomingMessage, res: ServerResponse) => Promise<void>

export function createRest(door: Door, endpoints: readonly Endpoint[]): Rest {
  const routes = buildRoutes(endpoints)
  const { metrics, config } = door.app

  return async (req, res) => {
    const passage = passageOf(req, res)
    let endpoint: Endpoint | undefined
    let caller: Caller | undefined
    let code: Code | 'OK' = 'OK'
    metrics.inFlight.inc()
    const deadline = setTimeout(() => expire(door, res, passage), config.requestTimeoutMs)
    try {
      const url = req.url ?? '/'
      const query = url.indexOf('?')
      const matched = find(routes, req.method ?? 'GET', query < 0 ? url : url.slice(0, query))
      endpoint = matched.entry
      caller = await enter(door, endpoint, req.headers.authorization)
      permitEarly(endpoint, caller, matched.variables)

      const body = matched.binding.body === '' ? undefined : await readBody(req, config.maxBodyBytes)
      const search = query < 0 ? '' : url.slice(query + 1)
      const { request, bodyKeys } = readRequest(endpoint, matched.binding, matched.variables, search, body)
      resolveMask(endpoint.desc, request, bodyKeys)
      const response = await invoke(door, endpoint, caller, request, passage)
      send(res, 200, passage.requestId, isEmpty(endpoint) ? '' : jsonText(endpoint.desc.output, response))
    } catch (error) {
      const rendered = fail(door, error, passage)
      code = rendered.code
      if (rendered.retryAfter !== undefined) res.setHeader('retry-after', String(rendered.retryAfter))
      if (error instanceof MethodNotAllowed) res.setHeader('allow', error.allowed.join(', '))
      if (code === 'UNAUTHENTICATED') res.setHeader('www-authenticate', 'Bearer')
      // What is left of a body that we did not read would be taken for the next request.
      if (!req.complete && req.httpVersionMajor === 1) res.setHeader('connection', 'close')
      send(res, rendered.http, passage.requestId, errorJson(rendered))
    } finally {
      clearTimeout(deadline)
      metrics.inFlight.dec()
      leave(door, endpoint, caller, code, passage)
    }
  }
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

/** Where the path already says which node the request is about, permission comes before anything else is looked at. */
function permitEarly({ method: { access } }: Endpoint, caller: Caller, variables: readonly Variable[]): void {
  if (access.mode !== 'scoped') return
  const scope = variables.find(([field]) => field === access.scope.join('.'))
  if (scope) permitAt(access, caller, scope[1])
}

function isEmpty({ desc }: Endpoint): boolean {
  return desc.output.typeName === 'google.protobuf.Empty'
}

function passageOf(req: IncomingMessage, res: ServerResponse): Passage {
  const given = req.headers['x-request-id']
  return {
    transport: 'rest',
    requestId: newRequestId(typeof given === 'string' ? given : undefined),
    remoteAddress: req.socket.remoteAddress ?? '',
    startedAt: performance.now(),
    signal: () => {
      const controller = new AbortController()
      if (res.destroyed) controller.abort()
      else res.once('close', () => controller.abort())
      return controller.signal
    },
  }
}

/** Answers for a handler that takes too long; what it does afterwards is thrown away. */
function expire(door: Door, res: ServerResponse, passage: Passage): void {
  const error = new AppError('DEADLINE_EXCEEDED', 'the request took too long')
  const rendered = fail(door, error, passage)
  res.setHeader('connection', 'close')
  send(res, rendered.http, passage.requestId, errorJson(rendered))
}

async function readBody(req: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = () => {
    const violation = { field: 'body', description: `must be at most ${limit} bytes` }
    return new AppError('INVALID_ARGUMENT', invalid(violation).message, {
      http: 413,
      details: [{ type: 'BadRequest', fieldViolations: [violation] }],
    })
  }
  if (Number(req.headers['content-length'] ?? 0) > limit) throw tooLarge()
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of req as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > limit) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('CANCELLED', 'the client went away before it had sent the whole body', { cause: error })
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

function send(res: ServerResponse, status: number, requestId: string, text: string): void {
  if (res.headersSent || res.destroyed) return
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-request-id': requestId,
  }
  res.writeHead(status, headers)
  res.end(text)
}
