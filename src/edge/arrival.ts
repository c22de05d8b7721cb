// One request, however it came: who sent it, until when, and the one log line and measurement that it leaves.
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

/** What all requests at this server have in common. */
export type Edge = {
  app: App
  /** What clients call us. */
  url: string
  /** Under which names they may do so. */
  hosts: Hosts
  proxies: TrustedProxies
  sourceOf: SourceOf
  /** Aborted when the server is asked to stop, which ends its streams; the reason is what their callers get to see. */
  closing: AbortController
  /** Balancers are told to stop sending, and everything is still served. */
  leaving: AbortController
}

/** The edge of a server that clients call `url`. */
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

/** What all requests at one door have in common. */
export type Rules = {
  /** `transport` in the log line and the metric. */
  readonly name: string
  /** By when the answer must have begun, in milliseconds; absent where a request takes as long as it takes. */
  readonly deadlineMs?: number
  /** Machines ask again and again: the log line is for debugging, and the request does not count as in flight. */
  readonly quiet?: boolean
  /** Some of its requests are not to be counted; it counts the others. */
  readonly countsItself?: boolean
  /** It verifies credentials, and counts the requests whose credential opens nothing. Elsewhere a credential is none. */
  readonly verifies?: boolean
}

/** Has the metrics know a door and the methods that it serves; of what is not declared they show nothing. */
export function declareMethods({ app }: Edge, door: { name: string; methods: readonly string[] }): void {
  app.metrics.doors.transports.declare([door.name])
  app.metrics.doors.methods.declare(door.methods)
}

/** What a client says of itself, as it came. */
export type Said = {
  /** The address of the connection. */
  peer: string
  forwardedFor: string | undefined
  requestId: string | undefined
  userAgent: string | undefined
  authorization: string | undefined
  /** Where its trace belongs (W3C Trace Context). */
  traceparent: string | undefined
}

/** What a client wants of a call besides carrying it out, as it came. */
export type Wishes = {
  ifMatch: string | undefined
  ifNoneMatch: string | undefined
  idempotencyKey: string | undefined
}

/** One request on its way through a door. `run` is all that a door's listener has to call. */
export abstract class Arrival {
  readonly edge: Edge
  readonly requestId: string
  /** The client's address, as far as we can tell. */
  readonly source: string
  /** What the client calls itself; empty when it says nothing. */
  readonly userAgent: string
  /** The credential as it came. */
  readonly authorization: string | undefined
  /** For the log line; the door sets it once it knows. */
  caller: Caller = nobody
  /** What is asked for: `name` is for the metric, and `fullName` for the log; both are of what we serve, never the client's words. */
  method: { readonly name: string; readonly fullName: string; readonly version?: Version } = unknownMethod
  /** Whose names the client uses, where they are not ours; its door sets it. */
  vendor: Vendor | undefined
  /** Who calls, at a door that takes another proof than the Authorization header; it is asked again while a stream lasts. */
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

  /** Does what is asked for. What it throws goes to `refuse`. */
  protected abstract serve(): void | Promise<void>
  /** Answers with an error, unless the request is answered already. */
  protected abstract refuse(error: unknown): void | Promise<void>
  /** Calls `listener` when the client has hung up, at once if it has already. */
  protected abstract whenGone(listener: () => void): void
  /** What it is refused with when the deadline has passed. */
  protected late(): AppError {
    return new AppError('DEADLINE_EXCEEDED', 'the request took too long')
  }
  /** How the request was answered when nobody has said so by `settle`. */
  protected abstract codeOfAnswer(): string

  /** Who calls, where that was found out a moment ago. */
  get known(): Caller | undefined {
    return undefined
  }

  /** None of a request that has no place for them. */
  get wishes(): Wishes {
    return { ifMatch: undefined, ifNoneMatch: undefined, idempotencyKey: undefined }
  }

  /** Aborted when the client hangs up, and when the deadline has passed: nobody waits for the work any more. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      const abort = new AbortController()
      this.#abort = abort
      this.whenGone(() => abort.abort(gone()))
    }
    return this.#abort.signal
  }

  /** Says how the request is answered; false when it is answered already. */
  settle(code: string): boolean {
    if (this.#code !== undefined) return false
    this.#code = code
    return true
  }

  get isSettled(): boolean {
    return this.#code !== undefined
  }

  /**
   * Counts a request that shows no token of ours, once; throws RESOURCE_EXHAUSTED when its source has sent too many. It does not
   * count as one that waits until `admit` is called, since it may be answered with a challenge.
   */
  countStranger(): void {
    if (this.#isCounted) return
    this.#isCounted = true
    this.edge.app.limits.check('request', this.source)
    this.#enter(nobody, true)
  }

  /**
   * Notes who sends the request, and charges it to their budget. Throws RESOURCE_EXHAUSTED if they are over budget while others
   * wait, so call it before the request causes work.
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

  /** Charges the request for time that it used before it arrived, such as for reading its message. */
  charge(ms: number): void {
    this.#spending.charge(ms)
  }

  /** Charges the request for what comes next in this turn of the event loop. Callbacks of sockets are charged to nobody else. */
  chargeFromHere(): void {
    this.edge.app.threadTime.run(this.#spending, nothing)
  }

  /** Calls `listener` once there is an answer, and what it was made of is not needed any more. */
  whenOver(listener: () => void): void {
    this.#ends ??= []
    this.#ends.push(listener)
  }

  /** The answer has begun in time. */
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

  /** What its work does afterwards is thrown away; long work ends with the signal. */
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

/** Of the codes of google.rpc. */
const ourFailures = new Set(['INTERNAL', 'UNKNOWN', 'DATA_LOSS', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'])

const unknownMethod = { name: 'none', fullName: '' }

function nothing(): void {}

function refuseLate(arrival: Arrival): void {
  arrival.refuseLate()
}

/** What a request ends with when its client has hung up. Only the log gets to see it. */
export function gone(): AppError {
  return new AppError('CANCELLED', 'the client is gone')
}

/** What a stream ends with when nobody reads it, so that what is to be sent does not pile up. */
export function tooSlow(): AppError {
  return new AppError('RESOURCE_EXHAUSTED', 'the client does not read what it is sent')
}
