// One request at the registry's door, and who makes it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import http2, { type ServerHttp2Stream } from 'node:http2'
import type { App, Call, Caller, Method } from '#app.ts'
import type { HttpArrival } from '#edge/doors.ts'
import type { RepositoryAccess } from '#issuer/access-token.ts'

/** What does not change from request to request. */
export type Registry = {
  app: App
  /** What clients call us. */
  url: string
  /** `host[:port]` of the URL: the audience of the registry's tokens, and the `service` of a challenge. */
  host: string
  /** A method of the contract, for what a push makes in the caller's name: `CreateGroup`, `CreateRepo`. */
  method(name: 'CreateGroup' | 'CreateRepo'): Method
}

export type Visit = {
  registry: Registry
  call: VisitCall
  req: IncomingMessage
  res: ServerResponse
  /** The repository's path as the client wrote it; empty for `/v2/` and `/token`. See `pathOf`. */
  name: string
  /** Of the registry's host, as the client called it; else empty. It stands for a folder of each organisation. */
  subdomain: string
  query: URLSearchParams
  /** The caller has shown no credential, only a token that anybody can get. */
  anonymous: boolean
  /** What the token is good for; absent for a token of the exchange, which says nothing of repositories. */
  access: readonly RepositoryAccess[] | undefined
}

/** Where the repository is: a sub-domain of the registry is the folder between its organisation and the rest. */
export function pathOf({ name, subdomain }: Pick<Visit, 'name' | 'subdomain'>): string {
  return subdomain === '' ? name : name.replace('/', () => `/${subdomain}/`)
}

type VisitCallInput = { registry: Registry; arrival: HttpArrival; method?: Method }

/** What only some handlers need is made when they ask for it. */
export class VisitCall implements Call {
  readonly app: App
  readonly caller: Caller
  readonly reach: readonly string[] = []
  readonly now: string
  readonly requestId: string
  readonly credential = undefined
  readonly url: string
  readonly source: string
  readonly userAgent: string
  readonly #input: VisitCallInput

  constructor(input: VisitCallInput) {
    this.app = input.registry.app
    this.url = input.registry.url
    this.caller = input.arrival.caller
    this.now = input.registry.app.clock().toISOString()
    this.requestId = input.arrival.requestId
    this.source = input.arrival.source
    this.userAgent = input.arrival.userAgent
    this.#input = input
  }

  /** The same call, with the method that the rules and the events of what it makes on the way belong to. */
  as(name: 'CreateGroup' | 'CreateRepo'): Call {
    return new VisitCall({ ...this.#input, method: this.#input.registry.method(name) })
  }

  get method(): Method {
    if (!this.#input.method) throw new Error('a request at the registry is no method of the contract')
    return this.#input.method
  }

  get log(): Call['log'] {
    return this.app.log.with({ requestId: this.requestId, caller: this.caller.uid })
  }

  get signal(): AbortSignal {
    return this.#input.arrival.signal
  }
}

/** Ends the request when nothing comes or goes for as long as a call to the API may take; its whole time is not limited. */
export function idleLimit({ req, registry }: Visit): void {
  const cut = (): void => {
    // Of HTTP/2 the request is only a view; the stream is what a client holds open.
    if ('stream' in req) (req.stream as ServerHttp2Stream).close(http2.constants.NGHTTP2_CANCEL)
    else req.destroy()
  }
  req.setTimeout(registry.app.config.requestTimeoutMs, cut)
}
