// What REST and gRPC share: from a transcoded request to a response, or to one rendered error.
import type { Message } from '@bufbuild/protobuf'
import type { App, Call, Caller, Handler, StreamCall, StreamHandler } from '#app.ts'
import { createVerifier, type Verifier } from '#issuer/access-token.ts'
import { AppError, unimplemented } from '#lib/errors.ts'
import { type TrustedProxies, trustedProxies } from '#lib/net/source-address.ts'
import { anonymous, authenticate, bearerOf } from './authenticate.ts'
import { type Rendered, renderError, toAppError } from './errors.ts'
import { type Endpoint, scopeOf } from './methods.ts'
import { permitAt, permitEverywhere, reachOf } from './permit.ts'
import { resolveMask } from './transcoding/field-mask.ts'

export type Door = {
  app: App
  /** What clients call us: issuer and audience of the API's tokens. */
  url: string
  verify: Verifier
  proxies: TrustedProxies
  /** Ends the streams when the server is asked to stop; its reason is what their callers get to see. */
  closing: AbortController
}

export function openDoor(app: App, url: string): Door {
  const proxies = trustedProxies(app.config.trustedProxies)
  return { app, url, verify: createVerifier(app.keyring, url, url, app.clock), proxies, closing: new AbortController() }
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
  const handler = (await admit(door, endpoint, caller, request, bodyKeys)) as Handler
  return handler(new RequestCall(door, endpoint, caller, passage), request as never)
}

/** The same for a method that answers with a stream; the handler may refuse with the first message. */
export async function open(
  door: Door,
  endpoint: Endpoint,
  caller: Caller,
  request: Message,
  passage: Passage,
): Promise<AsyncIterable<Message>> {
  const handler = (await admit(door, endpoint, caller, request, undefined)) as StreamHandler
  return handler(new StreamingCall(door, endpoint, caller, passage), request as never)
}

async function admit(
  door: Door,
  { method, desc, handler }: Endpoint,
  caller: Caller,
  request: Message,
  bodyKeys: string[] | undefined,
): Promise<Handler | StreamHandler> {
  if (method.access.mode === 'scoped') {
    const scope = scopeOf(request, method.access.scope)
    permitAt(method.access, caller, scope)
    if (door.app.terms.guards(method.fullName)) await door.app.terms.requireAccepted(scope)
  }
  if (method.access.mode === 'everywhere') permitEverywhere(method.access, caller)
  resolveMask(desc, request, bodyKeys)
  if (!handler) throw unimplemented(`${method.name} is not served by this version`)
  return handler
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

class StreamingCall extends RequestCall implements StreamCall {
  readonly callerNow: () => Promise<Caller>
  readonly #signal: AbortSignal

  constructor(door: Door, endpoint: Endpoint, caller: Caller, passage: Passage) {
    super(door, endpoint, caller, passage)
    this.callerNow = () => enter(door, endpoint, passage.authorization)
    this.#signal = AbortSignal.any([passage.signal(), door.closing.signal])
  }

  override get signal(): AbortSignal {
    return this.#signal
  }
}

/** Turns whatever was thrown into what the caller sees, and logs what we have to look at. */
export function fail(door: Door, error: unknown, passage: Passage): Rendered {
  const known = toAppError(error)
  const ours = known.code === 'INTERNAL' || known.code === 'UNAVAILABLE' || known.code === 'UNKNOWN'
  if (ours && error !== door.closing.signal.reason) {
    door.app.log.error('request failed', { requestId: passage.requestId, error: rootCause(known) })
  }
  return renderError(known, passage.requestId, door.app.config.errorDomain)
}

/** What a call ends with when its client has hung up. Only the log gets to see it. */
export function gone(): AppError {
  return new AppError('CANCELLED', 'the client is gone')
}

/** What a stream ends with when nobody reads it, so that what is to be sent does not pile up. */
export function tooSlow(): AppError {
  return new AppError('RESOURCE_EXHAUSTED', 'the client does not read what it is sent')
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
