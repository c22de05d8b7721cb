// Entry point of the registry. Authenticates the caller, finds the route, and renders errors.
import { afterUnread } from '#edge/answer.ts'
import type { Edge } from '#edge/arrival.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { createVerifier, type Verifier } from '#issuer/access-token.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { catalogScope, challenge } from './challenge.ts'
import { readBasic, readBearer } from './credentials.ts'
import { OciError, ociErrorJson, toOciError } from './errors.ts'
import { noteRefusal } from './observe.ts'
import { linger } from './receive.ts'
import { type Handler, handlers, type Route, routeOf } from './routes.ts'
import { issueToken } from './token.ts'
import { nameFrom, noName, plainName, prefixAt } from './views/names.ts'
import { type Named, type Registry, type Visit, VisitCall } from './visit.ts'

/** Entry point of the registry: `/v2/…` and `/token`. */
export function registryEntryPoint({ app, url }: Edge): EntryPoint {
  const { host } = new URL(url)
  const registry: Registry = { app, url, host }
  const verify = createVerifier(app.keyring, url, host, app.clock, true)
  const warnOfName = createNameWarning(registry)
  return {
    // The registry has no deadline for requests, since uploads can take any time.
    name: 'registry',
    verifies: true,
    methods: withVerbs([...Object.keys(handlers), 'token']),
    matches: (path) => path.startsWith('/v2/') || path === '/token' || path === '/v2',
    serve: (arrival) => {
      warnOfName(arrival)
      return serve(registry, verify, arrival)
    },
    refuse,
  }
}

/**
 * Logs one warning if clients use a host name that the server does not know. Challenges send such clients to the URL of the
 * server.
 */
function createNameWarning({ app, url }: Registry): (arrival: HttpArrival) => void {
  // If the operator has configured a URL, challenges with this URL are intended.
  let warned = app.config.url !== ''
  return (arrival) => {
    if (warned || arrival.called !== undefined) return
    warned = true
    app.log.warn('clients use an unknown host name and get the token endpoint of another host', {
      host: String(arrival.req.headers.host ?? '').slice(0, 255),
      url,
      setting: 'PINFOLD_URL',
    })
  }
}

async function serve(registry: Registry, verify: Verifier, arrival: HttpArrival): Promise<void> {
  const { path } = arrival
  const route = path === '/token' ? undefined : routeOf(path, registry.app.vendor?.token)
  arrival.named(route?.kind ?? 'token')
  const name = route?.name ?? ''
  const named = name === '' ? noName : plainName(prefixAt(registry, arrival), name)
  const visit = await authenticate(
    registry,
    verify,
    arrival,
    route,
    named ?? (await resolveName(registry, arrival, name)),
  )
  if (!route) await handleTokenRequest(visit)
  else await handle(visit, route)
}

/** Resolves a path that may begin with a view. Throws UNSUPPORTED if the request would write to a view. */
async function resolveName(registry: Registry, arrival: HttpArrival, name: string): Promise<Named> {
  const named = await nameFrom(registry, prefixAt(registry, arrival), name)
  if (named.view && arrival.verb !== 'GET' && arrival.verb !== 'HEAD') {
    const message = `views are read-only; to push or delete, leave ${named.view.name} out of the path`
    throw new OciError('UNSUPPORTED', message, { headers: { allow: 'GET, HEAD' } })
  }
  return named
}

async function handle(visit: Visit, route: Route): Promise<void> {
  try {
    await handlerOf(route, visit)(visit, route.reference)
  } catch (error) {
    await noteRefusal(visit, route.kind === 'upload' ? '' : route.reference, error)
    throw error
  }
}

