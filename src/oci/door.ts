// The registry's door: finds out who calls and what the request is about, and renders what goes wrong.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Method } from '#app.ts'
import { noRights } from '#domains/iam/access/rights.ts'
import { createVerifier, type Verifier } from '#issuer/access-token.ts'
import { sourceAddress, type TrustedProxies } from '#lib/net/source-address.ts'
import { subdomainOf } from '#lib/net/subdomain.ts'
import { newRequestId } from '#lib/request-id.ts'
import { challenge } from './challenge.ts'
import { readBasic, readBearer, type Shown } from './credentials.ts'
import { OciError, ociErrorJson, toOciError } from './errors.ts'
import { type Handler, handlers } from './handlers.ts'
import { linger } from './receive.ts'
import { type Route, routeOf } from './routes.ts'
import { issueToken } from './token.ts'
import { type Registry, type Visit, VisitCall } from './visit.ts'

export type RegistryInput = {
  app: Registry['app']
  url: string
  proxies: TrustedProxies
  /** Finds a method of the contract by its full name. */
  methodNamed: (fullName: string) => Method
}

/** Answers and returns true when the request is for the registry: `/v2/…` and `/token`. */
export function createRegistry({ app, url, proxies, methodNamed }: RegistryInput) {
  const methods = {
    CreateGroup: methodNamed('pinfold.platform.iam.v2.GroupsService/CreateGroup'),
    CreateRepo: methodNamed('pinfold.platform.registry.v2.ReposService/CreateRepo'),
  }
  const { host } = new URL(url)
  const registry: Registry = { app, url, host, method: (name) => methods[name] }
  const verify = createVerifier(app.keyring, url, host, app.clock, true)

  return (req: IncomingMessage, res: ServerResponse): boolean => {
    const target = req.url ?? '/'
    if (!target.startsWith('/v2') && !target.startsWith('/token')) return false
    const mark = target.indexOf('?')
    const path = mark < 0 ? target : target.slice(0, mark)
    if (path !== '/token' && path !== '/v2' && !path.startsWith('/v2/')) return false
    void serve(registry, verify, proxies, { req, res, path, search: mark < 0 ? '' : target.slice(mark + 1) })
    return true
  }
}

type Request = { req: IncomingMessage; res: ServerResponse; path: string; search: string }

const nobody: Shown['caller'] = { uid: '', operator: false, rights: noRights }

async function serve(registry: Registry, verify: Verifier, proxies: TrustedProxies, request: Request): Promise<void> {
  const { req } = request
  const { app } = registry
  const startedAt = performance.now()
  const requestId = newRequestId(req.headers['x-request-id']?.toString())
  const forwardedFor = req.headers['x-forwarded-for']?.toString()
  const source = sourceAddress(req.socket.remoteAddress ?? '', forwardedFor, proxies)
  const arrival: Arrival = { ...request, registry, requestId, source }
  let what = 'none'
  let caller = nobody
  app.metrics.inFlight.inc()
  try {
    const route = request.path === '/token' ? undefined : routeOf(request.path)
    what = route?.kind ?? 'token'
    const visit = await enter(arrival, verify, route)
    caller = visit.call.caller
    if (!route) await tokenOrRefuse(visit)
    else await handlerOf(route, visit)(visit, route.reference)
  } catch (error) {
    await linger(req)
    refuse(arrival, error)
  } finally {
    app.metrics.inFlight.dec()
    leave(arrival, what, caller.uid, (performance.now() - startedAt) / 1000)
  }
}

type Arrival = Request & { registry: Registry; requestId: string; source: string }

/** Who calls. Throws a challenge where a credential is needed and none is there. */
async function enter(arrival: Arrival, verify: Verifier, route: Route | undefined): Promise<Visit> {
  const { registry, req, res, search, requestId, source } = arrival
  const userAgent = req.headers['user-agent'] ?? ''
  const visitOf = ({ caller, token }: Shown): Visit => ({
    registry,
    call: new VisitCall({ registry, caller, requestId, source, userAgent, res }),
    req,
    res,
    name: route?.name ?? '',
    subdomain: calledAt(registry, req),
    query: new URLSearchParams(search),
    anonymous: caller.uid === '',
    access: token?.access,
  })
  const { authorization } = req.headers
  const stranger = (): Visit => visitOf({ caller: nobody, token: undefined })
  if (authorization === undefined) {
    if (!route) return stranger()
    throw challenge(stranger(), route.name === '' ? undefined : tokenActionOf(route, req.method))
  }
  try {
    // Only the token endpoint takes a password.
    return visitOf(
      await (!route && /^Basic /i.test(authorization) ? readBasic : readBearer)(registry, verify, authorization),
    )
  } catch (error) {
    if (!(error instanceof OciError) || error.code !== 'UNAUTHORIZED') throw error
    const { headers } = challenge(stranger(), route && tokenActionOf(route, req.method), 'invalid_token')
    throw new OciError('UNAUTHORIZED', error.message, { headers, cause: error.cause })
  }
}

/** In HTTP/2 the authority stands for the header. A host of anybody else's is as good as ours, but not a bad one below it. */
function calledAt({ host }: Registry, req: IncomingMessage): string {
  const called = String(req.headers[':authority'] ?? req.headers.host ?? '').toLowerCase()
  if (!called.endsWith(`.${host}`)) return ''
  const found = subdomainOf(called, host)
  if (found !== undefined) return found
  throw new OciError('NAME_INVALID', 'the sub-domain is not valid')
}

function tokenActionOf({ kind, name }: Route, method: string | undefined): string | undefined {
  if (name === '') return undefined
  if (kind === 'uploads' || kind === 'upload' || method === 'PUT') return 'push'
  return method === 'DELETE' ? 'delete' : 'pull'
}

async function tokenOrRefuse(visit: Visit): Promise<void> {
  // A client that tries POST first goes on with GET after this.
  if (visit.req.method !== 'GET') throw new OciError('UNSUPPORTED', 'only GET', { headers: { allow: 'GET' } })
  await issueToken(visit)
}

function handlerOf({ kind }: Route, { req }: Visit): Handler {
  const here = handlers[kind]
  const handler = here[req.method ?? '']
  if (handler) return handler
  const allowed = Object.keys(here).join(', ')
  throw new OciError('UNSUPPORTED', `only ${allowed}`, { headers: { allow: allowed } })
}

function refuse({ registry: { app }, req, res, requestId }: Arrival, thrown: unknown): void {
  const error = toOciError(thrown)
  if (error.status >= 500) app.log.error('registry request failed', { requestId, error: error.cause ?? error })
  if (res.headersSent) return void res.destroy()
  const text = ociErrorJson(error)
  res.writeHead(error.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'x-request-id': requestId,
    'docker-distribution-api-version': 'registry/2.0',
    ...error.headers,
    // What is left of a body that nobody reads would be taken for the next request.
    ...(req.complete || req.httpVersionMajor === 2 ? {} : { connection: 'close' }),
  })
  res.end(req.method === 'HEAD' ? undefined : text)
}

/** One log line and one measurement for every request. */
function leave(
  { registry: { app }, req, res, requestId, source }: Arrival,
  what: string,
  caller: string,
  seconds: number,
) {
  const code = String(res.statusCode)
  const method = what === 'none' ? 'none' : `${req.method} ${what}`
  app.metrics.requests.observe({ transport: 'registry', method, code }, seconds)
  const ms = Math.round(seconds * 1e5) / 100
  app.log.info('request', { requestId, transport: 'registry', method, code, ms, caller, remoteAddress: source })
}
