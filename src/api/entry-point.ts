// Common code of REST and gRPC: checks the permission of a decoded request, runs the handler, and converts errors.
import type { Message } from '@bufbuild/protobuf'
import type { App, Call, Handler, Method, StreamCall, StreamHandler } from '#app.ts'
import type { Caller } from '#caller.ts'
import type { Arrival, Edge } from '#edge/arrival.ts'
import { authenticate, bearerOf, nobody } from '#edge/caller.ts'
import { createVerifier, type Verifier } from '#issuer/access-token.ts'
import type { Cause } from '#lib/cause.ts'
import { unimplemented } from '#lib/errors.ts'
import type { Vendor } from '#lib/naming/vendor.ts'
import { longTurns } from '#lib/scheduling/long-turns.ts'
import { isPlain, runWithConditions } from './conditions/conditional.ts'
import { buildSubjects, type Subjects } from './conditions/subjects.ts'
import { type Rendered, renderError, toAppError } from './errors.ts'
import { type Endpoint, scopeOf } from './methods.ts'
import { createMembers, type Members } from './naming/members.ts'
import { permitAt, permitEverywhere, reachOf } from './permit.ts'
import { resolveMask } from './transcoding/field-mask.ts'

/** `verify` checks the API's tokens. Their issuer and audience are the URL of the server. */
export type Api = Edge & {
  verify: Verifier
  /** Finds the resources that methods change. */
  subjects: Subjects
  /** Converts JSON members between our names and the vendor's. Undefined if no setting names a vendor. */
  members: Members | undefined
}

/** Creates the API on top of the edge. */
export function openApi(edge: Edge, endpoints: readonly Endpoint[]): Api {
  const { app, url } = edge
  const members = app.vendor && createMembers(app.vendor.token)
  const subjects = buildSubjects(endpoints, app.eventTable)
  return { ...edge, members, subjects, verify: createVerifier(app.keyring, url, url, app.clock) }
}

/**
 * Sets the method and the caller of the request. If other requests have used the thread for too long in this turn, waits for a
 * later turn.
 */
export async function enter(api: Api, { method }: Endpoint, arrival: Arrival): Promise<Caller> {
  arrival.method = method
  if (method.access.mode === 'open') arrival.countStranger()
  arrival.admit(arrival.known ?? (await callerNow(api, method, arrival)))
  const later = longTurns.letOthersRun()
  if (later) await later
  return arrival.caller
}

/** Caller of the request. For a method without authentication, returns the anonymous caller and ignores the credential. */
async function callerNow(api: Api, method: Method, arrival: Arrival): Promise<Caller> {
  if (method.access.mode === 'open') return nobody
  return arrival.identify ? arrival.identify() : authenticate(api.app, api.verify, arrival)
}

/**
 * Checks permissions, then runs the handler. All handlers of unary methods are run here. `bodyKeys` are the members of the JSON
 * body, over REST.
 */
export async function invoke(
  api: Api,
  endpoint: Endpoint,
  request: Message,
  bodyKeys: string[] | undefined,
  arrival: Arrival,
): Promise<Message> {
  const handler = (await admit(api, endpoint, arrival.caller, request, bodyKeys)) as Handler
  const { wishes } = arrival
  if (isPlain(wishes)) return handler(new RequestCall(api, endpoint, arrival), request as never)
  const { app, subjects } = api
  const { caller, signal } = arrival
  const run = (within: App, one: Endpoint, message: Message): Promise<Message> => {
    return (one.handler as Handler)(new RequestCall({ ...api, app: within }, one, arrival), message as never)
  }
  return runWithConditions({ app, subjects, endpoint, caller, request, signal, run }, wishes)
}

/** Entity tag of a response, in quotes as for HTTP. Undefined if the response is not a resource. */
export function etagOf({ subjects }: Api, endpoint: Endpoint, answer: Message, json?: string): string | undefined {
  const tag = subjects.tagOf(endpoint, answer, json)
  return tag && `"${tag}"`
}

