// Who may open a stream over gRPC. That is looked at before anything of the message is read, as over REST.
import type { ServerHttp2Stream } from 'node:http2'
import { Arrival, type Said } from '#edge/arrival.ts'
import { authenticate } from '#edge/caller.ts'
import { problemOfCall } from '#edge/request-limits.ts'
import { codes } from '#lib/errors.ts'
import { type Api, fail } from './door.ts'
import { statusOf } from './grpc-calls.ts'
import type { OpenStream } from './grpc-streams.ts'
import type { Endpoint } from './methods.ts'
import { vendorTag } from './naming/grpc-names.ts'

/** Calls `pass` if the stream is to be served, and refuses it otherwise. */
export type Admission = (opened: OpenStream, pass: () => void) => void

/** Health, reflection and what there is not are answered by a library and open to all, so they are counted like open methods. */
export function createAdmission(api: Api, endpoints: readonly Endpoint[]): Admission {
  const ours = new Map(endpoints.map(({ method }) => [`/${method.fullName}`, method]))
  return (opened, pass) => {
    const { stream, headers, said } = opened
    const method = ours.get(headers[':path'] ?? '')
    const admit = async (): Promise<void> => {
      const problem = problemOfCall(headers)
      if (problem) throw problem
      const source = api.sourceOf(said.peer, said.forwardedFor)
      const verifies = said.authorization !== undefined && method !== undefined && method.access.mode !== 'open'
      if (!verifies) return api.app.limits.check('request', source)
      const caller = await authenticate(api.app, api.verify, { authorization: said.authorization, source })
      opened.admitted = { caller, at: performance.now() }
    }
    admit().then(
      () => {
        if (!stream.destroyed && !stream.closed) pass()
      },
      (error: unknown) => {
        const refused = new RefusedStream(api, said, stream, error)
        if (method) refused.method = method
        if (api.app.vendor && headers[vendorTag] === '1') refused.vendor = api.app.vendor
        void refused.run()
      },
    )
  }
}

/** Answered as one head without a body (the gRPC protocol, "Trailers-Only"). */
class RefusedStream extends Arrival {
  readonly #api: Api
  readonly #stream: ServerHttp2Stream
  readonly #error: unknown

  constructor(api: Api, said: Said, stream: ServerHttp2Stream, error: unknown) {
    super(api, { name: 'grpc', countsItself: true }, said)
    this.#api = api
    this.#stream = stream
    this.#error = error
  }

  protected override serve(): void {
    throw this.#error
  }

  protected override refuse(error: unknown): void {
    const rendered = fail(this.#api, error, this)
    if (!this.settle(rendered.code) || this.#stream.destroyed || this.#stream.closed) return
    const { details, metadata } = statusOf(rendered, this.requestId)
    const head = {
      ...metadata.toHttp2Headers(),
      ':status': 200,
      'content-type': 'application/grpc',
      'grpc-status': String(codes[rendered.code].number),
      'grpc-message': encodeURIComponent(details),
    }
    this.#stream.respond(head, { endStream: true })
    this.#stream.close()
  }

  protected override whenGone(listener: () => void): void {
    this.#stream.once('close', listener)
  }

  protected override codeOfAnswer(): string {
    return 'UNKNOWN'
  }
}
