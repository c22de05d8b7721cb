// One request at the registry, and its caller.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { App, Work } from '#app.ts'
import type { Caller } from '#caller.ts'
import type { Judgement } from '#domains/outbox/emit-registry.ts'
import type { View } from '#domains/policy/views/views.model.ts'
import type { Found } from '#domains/registry/repos/repos.model.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { limitIdle } from '#edge/idle-limit.ts'
import type { RepositoryAccess } from '#issuer/access-token.ts'
import type { Cause } from '#lib/cause.ts'

/** Values that are the same for all requests. */
export type Registry = {
  app: App
  /** Base URL of the server. */
  url: string
  /** `host[:port]` of the URL: the audience of the registry's tokens, and the `service` of a challenge. */
  host: string
}

/** Names of a repository in a request. */
export type Named = {
  /** Path without the view. It may still have uids instead of names of groups. */
  name: string
  /** Path as the client wrote it. Links in responses use this form. */
  written: string
  /** The same path with the part that the host replaces, so that it is valid at the main host of the registry. */
  whole: string
  view: View | undefined
}

/** `name` is empty for `/v2/` and `/token`; see `pathOf`. */
export type Visit = Named & {
  registry: Registry
  call: VisitCall
  req: IncomingMessage
  res: ServerResponse
  /** Path prefix that is configured for the host of the request. */
  prefix: string
  /** Origin under which the client reaches the server: the URL, or another name, with the subdomain. */
  origin: string
  /** Subdomain of the registry's host in the request. Empty without one. It stands for a folder of each organization. */
  subdomain: string
  query: URLSearchParams
  /** True if the caller has no credential, or only a token that anyone can get. */
  anonymous: boolean
  /** Scopes of the token. Undefined for a token of the exchange, which is not limited to repositories. */
  access: readonly RepositoryAccess[] | undefined
  /** Verdicts of policies on the pull, for its event. */
  judged?: readonly Judgement[]
  /** Result of the last look-up of a path in this request. */
  seen?: { path: string; found: Found }
}

/** Path of the repository. A subdomain stands for the folder between the organization and the rest. */
export function pathOf({ name, subdomain }: Pick<Visit, 'name' | 'subdomain'>): string {
  return subdomain === '' ? name : name.replace('/', () => `/${subdomain}/`)
}

/** Caller, cause and log of the work for one request. */
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

  /** Aborted when the client has disconnected or has its response. */
  get signal(): AbortSignal {
    return this.#arrival.signal
  }

  get log(): Work['log'] {
    return this.app.log.with({ requestId: this.cause.requestId, caller: this.caller.uid })
  }
}

/** Ends the request if no data moves for the timeout of an API request. The total time is not limited. */
export const idleLimit = ({ req, registry }: Visit): void => limitIdle(req, registry.app.config.requestTimeoutMs)
