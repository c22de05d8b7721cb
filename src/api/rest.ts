// The management API over HTTP: finds the method, reads the request and writes the response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '#caller.ts'
import { maxAnonymousBytes } from '#edge/body-bytes.ts'
import type { EntryPoint, HttpArrival } from '#edge/entry-points.ts'
import { checkJson, EncodedBody, isForm, readBody } from '#edge/read-body.ts'
import { AppError } from '#lib/errors.ts'
import { largeBytes } from '#lib/json/parse-yielding.ts'
import { turnBytes, turns } from '#lib/scheduling/turns.ts'
import { type Api, enter, etagOf, fail, invoke, stream } from './entry-point.ts'
import { errorJson, type Rendered } from './errors.ts'
import { limitsOf } from './message-limits.ts'
import { type Endpoint, isStreaming } from './methods.ts'
import { isGrpcType } from './naming/grpc-names.ts'
import { permitAt, permitEverywhere } from './permit.ts'
import { resumeFrom, sendMessages, statusEvent, streamHeaders } from './server-sent-events.ts'
import { parseLargeBody } from './transcoding/json-read.ts'
import { jsonText } from './transcoding/json-write.ts'
import type { Variable } from './transcoding/path-template.ts'
import { buildRoutes, type Matched, type Routes } from './transcoding/routes.ts'
import { asWritten } from './transcoding/spelling.ts'
import { messageOfBody, readRequest } from './transcoding/transcode.ts'

/** Entry point of the management API. It serves all paths that no other entry point matches. */
export function restEntryPoint(api: Api, endpoints: readonly Endpoint[]): EntryPoint {
  const rest = openRest(api, endpoints)
  return {
    name: 'rest',
    verifies: true,
    methods: rest.methods,
    deadlineMs: api.app.config.requestTimeoutMs,
    matches: () => true,
    async serve(arrival) {
      // Paths do not contain a vendor's name, so a setting decides whether the vendor's names are used.
      arrival.vendor = api.app.vendor
      await rest.serve(arrival, arrival.path)
    },
    refuse: rest.refuse,
  }
}

/** Parts that an entry point needs to serve the methods of the API over HTTP. */
export type RestApi = {
  /** Names of all methods, for the metrics. */
  methods: readonly string[]
  /** Serves a request for this path of the API. */
  serve(arrival: HttpArrival, path: string): Promise<void>
  refuse(arrival: HttpArrival, error: unknown): void
}

/** Creates these parts. */
export function openRest(api: Api, endpoints: readonly Endpoint[]): RestApi {
  const routes = buildRoutes(endpoints)
  return {
    methods: endpoints.map(({ method }) => method.name),
    serve: (arrival, path) => serve(api, routes, arrival, path),
    refuse: (arrival, error) => refuse(api, arrival, error),
  }
}

async function serve(api: Api, routes: Routes<Endpoint>, arrival: HttpArrival, path: string): Promise<void> {
  const { req } = arrival
  const matched = find(routes, req.method === 'HEAD' ? 'GET' : (req.method ?? ''), path, arrival)
  const endpoint = matched.entry
  const caller = await enter(api, endpoint, arrival)
  permitEarly(endpoint, caller, matched.variables)

  const content = await contentOf(api, matched, arrival)
  try {
    await answer(api, matched, content, arrival)
  } catch (error) {
    throw asWritten(error, content.search, content.body)
  }
}

async function answer(api: Api, matched: Matched<Endpoint>, content: Content, arrival: HttpArrival): Promise<void> {
  const { req, res } = arrival
  const { requestTimeoutMs } = api.app.config
  const { entry: endpoint, binding, variables } = matched
  const { request, bodyKeys } = readRequest(
    endpoint,
    binding,
    variables,
    content.search,
    content.parsed ?? content.body,
    api.members,
  )
  if (isStreaming(endpoint)) {
    resumeFrom(req, request)
    const messages = await stream(api, endpoint, request, arrival)
    // The stream may stay open for days.
    arrival.releaseBody()
    if (req.method === 'HEAD') {
      // Reads the first message, since a handler that refuses the call throws there. Each stream sends its first message at once.
      const iterator = messages[Symbol.asyncIterator]()
      await iterator.next()
      await iterator.return?.()
      if (arrival.settle('OK')) res.writeHead(200, streamHeaders).end()
      return
    }
    const onStart = () => arrival.begun()
    await sendMessages(res, endpoint.desc.output, messages, { stallMs: requestTimeoutMs, onStart })
    arrival.settle('OK')
    return
  }
  const response = await invoke(api, endpoint, request, bodyKeys, arrival)
  const json = isEmpty(endpoint) ? '' : jsonText(endpoint.desc.output, response)
  const etag = etagOf(api, endpoint, response, json)
  if (arrival.settle('OK')) send(arrival, 200, named(api, endpoint, json), etag === undefined ? {} : { etag })
}

