// One request over any protocol: its source and deadline, and its log line and measurement.
import type { App } from '#app.ts'
import type { Caller } from '#caller.ts'
import type { Spending } from '#lib/budgets/budgets.ts'
import { OverBudget } from '#lib/budgets/budgets.ts'
import type { Version } from '#lib/cause.ts'
import { AppError } from '#lib/errors.ts'
import type { Vendor } from '#lib/naming/vendor.ts'
import { createHosts, type Hosts } from '#lib/net/hosts.ts'
import { type TrustedProxies, trustedProxies } from '#lib/net/source-address.ts'
import { newRequestId } from '#lib/request-id.ts'
import { noTracer, type Span } from '#tracing/tracer.ts'
import { nobody } from './caller.ts'
import { createSources, type SourceOf } from './sources.ts'

/** Common data of all requests to this server. */
export type Edge = {
  app: App
  /** URL of the server for clients. */
  url: string
  /** Host names by which clients may call the server. */
  hosts: Hosts
  proxies: TrustedProxies
  sourceOf: SourceOf
  /** Aborted when the server is asked to stop, which ends its streams. Their callers get the reason. */
  closing: AbortController
  /** Aborted when load balancers should stop sending, while all requests are still served. */
  leaving: AbortController
}

/** Creates the edge of a server with this URL. */
export function createEdge(app: App, url: string): Edge {
  const proxies = trustedProxies(app.config.trustedProxies)
  const sourceOf = createSources(proxies, app.log)
  return {
    app,
    url,
    hosts: createHosts(url, [...app.config.hosts, ...app.config.hostPaths.keys()]),
    proxies,
    sourceOf,
    closing: new AbortController(),
    leaving: new AbortController(),
  }
}

/** Common rules of all requests to one entry point. */
export type Rules = {
  /** `transport` in the log line and the metric. */
  readonly name: string
  /** Time by which the response must have started, in milliseconds. Undefined for requests of any duration. */
  readonly deadlineMs?: number
  /** For frequent automatic requests: the log line has the level debug, and the request does not count as in flight. */
  readonly quiet?: boolean
  /** True if the entry point counts its requests itself, since some are not counted. */
  readonly countsItself?: boolean
  /**
   * True if the entry point verifies credentials, and counts requests with an invalid one. Elsewhere, credentials are ignored.
   */
  readonly verifies?: boolean
}

/** Declares an entry point and its methods for the metrics, which show nothing that is not declared. */
export function declareMethods({ app }: Edge, door: { name: string; methods: readonly string[] }): void {
  app.metrics.doors.transports.declare([door.name])
  app.metrics.doors.methods.declare(door.methods)
}

/** Data that a client sends about itself, unverified. */
export type Said = {
  /** Address of the connection. */
  peer: string
  forwardedFor: string | undefined
  requestId: string | undefined
  userAgent: string | undefined
  authorization: string | undefined
  /** Parent of its trace (W3C Trace Context). */
  traceparent: string | undefined
}

/** Conditions and idempotency key of a call, as sent by the client. */
export type Wishes = {
  ifMatch: string | undefined
  ifNoneMatch: string | undefined
  idempotencyKey: string | undefined
}

/** One request to an entry point. Listeners only call `run`. */
export abstract class Arrival {
  readonly edge: Edge
  readonly requestId: string
  /** Address of the client, as far as it can be known. */
  readonly source: string
  /** User-Agent of the client. Empty if it sends none. */
  readonly userAgent: string
  /** Credential as sent by the client. */
  readonly authorization: string | undefined
  /** Caller in the log line. The entry point sets it once it is known. */
  caller: Caller = nobody
  /** Called method: `name` is for the metric, and `fullName` for the log. Both are names of ours, never text from the client. */
  method: { readonly name: string; readonly fullName: string; readonly version?: Version } = unknownMethod
  /** Vendor whose names the client uses. The entry point sets it. Undefined for our names. */
  vendor: Vendor | undefined
  /** Finds the caller, for entry points with another credential than the Authorization header. Called again during a stream. */
  identify: (() => Promise<Caller>) | undefined
  readonly #rules: Rules
  readonly #spending: Spending
  readonly #startedAt = performance.now()
  readonly #span: Span
  #code: string | undefined
  #deadline: NodeJS.Timeout | undefined
  #abort: AbortController | undefined
  #isCounted = false
  #ends: (() => void)[] | undefined

  constructor(edge: Edge, rules: Rules, said: Said) {
    this.edge = edge
    this.#rules = rules
    this.#spending = edge.app.budgets.open()
    this.requestId = newRequestId(said.requestId)
    this.source = edge.sourceOf(said.peer, said.forwardedFor)
    this.userAgent = said.userAgent ?? ''
    this.authorization = said.authorization
    this.#span = (rules.quiet ? noTracer : edge.app.tracer).begin(said.traceparent)
  }

  /** Serves the request. Errors go to `refuse`. */
  protected abstract serve(): void | Promise<void>
  /** Responds with an error, unless the request already has a response. */
  protected abstract refuse(error: unknown): void | Promise<void>
  /** Calls `listener` when the client has disconnected, at once if it already has. */
  protected abstract whenGone(listener: () => void): void
  /** Error after the deadline. */
  protected late(): AppError {
    return new AppError(
      'DEADLINE_EXCEEDED',
      'the request took longer than the server allows; retry, or ask for less at once',
    )
  }
  /** Code of the response if `settle` was not called. */
  protected abstract codeOfAnswer(): string

