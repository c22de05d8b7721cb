// Checks of gRPC calls before their messages are read: limits, authentication and permissions. REST has the same checks.
import type { ServiceError } from '@grpc/grpc-js'
import type { Caller } from '#caller.ts'
import { Arrival } from '#edge/arrival.ts'
import { authenticate, nobody } from '#edge/caller.ts'
import { problemOfCall } from '#edge/request-limits.ts'
import { unimplemented } from '#lib/errors.ts'
import { type Api, fail } from './entry-point.ts'
import { endWithStatus, statusOf } from './grpc-calls.ts'
import type { OpenStream } from './grpc-streams.ts'
import type { Endpoint } from './methods.ts'
import { vendorTag } from './naming/grpc-names.ts'
import { healthPaths } from './naming/health.ts'
import { permitEverywhere } from './permit.ts'
import { shown } from './transcoding/message-fields.ts'

export type Admission = {
  /** Calls `pass` if the call is accepted, and refuses it otherwise. */
  admit(opened: OpenStream, pass: () => void): void
  /**
   * Refuses a call after `pass`, if its handler has not started or a library serves it. `end` is called if the response has
   * already started.
   */
  refuse(opened: OpenStream, error: unknown, end: (status: ServiceError) => void): void
}

/**
 * Creates the checks. Libraries serve health and reflection at `pathsOfLibraries`, without authentication. Their calls are
 * limited like those of methods without a token. Calls of unknown methods are also limited, and then refused.
 */
export function createAdmission(
  api: Api,
  endpoints: readonly Endpoint[],
  pathsOfLibraries: ReadonlySet<string>,
): Admission {
  const ours = new Map(endpoints.map(({ method }) => [`/${method.fullName}`, method]))
  const check = async (opened: OpenStream): Promise<void> => {
    const { headers, facts } = opened
    const problem = problemOfCall(headers)
    if (problem) throw problem
    const { authorization } = facts
    const source = api.sourceOf(facts.peer, facts.forwardedFor)
    const path = headers[':path'] ?? ''
    const access = ours.get(path)?.access ?? { mode: 'open' }
    if (access.mode === 'open' || authorization === undefined) api.app.limits.check('request', source)
    // Health checks have no budget of thread time, as over HTTP.
    if (healthPaths.has(path)) return
    if (!ours.has(path) && !pathsOfLibraries.has(path)) {
      throw unimplemented(`the server does not implement the method ${shown(opened.called)}`)
    }
    if (access.mode === 'open') return requireBudget(api, nobody, source)
    const caller = await authenticate(api.app, api.verify, { authorization, source })
    opened.admitted = { caller, at: performance.now() }
    requireBudget(api, caller, source)
    if (access.mode === 'everywhere') permitEverywhere(access, caller)
  }
  const refuse: Admission['refuse'] = (opened, error, end) => {
    const { headers, admitted } = opened
    const refused = new RefusedStream(api, opened, error, end)
    const method = ours.get(headers[':path'] ?? '')
    if (method) refused.method = method
    if (admitted) refused.caller = admitted.caller
    if (api.app.vendor && headers[vendorTag] === '1') refused.vendor = api.app.vendor
    void refused.run()
  }
  return {
    admit(opened, pass) {
      const { stream } = opened
      check(opened).then(
        () => {
          if (!stream.destroyed && !stream.closed) pass()
        },
        (error: unknown) => refuse(opened, error, () => {}),
      )
    },
    refuse,
  }
}

/** Throws RESOURCE_EXHAUSTED if the caller is over budget while others wait. Runs before the message is read. */
function requireBudget({ app }: Api, { uid, operator }: Caller, source: string): void {
  // The anonymous caller does not count as waiting yet: a call of an open method does so later, and a call to a library never
  // does.
  const problem = app.budgets.problemOf({ uid, source, isExempt: operator, isUnproven: uid === '' })
  if (!problem) return
  app.metrics.budgetRefusals.inc({ transport: 'grpc' })
  throw problem
}

/** Refused call. Its response is one header block without a body ("Trailers-Only" of the gRPC protocol). */
class RefusedStream extends Arrival {
  readonly #api: Api
  readonly #stream: OpenStream['stream']
  readonly #error: unknown
  readonly #end: (status: ServiceError) => void

  constructor(api: Api, { stream, facts }: OpenStream, error: unknown, end: (status: ServiceError) => void) {
    super(api, { name: 'grpc', countsItself: true }, facts)
    this.#api = api
    this.#stream = stream
    this.#error = error
    this.#end = end
  }

  protected override serve(): void {
    throw this.#error
  }

  protected override refuse(error: unknown): void {
    const rendered = fail(this.#api, error, this)
    if (!this.settle(rendered.code) || this.#stream.destroyed || this.#stream.closed) return
    const status = statusOf(rendered, this.requestId)
    if (this.#stream.headersSent) {
      this.#end(status)
      return
    }
    endWithStatus(this.#stream, status)
  }

  protected override onDisconnect(listener: () => void): void {
    this.#stream.once('close', listener)
  }

  protected override codeOfAnswer(): string {
    return 'UNKNOWN'
  }
}