function refuse(api: Api, arrival: HttpArrival, error: unknown): void {
  const { res } = arrival
  const rendered = fail(api, error, arrival)
  if (!arrival.settle(rendered.code)) return
  if (res.headersSent) {
    if (!res.writableEnded) res.end(statusEvent(rendered))
    return
  }
  send(arrival, rendered.http, errorJson(rendered), headersOf(error, rendered))
}

/** JSON of the response with a vendor's member names, if there is a vendor. */
function named({ members }: Api, { method, desc }: Endpoint, json: string): string {
  return members && method.version && json !== '' ? members.shown(desc.output, json) : json
}

/** `parsed` is the JSON of a large body. */
type Content = { search: string; body: Buffer | undefined; parsed?: { json: unknown } }

async function contentOf({ app, members }: Api, matched: Matched<Endpoint>, arrival: HttpArrival): Promise<Content> {
  const { req, search: inPath } = arrival
  const limits = limitsOf(matched.entry.method, app.config.maxBodyBytes)
  const inForm = takesForm(matched, req)
  const reads = matched.binding.body !== '' || inForm
  const body = reads ? await readBody(arrival, inForm ? maxAnonymousBytes : limits.bytes) : undefined
  if (body && !inForm) checkJson(body, limits)
  if (body && body.length > turnBytes) await turns.next()
  if (inForm) return { search: `${inPath}&${body?.toString('latin1')}`, body: undefined }
  if (!body || body.length <= largeBytes) return { search: inPath, body }
  // A vendor's names of members are not in the message.
  const message = members ? undefined : messageOfBody(matched.entry, matched.binding)
  return { search: inPath, body, parsed: { json: await parseLargeBody(body, message) } }
}

/** True if the method can read its parameters from a form. Only methods without a JSON body can, such as the exchange. */
function takesForm({ binding }: Matched<Endpoint>, req: IncomingMessage): boolean {
  return binding.body === '' && req.method === 'POST' && isForm(req)
}

class MethodNotAllowed extends AppError {
  readonly allowed: readonly string[]
  constructor(served: readonly string[]) {
    const allowed = served.flatMap((verb) => (verb === 'GET' ? ['GET', 'HEAD'] : [verb]))
    super('UNIMPLEMENTED', `this path does not support the HTTP method; it supports ${allowed.join(', ')}`, {
      http: 405,
    })
    this.allowed = allowed
  }
}

function find(routes: Routes<Endpoint>, method: string, path: string, arrival: HttpArrival): Matched<Endpoint> {
  const found = routes.match(method, path)
  // For an unknown path, the credential is not checked.
  if (found === undefined || 'allowed' in found) arrival.countStranger()
  if (found === undefined && pathOfGrpc.test(path)) throw problemOfGrpc(arrival.req)
  if (found === undefined) throw new AppError('NOT_FOUND', 'path not found; /docs lists the paths of the API')
  if ('allowed' in found) throw new MethodNotAllowed(found.allowed)
  return found
}

/** Path of a gRPC method: the service with its package, and the method. */
const pathOfGrpc = /^\/\w+(?:\.\w+)+\/\w+$/

/** Error of a request for a gRPC method that is not a gRPC call, such as one of gRPC-Web, Connect or an HTTP/1.1 proxy. */
function problemOfGrpc({ method, httpVersionMajor, headers }: IncomingMessage): AppError {
  if (method !== 'POST') return new MethodNotAllowed(['POST'])
  const why =
    httpVersionMajor < 2 && isGrpcType(headers['content-type'])
      ? 'a gRPC call needs HTTP/2, and this one came over HTTP/1; let the proxy forward HTTP/2'
      : 'this path is only for gRPC over HTTP/2 with the content type application/grpc'
  const message = `${why}; the same methods have REST paths, which /docs lists`
  return new AppError('UNIMPLEMENTED', message, { http: 415 })
}

/** If the path contains the scope, checks the permission before the body is read. */
function permitEarly({ method: { access } }: Endpoint, caller: Caller, variables: readonly Variable[]): void {
  if (access.mode === 'everywhere') permitEverywhere(access, caller)
  if (access.mode !== 'scoped') return
  const scope = variables.find(([field]) => field === access.scope.join('.'))
  if (scope) permitAt(access, caller, scope[1])
}

function isEmpty({ desc }: Endpoint): boolean {
  return desc.output.typeName === 'google.protobuf.Empty'
}

function headersOf(error: unknown, { code, retryAfter }: Rendered): Record<string, string> {
  const headers: Record<string, string> = {}
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
  if (error instanceof MethodNotAllowed) headers.allow = error.allowed.join(', ')
  if (error instanceof EncodedBody) headers['accept-encoding'] = 'identity'
  if (code === 'UNAUTHENTICATED') headers['www-authenticate'] = 'Bearer'
  return headers
}

function isOver(res: ServerResponse): boolean {
  return res.headersSent || res.destroyed
}

/** Sends a response. A response to HEAD has the headers of GET and no body. */
function send({ req, res }: HttpArrival, status: number, text: string, more = {}): void {
  if (isOver(res)) return
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...more,
  }
  res.writeHead(status, headers)
  res.end(req.method === 'HEAD' ? undefined : text)
}
