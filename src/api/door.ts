// What REST and gRPC share: from a transcoded request to a response, or to one rendered error.
import type { Message } from '@bufbuild/protobuf'
import type { App, Call, Caller } from '#app.ts'
import { createVerifier, type Verifier } from '#issuer/access-token.ts'
import { type AppError, unimplemented } from '#lib/errors.ts'
import { type TrustedProxies, trustedProxies } from '#lib/source-address.ts'
import { anonymous, authenticate, bearerOf } from './authenticate.ts'
import { type Rendered, renderError, toAppError } from './errors.ts'
import { resolveMask } from './field-mask.ts'
import { type Endpoint, scopeOf } from './methods.ts'
import { permitAt, permitEverywhere, reachOf } from './permit.ts'

export type Door = {
  app: App
  /** What clients call us: issuer and audience of the API's tokens. */
  url: string
  verify: Verifier
  proxies: TrustedProxies
}

export function openDoor(app: App, url: string): Door {
  const proxies = trustedProxies(app.config.trustedProxies)
  return { app, url, verify: createVerifier(app.keyring, url, url, app.clock), proxies }
}

/** One request on its way through the door. */
export type Passage = {
  transport: 'rest' | 'grpc'
  requestId: string
  remoteAddress: string
  userAgent: string
  /** The bearer credential as it came, for methods that look at none before their handler. */
  authorization: string | undefined
  startedAt: number
  signal: () => AbortSignal
}

/** Who calls; nobody in particular where the method looks at no credential. */
export async function enter(door: Door, endpoint: Endpoint, authorization: string | undefined): Promise<Caller> {
  return endpoint.method.access.mode === 'open' ? anonymous : authenticate(door.app, door.verify, authorization)
}

/** Decides, then runs the handler. There is no other way to a handler. `bodyKeys` are those of the JSON, over REST. */
export async function invoke(
  door: Door,
  endpoint: Endpoint,
  caller: Caller,
  request: Message,
  bodyKeys: string[] | undefined,
  passage: Passage,
): Promise<Message> {
  const { method, handler } = endpoint
  if (method.access.mode === 'scoped') {
    const scope = scopeOf(request, method.access.scope)
    permitAt(method.access, caller, scope)
    if (door.app.terms.guards(method.fullName)) await door.app.terms.requireAccepted(scope)
  }
  if (method.access.mode === 'everywhere') permitEverywhere(method.access, caller)
  resolveMask(endpoint.desc, request, bodyKeys)
  if (!handler) throw unimplemented(`${method.name} is not served by this version`)
  return handler(new RequestCall(door, endpoint, caller, passage), request as never)
}

/** What only some handlers need is made when they ask for it. */
class RequestCall implements Call {
  readonly app: App
  readonly method: Call['method']
  readonly caller: Caller
  readonly reach: readonly string[]
  readonly now: string
  readonly requestId: string
  readonly url: string
  readonly #passage: Passage

  constructor({ app, url }: Door, endpoint: Endpoint, caller: Caller, passage: Passage) {
    this.app = app
    this.url = url
    this.method = endpoint.method
    this.caller = caller
    this.reach = reachOf(endpoint.method.access, caller)
    this.now = app.clock().toISOString()
    this.requestId = passage.requestId
    this.#passage = passage
  }

  get log(): Call['log'] {
    return this.app.log.with({ requestId: this.requestId, caller: this.caller.uid })
  }

  get source(): string {
    return this.#passage.remoteAddress
  }

  get userAgent(): string {
    return this.#passage.userAgent
  }

  get credential(): string | undefined {
    return bearerOf(this.#passage.authorization)
  }

  get signal(): AbortSignal {
    return this.#passage.signal()
  }
}

/** Turns whatever was thrown into what the caller sees, and logs what we have to look at. */
export function fail(door: Door, error: unknown, passage: Passage): Rendered {
  const known = toAppError(error)
  if (known.code === 'INTERNAL' || known.code === 'UNAVAILABLE' || known.code === 'UNKNOWN') {
    door.app.log.error('request failed', { requestId: passage.requestId, error: rootCause(known) })
  }
  return renderError(known, passage.requestId, door.app.config.errorDomain)
}

function rootCause(error: AppError): unknown {
  return error.cause ?? error
}

/** One log line and one measurement for every request. */
export function leave(
  door: Door,
  endpoint: Endpoint | undefined,
  caller: Caller | undefined,
  code: string,
  passage: Passage,
): void {
  const seconds = (performance.now() - passage.startedAt) / 1000
  const method = endpoint?.method.name ?? 'none'
  door.app.metrics.requests.observe({ transport: passage.transport, method, code }, seconds)
  door.app.log.info('request', {
    requestId: passage.requestId,
    transport: passage.transport,
    method: endpoint?.method.fullName ?? '',
    code,
    ms: Math.round(seconds * 1e5) / 100,
    caller: caller?.uid ?? '',
    remoteAddress: passage.remoteAddress,
  })
}