  /** Caller, if it was determined just before. */
  get known(): Caller | undefined {
    return undefined
  }

  /** Conditions and idempotency key. Empty for protocols without them. */
  get wishes(): Wishes {
    return { ifMatch: undefined, ifNoneMatch: undefined, idempotencyKey: undefined }
  }

  /** Aborted when the client disconnects, and when the deadline has passed: the result is not needed any more. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      const abort = new AbortController()
      this.#abort = abort
      this.whenGone(() => abort.abort(gone()))
    }
    return this.#abort.signal
  }

  /** Sets the code of the response. Returns false if there is a response already. */
  settle(code: string): boolean {
    if (this.#code !== undefined) return false
    this.#code = code
    return true
  }

  get isSettled(): boolean {
    return this.#code !== undefined
  }

  /**
   * Counts a request without a valid token of ours, once. Throws RESOURCE_EXHAUSTED if its source has sent too many. The request
   * counts as waiting only after `admit`, since the response may be a challenge.
   */
  countStranger(): void {
    if (this.#isCounted) return
    this.#isCounted = true
    this.edge.app.limits.check('request', this.source)
    this.#enter(nobody, true)
  }

  /**
   * Records the caller of the request, and charges it to their budget. Throws RESOURCE_EXHAUSTED if they are over budget while
   * others wait, so call it before the request causes work.
   */
  admit(caller: Caller): void {
    this.#enter(caller, false)
  }

  #enter(caller: Caller, isUnproven: boolean): void {
    this.caller = caller
    const { uid, operator: isExempt } = caller
    const problem = this.#spending.enter({ uid, source: this.source, isExempt, isUnproven })
    if (!problem) return
    this.edge.app.metrics.budgetRefusals.inc({ transport: this.#rules.name })
    throw problem
  }

  /** Charges the request for time used before its arrival, such as for reading its message. */
  charge(ms: number): void {
    this.#spending.charge(ms)
  }

  /** Charges the request for the rest of this turn of the event loop. Socket callbacks are charged to no other request. */
  chargeFromHere(): void {
    this.edge.app.threadTime.run(this.#spending, nothing)
  }

  /** Calls `listener` once there is a response and its data is not needed any more. */
  whenOver(listener: () => void): void {
    this.#ends ??= []
    this.#ends.push(listener)
  }

  /** Ends the deadline, since the response has started. */
  begun(): void {
    clearTimeout(this.#deadline)
  }

  run(): Promise<void> {
    return this.edge.app.threadTime.run(this.#spending, () => this.#run())
  }

  async #run(): Promise<void> {
    const { deadlineMs, quiet, countsItself, verifies } = this.#rules
    const { inFlight } = this.edge.app.metrics
    if (!quiet) inFlight.inc()
    if (deadlineMs !== undefined) this.#deadline = setTimeout(refuseLate, deadlineMs, this)
    try {
      const isCredential = this.authorization !== undefined && verifies
      if (!isCredential && !countsItself) this.countStranger()
      await this.#span.run(() => this.serve())
    } catch (error) {
      const { app, closing } = this.edge
      if (error instanceof OverBudget) await app.budgets.hold(AbortSignal.any([this.signal, closing.signal]))
      await this.refuse(error)
    } finally {
      this.begun()
      for (const end of this.#ends ?? []) end()
      if (!quiet) inFlight.dec()
      this.#record()
      this.edge.app.threadTime.settle()
      this.#spending.close(this.source)
    }
  }

  /** Responds after the deadline. Later results of the work are dropped; long work ends with the signal. */
  refuseLate(): void {
    const error = this.late()
    void this.refuse(error)
    this.#abort ??= new AbortController()
    this.#abort.abort(error)
  }

  #record(): void {
    const { name: transport, quiet } = this.#rules
    const { metrics, log } = this.edge.app
    const seconds = (performance.now() - this.#startedAt) / 1000
    const code = this.#code ?? this.codeOfAnswer()
    const { traceId } = this.#span
    metrics.requests.observe({ transport, method: this.method.name, code }, seconds, traceId)
    this.#span.end(
      this.method.fullName || transport,
      { 'pinfold.transport': transport, 'pinfold.code': code, 'pinfold.request_id': this.requestId },
      ourFailures.has(code) || /^5\d\d$/.test(code),
    )
    log[quiet ? 'debug' : 'info']('request', {
      requestId: this.requestId,
      transport,
      method: this.method.fullName,
      code,
      ms: Math.round(seconds * 1e5) / 100,
      caller: this.caller.uid,
      remoteAddress: this.source,
      ...(traceId !== undefined && { traceId }),
    })
  }
}

/** Codes of google.rpc that are failures of the server. */
const ourFailures = new Set(['INTERNAL', 'UNKNOWN', 'DATA_LOSS', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'])

const unknownMethod = { name: 'none', fullName: '' }

function nothing(): void {}

function refuseLate(arrival: Arrival): void {
  arrival.refuseLate()
}

/** Error of a request whose client has disconnected. Only the log shows it. */
export function gone(): AppError {
  return new AppError('CANCELLED', 'the client has disconnected')
}

/** Error of a stream whose client does not read, so that unsent data does not pile up. */
export function tooSlow(): AppError {
  return new AppError('RESOURCE_EXHAUSTED', 'the client reads too slowly')
}
