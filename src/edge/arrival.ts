// One request over any protocol. Has its client address and its deadline, and writes its log line and its metrics.
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
import { type BodyBytes, createBodyBytes } from './body-bytes.ts'
import { nobody } from './caller.ts'
import { createSources, type SourceOf } from './sources.ts'

/** Data that all requests to this server share. */
export type Edge = {
  app: App
  /** URL of the server for clients. */
  url: string
  /** Host names by which clients may call the server. */
  hosts: Hosts
  proxies: TrustedProxies
  sourceOf: SourceOf
  bodies: BodyBytes
  /** Aborted when the server stops. Streams then end, and their clients get the reason. */
  closing: AbortController
  /**
   * Aborted when load balancers should send no more requests. The server still serves all requests until `closing` is aborted.
   */
  leaving: AbortController
}

/** Creates the shared data of requests. `url` is the URL of the server for clients. */
export function createEdge(app: App, url: string): Edge {
  const proxies = trustedProxies(app.config.trustedProxies)
  const sourceOf = createSources(proxies, app.log)
  return {
    app,
    url,
    hosts: createHosts(url, [...app.config.hosts, ...app.config.hostPaths.keys()]),
    proxies,
    sourceOf,
    bodies: createBodyBytes(app),
    closing: new AbortController(),
    leaving: new AbortController(),
  }
}

/** Rules for all requests to one entry point. */
export type Rules = {
  /** Name of the entry point: `transport` in the log line and in the metrics. */
  readonly name: string
  /** Milliseconds after which the response must have started. Undefined if a request may take any time. */
  readonly deadlineMs?: number
  /**
   * True for frequent automatic requests. Their log lines have the level debug, and the metric of requests in flight does not
   * count them.
   */
  readonly quiet?: boolean
  /** True if the entry point counts requests without a token itself, since some of them have no limit. */
  readonly countsItself?: boolean
  /**
   * True if the entry point verifies credentials. It then also counts requests with an invalid credential. Other entry points
   * ignore credentials.
   */
  readonly verifies?: boolean
}

/** Declares an entry point and its methods for the metrics. Undeclared names appear in the metrics as `other`. */
export function declareMethods({ app }: Edge, entryPoint: { name: string; methods: readonly string[] }): void {
  app.metrics.entryPoints.transports.declare([entryPoint.name])
  app.metrics.entryPoints.methods.declare(entryPoint.methods)
}

/** Data from the connection and the headers. All headers are unverified. */
export type RequestFacts = {
  /** Address of the connection. */
  peer: string
  forwardedFor: string | undefined
  requestId: string | undefined
  userAgent: string | undefined
  authorization: string | undefined
  /** Parent span of the request (W3C Trace Context). */
  traceparent: string | undefined
}

/** Preconditions and idempotency key of a call, as sent by the client. */
export type CallConditions = {
  ifMatch: string | undefined
  ifNoneMatch: string | undefined
  idempotencyKey: string | undefined
}

/** One request to an entry point. Listeners create it and call only `run`. */
export abstract class Arrival {
  readonly edge: Edge
  readonly requestId: string
  /** Address of the client. Without a trusted proxy, the address of the connection. */
  readonly source: string
  /** User-Agent of the client. Empty if it sends none. */
  readonly userAgent: string
  /** Credential as sent by the client. */
  readonly authorization: string | undefined
  /** Caller for the log line. The entry point sets it once the caller is known. */
  caller: Caller = nobody
  /**
   * Called method. Metrics show `name`, and the log shows `fullName`. Both must be names from our code, never text from the
   * client.
   */
  method: { readonly name: string; readonly fullName: string; readonly version?: Version } = unknownMethod
  /** Vendor whose names the client uses. The entry point sets it. Undefined for our names. */
  vendor: Vendor | undefined
  /** Finds the caller, if the credential is not in the Authorization header. Streams call it again from time to time. */
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

  constructor(edge: Edge, rules: Rules, facts: RequestFacts) {
    this.edge = edge
    this.#rules = rules
    this.#spending = edge.app.budgets.open()
    this.requestId = newRequestId(facts.requestId)
    this.source = edge.sourceOf(facts.peer, facts.forwardedFor)
    this.userAgent = facts.userAgent ?? ''
    this.authorization = facts.authorization
    this.#span = (rules.quiet ? noTracer : edge.app.tracer).begin(facts.traceparent)
  }

  /** Serves the request. If it throws, `refuse` is called with the error. */
  protected abstract serve(): void | Promise<void>
  /** Responds with an error. Does nothing if the request already has a response. */
  protected abstract refuse(error: unknown): void | Promise<void>
  /** Calls `listener` when the client disconnects. Calls it at once if the client has already disconnected. */
  protected abstract onDisconnect(listener: () => void): void
  /** Error for a request that has reached its deadline. */
  protected late(): AppError {
    return new AppError(
      'DEADLINE_EXCEEDED',
      'the request took longer than the server allows; retry, or ask for less at once',
    )
  }
  /** Code for the log line and the metrics if `settle` was not called. */
  protected abstract codeOfAnswer(): string

  /** Caller that was authenticated before this request was created. Undefined if there is none. */
  get known(): Caller | undefined {
    return undefined
  }

  /** Preconditions and idempotency key. Empty for protocols without them. */
  get wishes(): CallConditions {
    return { ifMatch: undefined, ifNoneMatch: undefined, idempotencyKey: undefined }
  }

  /** Aborted when the client disconnects or the deadline passes. The result is not needed any more then. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      const abort = new AbortController()
      this.#abort = abort
      this.onDisconnect(() => abort.abort(gone()))
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
   * Counts a request without a valid token of ours. Further calls do nothing. Throws RESOURCE_EXHAUSTED if its client address has
   * sent too many. The sender does not count as waiting before `admit`, since the response may be a challenge.
   */
  countStranger(): void {
    if (this.#isCounted) return
    this.#isCounted = true
    this.edge.app.limits.check('request', this.source)
    this.#enter(nobody, true)
  }

  /**
   * Records the caller, and charges the request to their budget. Throws RESOURCE_EXHAUSTED if the caller is over budget while
   * others wait. Call it before the request causes work.
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

  /**
   * Charges the rest of this event loop turn to the request. Otherwise, the time of a socket callback would be charged to another
   * request.
   */
  chargeTurn(): void {
    this.edge.app.threadTime.run(this.#spending, nothing)
  }

  /** Calls `listener` when the request has ended and its data is not needed any more. */
  whenOver(listener: () => void): void {
    this.#ends ??= []
    this.#ends.push(listener)
  }

  /** Cancels the deadline. Call it when the response has started. */
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

  /** Responds with the error of the deadline, and aborts the signal. A later result of the work is dropped. */
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

/** Codes of google.rpc for errors of the server. */
const ourFailures = new Set(['INTERNAL', 'UNKNOWN', 'DATA_LOSS', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'])

const unknownMethod = { name: 'none', fullName: '' }

function nothing(): void {}

function refuseLate(arrival: Arrival): void {
  arrival.refuseLate()
}

/** Error for a request whose client has disconnected. It appears only in the log. */
export function gone(): AppError {
  return new AppError('CANCELLED', 'the client has disconnected')
}

/** Error that ends a stream if its client does not read. Otherwise unsent data would fill the memory. */
export function tooSlow(): AppError {
  return new AppError('RESOURCE_EXHAUSTED', 'the client reads too slowly')
}
