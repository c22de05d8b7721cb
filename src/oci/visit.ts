// One request at the registry's door, and who makes it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { App, Work } from '#app.ts'
import type { Caller } from '#caller.ts'
import type { Judgement } from '#domains/outbox/emit-registry.ts'
import type { View } from '#domains/policy/views/views.model.ts'
import type { Found } from '#domains/registry/repos/repos.model.ts'
import type { HttpArrival } from '#edge/doors.ts'
import { limitIdle } from '#edge/idle-limit.ts'
import type { RepositoryAccess } from '#issuer/access-token.ts'
import type { Cause } from '#lib/cause.ts'

/** What does not change from request to request. */
export type Registry = {
  app: App
  /** What clients call us. */
  url: string
  /** `host[:port]` of the URL: the audience of the registry's tokens, and the `service` of a challenge. */
  host: string
}

/** How a client names a repository. */
export type Named = {
  /** The path without a view; it may still name groups by their uids. */
  name: string
  /** As the client wrote it; what leads it on is written so, too. */
  written: string
  /** The same with what the host stands for, so that it means the same at the registry's own host. */
  whole: string
  view: View | undefined
}

/** `name` is empty for `/v2/` and `/token`; see `pathOf`. */
export type Visit = Named & {
  registry: Registry
  call: VisitCall
  req: IncomingMessage
  res: ServerResponse
  /** What the settings put before each path at the host that the client has called. */
  prefix: string
  /** What the client calls us: the URL, or another of our names, with the sub-domain. */
  origin: string
  /** Of the registry's host, as the client called it; else empty. It stands for a folder of each organisation. */
  subdomain: string
  query: URLSearchParams
  /** The caller has shown no credential, only a token that anybody can get. */
  anonymous: boolean
  /** What the token is good for; absent for a token of the exchange, which says nothing of repositories. */
  access: readonly RepositoryAccess[] | undefined
  /** What rules said of what was pulled, for its event. */
  judged?: readonly Judgement[]
  /** What was at a path when the request looked last. */
  seen?: { path: string; found: Found }
}

/** Where the repository is: a sub-domain of the registry is the folder between its organisation and the rest. */
export function pathOf({ name, subdomain }: Pick<Visit, 'name' | 'subdomain'>): string {
  return subdomain === '' ? name : name.replace('/', () => `/${subdomain}/`)
}

/** In whose name the registry works on one request. */
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

  /** Aborted once the client has gone, or has its answer. */
  get signal(): AbortSignal {
    return this.#arrival.signal
  }

  get log(): Work['log'] {
    return this.app.log.with({ requestId: this.cause.requestId, caller: this.caller.uid })
  }
}

/** Ends the request when nothing comes or goes for as long as a call to the API may take; its whole time is not limited. */
export const idleLimit = ({ req, registry }: Visit): void => limitIdle(req, registry.app.config.requestTimeoutMs)
