// One request, however it came: who sent it, until when, and the one log line and measurement that it leaves.
import type { App, Caller } from '#app.ts'
import { AppError } from '#lib/errors.ts'
import { sourceAddress, type TrustedProxies, trustedProxies } from '#lib/net/source-address.ts'
import { newRequestId } from '#lib/request-id.ts'
import { nobody } from './caller.ts'

/** What all requests at this server have in common. */
export type Edge = {
  app: App
  /** What clients call us. */
  url: string
  proxies: TrustedProxies
  /** Aborted when the server is asked to stop, which ends its streams; the reason is what their callers get to see. */
  closing: AbortController
}

/** The edge of a server that clients call `url`. */
export function createEdge(app: App, url: string): Edge {
  return { app, url, proxies: trustedProxies(app.config.trustedProxies), closing: new AbortController() }
}

/** What all requests at one door have in common. */
export type Rules = {
  /** `transport` in the log line and the metric. */
  readonly name: string
  /** By when the answer must have begun, in milliseconds; absent where a request takes as long as it takes. */
  readonly deadlineMs?: number
  /** Machines ask again and again: the log line is for debugging, and the request does not count as in flight. */
  readonly quiet?: boolean
}

/** What a client says of itself, as it came. */
export type Said = {
  /** The address of the connection. */
  peer: string
  forwardedFor: string | undefined
  requestId: string | undefined
  userAgent: string | undefined
  authorization: string | undefined
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
  /** What is asked for: `name` is a label of the metric, so it comes from a closed set, and `fullName` is for the log. */
  method: { readonly name: string; readonly fullName: string } = unknownMethod
  readonly #rules: Rules
  readonly #startedAt = performance.now()
  #code: string | undefined
  #deadline: NodeJS.Timeout | undefined
  #abort: AbortController | undefined

  constructor(edge: Edge, rules: Rules, said: Said) {
    this.edge = edge
    this.#rules = rules
    this.requestId = newRequestId(said.requestId)
    this.source = sourceAddress(said.peer, said.forwardedFor, edge.proxies)
    this.userAgent = said.userAgent ?? ''
    this.authorization = said.authorization
  }

  /** Does what is asked for. What it throws goes to `refuse`. */
  protected abstract serve(): void | Promise<void>
  /** Answers with an error, unless the request is answered already. */
  protected abstract refuse(error: unknown): void | Promise<void>
  /** Calls `listener` when the client has hung up, at once if it has already. */
  protected abstract whenGone(listener: () => void): void
  /** How the request was answered when nobody has said so by `settle`. */
  protected abstract codeOfAnswer(): string

  /** Aborted when the client hangs up. */
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

  /** The answer has begun in time. */
  begun(): void {
    clearTimeout(this.#deadline)
  }

  async run(): Promise<void> {
    const { deadlineMs, quiet } = this.#rules
    const { inFlight } = this.edge.app.metrics
    if (!quiet) inFlight.inc()
    if (deadlineMs !== undefined) this.#deadline = setTimeout(refuseLate, deadlineMs, this)
    try {
      await this.serve()
    } catch (error) {
      await this.refuse(error)
    } finally {
      this.begun()
      if (!quiet) inFlight.dec()
      this.#record()
    }
  }

  /** What its work does afterwards is thrown away. */
  refuseLate(): void {
    void this.refuse(new AppError('DEADLINE_EXCEEDED', 'the request took too long'))
  }

  #record(): void {
    const { name: transport, quiet } = this.#rules
    const { metrics, log } = this.edge.app
    const seconds = (performance.now() - this.#startedAt) / 1000
    const code = this.#code ?? this.codeOfAnswer()
    metrics.requests.observe({ transport, method: this.method.name, code }, seconds)
    log[quiet ? 'debug' : 'info']('request', {
      requestId: this.requestId,
      transport,
      method: this.method.fullName,
      code,
      ms: Math.round(seconds * 1e5) / 100,
      caller: this.caller.uid,
      remoteAddress: this.source,
    })
  }
}

const unknownMethod = { name: 'none', fullName: '' }

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