/** Like `invoke`, for a method with a stream. If the handler refuses the call, reading the first message throws. */
export async function stream(
  api: Api,
  endpoint: Endpoint,
  request: Message,
  arrival: Arrival,
): Promise<AsyncIterable<Message>> {
  const handler = (await admit(api, endpoint, arrival.caller, request, undefined)) as StreamHandler
  return handler(new StreamingCall(api, endpoint, arrival), request as never)
}

async function admit(
  { app, members }: Api,
  { method, desc, handler }: Endpoint,
  caller: Caller,
  request: Message,
  bodyKeys: string[] | undefined,
): Promise<Handler | StreamHandler> {
  if (method.access.mode === 'scoped') {
    const scope = scopeOf(request, method.access.scope)
    permitAt(method.access, caller, scope)
    const waiting = app.terms.check(scope, method.fullName)
    if (waiting) await waiting
  }
  if (method.access.mode === 'everywhere') permitEverywhere(method.access, caller)
  resolveMask(desc, request, bodyKeys, members)
  if (!handler) throw unimplemented(`this server does not implement ${method.name}`)
  return handler
}

/** Creates the call for a handler. Values that few handlers need are computed on first access. */
class RequestCall implements Call {
  readonly app: App
  readonly method: Call['method']
  readonly caller: Caller
  readonly reach: readonly string[]
  readonly now: string
  readonly url: string
  readonly vendor: Vendor | undefined
  readonly #arrival: Arrival
  #cause: Cause | undefined

  constructor({ app, url }: Api, endpoint: Endpoint, arrival: Arrival) {
    const { caller } = arrival
    this.app = app
    this.url = url
    this.method = endpoint.method
    this.vendor = endpoint.method.version && arrival.vendor
    this.caller = caller
    this.reach = reachOf(endpoint.method.access, caller)
    this.now = app.clock().toISOString()
    this.#arrival = arrival
  }

  get cause(): Cause {
    this.#cause ??= {
      actor: this.caller.uid,
      act: this.caller.token?.act,
      now: this.now,
      source: this.#arrival.source,
      userAgent: this.#arrival.userAgent,
      requestId: this.#arrival.requestId,
      version: this.method.version,
    }
    return this.#cause
  }

  get log(): Call['log'] {
    return this.app.log.with({ requestId: this.#arrival.requestId, caller: this.caller.uid })
  }

  get credential(): string | undefined {
    return this.#arrival.identify ? undefined : bearerOf(this.#arrival.authorization)
  }

  get signal(): AbortSignal {
    return this.#arrival.signal
  }

  whenOver(listener: () => void): void {
    this.#arrival.whenOver(listener)
  }
}

class StreamingCall extends RequestCall implements StreamCall {
  readonly callerNow: () => Promise<Caller>
  readonly #signal: AbortSignal

  constructor(api: Api, endpoint: Endpoint, arrival: Arrival) {
    super(api, endpoint, arrival)
    this.callerNow = () => callerNow(api, endpoint.method, arrival)
    this.#signal = AbortSignal.any([arrival.signal, api.closing.signal])
  }

  override get signal(): AbortSignal {
    return this.#signal
  }
}

/** Converts any error to the response for the caller. Logs errors of the server. */
export function fail({ app, closing }: Api, error: unknown, { requestId, method, vendor }: Arrival): Rendered {
  const known = toAppError(error)
  const ours = known.code === 'INTERNAL' || known.code === 'UNAVAILABLE' || known.code === 'UNKNOWN'
  if (ours && error !== closing.signal.reason) {
    app.failures.request(app.log, 'request failed', known, { requestId })
  }
  // Methods of our own packages have no vendor names. Unknown paths get our names too.
  const named = method.version && vendor
  return renderError(known, requestId, app.config.errorDomain, method.version, named)
}