/** Authenticates the caller. Throws a 401 challenge if a required credential is missing or a credential is invalid. */
async function authenticate(
  registry: Registry,
  verify: Verifier,
  arrival: HttpArrival,
  route: Route | undefined,
  named: Named,
): Promise<Visit> {
  const { req, authorization } = arrival
  if (authorization === undefined) {
    const stranger = visitOf(registry, arrival, named)
    if (!route) return stranger
    throw challenge(stranger, tokenActionOf(route, req.method), undefined, extraScopesOf(route))
  }
  try {
    // Basic authentication also works here, since clients such as curl send the password with each request. It gives the same
    // permissions and rate limits as at the token endpoint.
    const read = /^Basic /i.test(authorization) ? readBasic : readBearer
    const caller = await read(registry, verify, arrival)
    // Anonymous callers can get a token too. Such a token has no identity, so the request counts as unauthenticated.
    if (caller.uid === '') arrival.countStranger()
    arrival.admit(caller)
    return visitOf(registry, arrival, named)
  } catch (error) {
    if (!(error instanceof OciError) || error.code !== 'UNAUTHORIZED') throw error
    arrival.countStranger()
    const stranger = visitOf(registry, arrival, named)
    const action = route && tokenActionOf(route, req.method)
    const { headers } = challenge(stranger, action, 'invalid_token', route && extraScopesOf(route))
    throw new OciError('UNAUTHORIZED', error.message, { headers, cause: error.cause })
  }
}

function visitOf(registry: Registry, arrival: HttpArrival, named: Named): Visit {
  const { req, res, search, caller, called } = arrival
  if (called && called.subdomain === undefined)
    throw new OciError('NAME_INVALID', 'the subdomain of the host is invalid')
  return {
    registry,
    call: new VisitCall(registry.app, arrival),
    req,
    res,
    name: named.name,
    written: named.written,
    whole: named.whole,
    view: named.view,
    prefix: prefixAt(registry, arrival),
    // Requests with an unknown host name are served. Challenges still name only the URL of the server.
    origin: called?.origin ?? registry.url,
    subdomain: called?.subdomain ?? '',
    query: new URLSearchParams(search),
    anonymous: caller.uid === '',
    access: caller.token?.access,
  }
}

function tokenActionOf({ kind, name }: Route, method: string | undefined): string | undefined {
  if (name === '') return undefined
  if (kind === 'uploads' || kind === 'upload' || method === 'PUT') return 'push'
  return method === 'DELETE' ? 'delete' : 'pull'
}

function extraScopesOf({ kind }: Route): readonly string[] {
  return kind === 'catalog' ? [catalogScope] : []
}

async function handleTokenRequest(visit: Visit): Promise<void> {
  // Clients that try POST first repeat the request with GET after a 405 error.
  if (visit.req.method !== 'GET' && visit.req.method !== 'HEAD') throw createWrongMethod('GET, HEAD')
  await issueToken(visit)
}

function handlerOf({ kind }: Route, { req }: Visit): Handler {
  const here = handlers[kind]
  const handler = here[req.method ?? '']
  if (handler) return handler
  throw createWrongMethod(Object.keys(here).join(', '))
}

function createWrongMethod(allow: string): OciError {
  return new OciError('UNSUPPORTED', `this endpoint has only the methods ${allow}`, { headers: { allow } })
}

async function refuse({ edge: { app }, req, res, requestId, path }: HttpArrival, thrown: unknown): Promise<void> {
  await linger(req)
  const error = toOciError(thrown)
  if (error.cause instanceof UpstreamError) {
    // The log entry is a warning, since the upstream or the configuration of the mirror causes the error.
    const { message: reason, cause } = error.cause
    app.log.warn('request to the upstream of a mirror failed', { requestId, path, reason, cause })
  } else if (error.status >= 500) {
    app.failures.request(app.log, 'registry request failed', error.cause ?? error, { requestId })
  }
  if (res.writableEnded) return
  if (res.headersSent) return void res.destroy()
  const text = ociErrorJson(error)
  res.writeHead(error.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'docker-distribution-api-version': 'registry/2.0',
    ...error.headers,
    ...afterUnread({ req }),
  })
  res.end(req.method === 'HEAD' ? undefined : text)
}
