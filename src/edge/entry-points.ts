// Entry points of the HTTP port. The path of a request selects one, which then serves the request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '#lib/errors.ts'
import { countedBytes, type HeldBytes } from '#lib/net/byte-budget.ts'
import type { Called } from '#lib/net/hosts.ts'
import { isProxy } from '#lib/net/source-address.ts'
import { Arrival, type CallConditions, declareMethods, type Edge, type Rules } from './arrival.ts'
import { problemOf } from './request-limits.ts'
import { setRequestId } from './safe-headers.ts'

/** Entry point: one of the services that share the HTTP port. */
export type EntryPoint = Rules & {
  /** Names of all methods that its requests can have in the metrics. */
  readonly methods: readonly string[]
  /** True if the entry point serves this path. The path has no query. */
  matches(path: string): boolean
  /** Serves a request and responds. If it throws, `refuse` is called with the error. */
  serve(arrival: HttpArrival): void | Promise<void>
  /**
   * Responds with an error, in the format of the entry point. May be called again after the deadline. If there is a response
   * already, does nothing.
   */
  refuse(arrival: HttpArrival, error: unknown): void | Promise<void>
}

/**
 * Creates the request handler. Passes each request to the first entry point that matches, so the last one must match every path.
 * The handler returns a function that ends the request with an error.
 */
export function serveEntryPoints(edge: Edge, entryPoints: readonly EntryPoint[]) {
  for (const entryPoint of entryPoints) declareMethods(edge, entryPoint)
  return (req: IncomingMessage, res: ServerResponse): ((error: AppError) => void) => {
    // If the request target contains a host, the Host header is ignored (RFC 9112, 3.2.2).
    const { target, authority } = originForm(req.url ?? '/')
    req.url = target
    const mark = target.indexOf('?')
    const path = mark < 0 ? target : target.slice(0, mark)
    const entryPoint = entryPoints.find((one) => one.matches(path))!
    const search = mark < 0 ? '' : target.slice(mark + 1)
    const arrival = new HttpArrival(edge, entryPoint, req, res, { path, search, authority })
    void arrival.run()
    return (error) => arrival.end(error)
  }
}

type Target = { path: string; search: string; authority: string | undefined }

/** Path and query of a request target. Removes the scheme and host that clients of proxies send. */
function originForm(url: string): { target: string; authority: string | undefined } {
  const [start, authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? []
  if (start === undefined) return { target: url, authority: undefined }
  const rest = url.slice(start.length)
  return { target: rest.startsWith('/') ? rest : `/${rest}`, authority }
}

/** Request over HTTP/1.1 or HTTP/2. */
export class HttpArrival extends Arrival {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly path: string
  /** Query, without the question mark. */
  readonly search: string
  readonly #entryPoint: EntryPoint
  /** Host of an absolute request target. */
  readonly #authority: string | undefined
  #called: { as: Called | undefined } | undefined
  #held: HeldBytes | undefined
  /** True while the body is being read. The reader of the body sets it. */
  awaitsBody = false

  constructor(
    edge: Edge,
    entryPoint: EntryPoint,
    req: IncomingMessage,
    res: ServerResponse,
    { path, search, authority }: Target,
  ) {
    const { headers } = req
    super(edge, entryPoint, {
      peer: req.socket.remoteAddress ?? '',
      forwardedFor: headers['x-forwarded-for']?.toString(),
      requestId: headers['x-request-id']?.toString(),
      userAgent: headers['user-agent'],
      authorization: headers.authorization,
      traceparent: headers.traceparent?.toString(),
    })
    this.req = req
    this.res = res
    this.path = path
    this.search = search
    this.#entryPoint = entryPoint
    this.#authority = authority
    setRequestId(res, this.requestId)
  }

  /** HTTP method from a closed set. All unknown methods are `other`. */
  get verb(): string {
    const { method = '' } = this.req
    return verbs.has(method) ? method : 'other'
  }

  /** Sets the name of the request in the metrics: its HTTP method and its kind. The entry point must have declared the kind. */
  named(what: string): void {
    const name = `${this.verb} ${what}`
    this.method = { name, fullName: name }
  }

  override get wishes(): CallConditions {
    const { headers } = this.req
    const idempotencyKey = headers['idempotency-key']?.toString()
    return { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'], idempotencyKey }
  }

  /** Host name that the client has used. Undefined if it is not a name of this server. */
  get called(): Called | undefined {
    this.#called ??= { as: this.#findCalled() }
    return this.#called.as
  }

  #findCalled(): Called | undefined {
    const { headers, socket } = this.req
    const { hosts, proxies } = this.edge
    const host = String(headers[':authority'] ?? this.#authority ?? headers.host ?? '')
    const believed = isProxy(socket.remoteAddress ?? '', proxies) ? headers : undefined
    return hosts.find({
      host,
      forwardedHost: believed?.['x-forwarded-host']?.toString(),
      forwardedProto: believed?.['x-forwarded-proto']?.toString(),
    })
  }

  /**
   * Counts a chunk of the body in memory until the request ends. Throws RESOURCE_EXHAUSTED if the bodies in memory exceed a limit.
   * The body is then no longer counted, so its reader must drop it.
   */
  holdBody(chunk: Buffer): void {
    this.#held ??= this.#openBody()
    try {
      this.#held.take(countedBytes(chunk))
    } catch (error) {
      this.#held.release()
      throw error
    }
  }

  #openBody(): HeldBytes {
    const { source, caller } = this
    const held = this.edge.bodies.open({ source, transport: this.#entryPoint.name, isAnonymous: caller.uid === '' })
    this.whenOver(held.release)
    return held
  }

  /** Counts the buffers of an upload until the request ends. */
  openUpload(): HeldBytes {
    const held = this.edge.bodies.openUpload(this.source)
    this.whenOver(held.release)
    return held
  }

  /** Stops counting the body. Call it when the body is no longer in memory, but the request goes on. */
  releaseBody(): void {
    this.#held?.release()
  }

  /** Ends the request with an error from outside of the entry point. Does nothing if there is a response already. */
  end(error: AppError): void {
    void this.refuse(error)
  }

  protected override serve(): void | Promise<void> {
    const problem = problemOf(this.req, this.#authority)
    if (problem) throw problem
    return this.#entryPoint.serve(this)
  }

  protected override async refuse(error: unknown): Promise<void> {
    try {
      await this.#entryPoint.refuse(this, error)
    } catch (cause) {
      this.edge.app.log.error('error response could not be sent', { requestId: this.requestId, error: cause })
      this.res.destroy()
    }
  }

  protected override onDisconnect(listener: () => void): void {
    if (this.res.destroyed) listener()
    else this.res.once('close', listener)
  }

  /**
   * Error for a request that has reached its deadline. If the body is not complete, the error names that as the reason, and the
   * connection is closed.
   */
  protected override late(): AppError {
    if (!this.awaitsBody) return super.late()
    if (this.req.httpVersionMajor === 1) this.res.shouldKeepAlive = false
    return new AppError('DEADLINE_EXCEEDED', 'the request body did not arrive in time', { http: 408 })
  }

  protected override codeOfAnswer(): string {
    return String(this.res.statusCode)
  }
}

const verbs = new Set(['GET', 'HEAD', 'PUT', 'POST', 'PATCH', 'DELETE', 'OPTIONS'])

/** Names of an entry point's methods in the metrics: each combination of an HTTP method and a kind. */
export function withVerbs(kinds: readonly string[]): string[] {
  return [...verbs, 'other'].flatMap((verb) => kinds.map((kind) => `${verb} ${kind}`))
}
