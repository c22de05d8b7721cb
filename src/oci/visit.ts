// One request at the registry, and its caller.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { App, Work } from '#app.ts'
import type { Caller } from '#caller.ts'
import type { PolicyVerdict } from '#domains/outbox/emit-registry.ts'
import type { View } from '#domains/policy/views/views.model.ts'
import type { Found } from '#domains/registry/repos/repos.model.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { limitIdle } from '#edge/idle-limit.ts'
import type { RepositoryAccess } from '#issuer/access-token.ts'
import type { Cause } from '#lib/cause.ts'
import type { HeldBytes } from '#lib/net/byte-budget.ts'

/** Values that are the same for all requests to the registry. */
export type Registry = {
  app: App
  /** Base URL of the server. */
  url: string
  /** `host[:port]` of the URL. It is the audience of the registry's tokens and the `service` of a challenge. */
  host: string
}

/** Forms of the repository path in a request. */
export type Named = {
  /** Path without the view, and with the path prefix of the host. It may have uids instead of the names of groups. */
  name: string
  /** Path as the client wrote it. Links in responses use this path. */
  written: string
  /** Path with the path prefix of the host, and with the view. Clients can use this path at the main host of the registry. */
  whole: string
  view: View | undefined
}

/** One request with its caller. `name` is empty for `/v2/` and `/token`. For the path of the repository, use `pathOf`. */
export type Visit = Named & {
  registry: Registry
  call: VisitCall
  req: IncomingMessage
  res: ServerResponse
  /** Path prefix that is configured for the host of the request. */
  prefix: string
  /** Origin at which the client called the server, including the subdomain. The URL of the server if the host is unknown. */
  origin: string
  /**
   * Subdomain in the host of the request, or empty. A subdomain is the name of a folder, directly below the organization in the
   * path.
   */
  subdomain: string
  query: URLSearchParams
  /** True if the caller sent no credential, or a token that was issued without a credential. */
  anonymous: boolean
  /** Repositories and actions of the token. Undefined for a token of the exchange, which is not limited to repositories. */
  access: readonly RepositoryAccess[] | undefined
  /** Verdicts of policies on the pull, for the pull event. */
  judged?: readonly PolicyVerdict[]
  /** Result of the last look-up of a path in this request. */
  seen?: { path: string; found: Found }
}

/** Path of the repository. If the request has a subdomain, inserts this folder after the organization. */
export function pathOf({ name, subdomain }: Pick<Visit, 'name' | 'subdomain'>): string {
  return subdomain === '' ? name : name.replace('/', () => `/${subdomain}/`)
}

/** App, caller, cause and log of one request. */
export class VisitCall implements Work {
  readonly app: App
  readonly caller: Caller
  readonly cause: Cause
  readonly #arrival: HttpArrival

  constructor(app: App, arrival: HttpArrival) {
    const { caller, requestId, source, userAgent } = arrival
    this.app = app
    this.caller = caller
    this.#arrival = arrival
    const [actor, act, now] = [caller.uid, caller.token?.act, app.clock().toISOString()]
    this.cause = { actor, act, now, source, userAgent, requestId, version: undefined }
  }

  /** Signal that aborts when the client disconnects or the response is complete. */
  get signal(): AbortSignal {
    return this.#arrival.signal
  }

  /** Counts a chunk of the body in memory until the request ends. Throws RESOURCE_EXHAUSTED above the limit. */
  holdBody(chunk: Buffer): void {
    this.#arrival.holdBody(chunk)
  }

  /** Counts the buffers of an upload until the request ends. */
  openUpload(): HeldBytes {
    return this.#arrival.openUpload()
  }

  get log(): Work['log'] {
    return this.app.log.with({ requestId: this.cause.requestId, caller: this.caller.uid })
  }
}

/** Ends the request if no data is transferred for the timeout of an API request. The total time is not limited. */
export const idleLimit = ({ req, registry }: Visit): void => limitIdle(req, registry.app.config.requestTimeoutMs)
