// Calls over gRPC: connects the calls of grpc-js to `enter` and `invoke`.
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Message } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import type { Caller } from '#caller.ts'
import { Arrival, type CallConditions, gone, type Rules, tooSlow } from '#edge/arrival.ts'
import { type AppError, codes } from '#lib/errors.ts'
import { type Api, enter, etagOf, fail, invoke, stream } from './entry-point.ts'
import { errorStatus, type Rendered } from './errors.ts'
import { readingMsOf, requestOf } from './grpc-messages.ts'
import { type OpenStream, requestFactsOf, type Streams } from './grpc-streams.ts'
import type { Endpoint } from './methods.ts'
import { vendorTag } from './naming/grpc-names.ts'

/** Maximum size of the status details. If trailers are much larger, clients close the whole connection. */
const maxStatusBytes = 6 * 1024

/** Milliseconds between the authentication of a call and its message after which the caller is authenticated again. */
const mostMsApart = 100

type Stream = grpc.ServerWritableStream<Message, Message>

export function unary(api: Api, endpoint: Endpoint, streams: Streams): grpc.handleUnaryCall<Message, Message> {
  const rules = rulesOf(api)
  return (call, callback) => {
    const serve = async (arrival: GrpcArrival): Promise<void> => {
      await enter(api, endpoint, arrival)
      const response = await invoke(api, endpoint, requestOf(call), undefined, arrival)
      if (!arrival.settle('OK')) return
      const etag = etagOf(api, endpoint, response)
      if (etag !== undefined) call.sendMetadata(withEtag(etag))
      callback(null, response)
    }
    const opened = streams.of(call)
    void new GrpcArrival({ api, rules, call, opened, serve, answer: (status) => callback(status) }).run()
  }
}

function withEtag(etag: string): grpc.Metadata {
  const metadata = new grpc.Metadata()
  metadata.set('etag', etag)
  return metadata
}

export function streaming(
  api: Api,
  endpoint: Endpoint,
  streams: Streams,
): grpc.handleServerStreamingCall<Message, Message> {
  const { requestTimeoutMs } = api.app.config
  const rules = rulesOf(api)
  return (call) => {
    const opened = streams.of(call)
    const cut = () => opened?.stream.close(constants.NGHTTP2_CANCEL)
    const serve = async (arrival: GrpcArrival): Promise<void> => {
      await enter(api, endpoint, arrival)
      const messages = await stream(api, endpoint, requestOf(call), arrival)
      // Releases the bytes of the request, since the stream may stay open for days.
      opened?.held?.release()
      for await (const message of messages) {
        if (arrival.isSettled) return
        arrival.begun()
        await sendMessage(call, message, requestTimeoutMs, cut)
      }
      if (arrival.settle('OK')) call.end()
    }
    const answer = (status: grpc.ServiceError) => void call.emit('error', status)
    void new GrpcArrival({ api, rules, call, opened, serve, answer }).run()
  }
}

function rulesOf({ app: { config } }: Api): Rules {
  return { name: 'grpc', verifies: true, deadlineMs: config.requestTimeoutMs }
}

/**
 * Sends a message. Resolves once the client can receive another one. If that takes too long, rejects and calls `cut`, which ends
 * the stream.
 */
function sendMessage(call: Stream, message: Message, stallMs: number, cut: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: AppError): void => {
      clearTimeout(timer)
      call.off('cancelled', onCancelled)
      if (error) reject(error)
      else resolve()
    }
    const onCancelled = () => settle(gone())
    const timer = setTimeout(() => {
      settle(tooSlow())
      cut()
    }, stallMs)
    call.once('cancelled', onCancelled)
    if (call.cancelled) settle(gone())
    else call.write(message, (error?: Error | null) => settle(error ? gone() : undefined))
  })
}

type AnyCall = grpc.ServerUnaryCall<Message, Message> | Stream

type GrpcCall = {
  api: Api
  rules: Rules
  call: AnyCall
  /** Undefined if the client has already disconnected. */
  opened: OpenStream | undefined
  serve: (arrival: GrpcArrival) => Promise<void>
  answer: (status: grpc.ServiceError) => void
}

/** A call over gRPC. */
class GrpcArrival extends Arrival {
  readonly #input: GrpcCall
  readonly #headers: IncomingHttpHeaders

  constructor(input: GrpcCall) {
    const { call, opened, api, rules } = input
    const headers = opened?.headers ?? (call.metadata.getMap() as IncomingHttpHeaders)
    // Address of the connection. grpc-js adds the port, without brackets around an IPv6 address.
    super(api, rules, opened?.facts ?? requestFactsOf(headers, call.getPeer().replace(/:\d+$/, '')))
    this.#input = input
    this.#headers = headers
    if (api.app.vendor && headers[vendorTag] === '1') this.vendor = api.app.vendor
    this.charge(readingMsOf(call.request))
  }

  override get known(): Caller | undefined {
    const admitted = this.#input.opened?.admitted
    return admitted && performance.now() - admitted.at <= mostMsApart ? admitted.caller : undefined
  }

  override get wishes(): CallConditions {
    const headers = this.#headers
    const idempotencyKey = headers['idempotency-key']?.toString()
    return { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'], idempotencyKey }
  }

  /** Does nothing, since the call was counted before its message was read. */
  override countStranger(): void {}

  protected override serve(): Promise<void> {
    return this.#input.serve(this)
  }

  protected override refuse(error: unknown): void {
    const { api, answer } = this.#input
    const rendered = fail(api, error, this)
    if (this.settle(rendered.code)) answer(statusOf(rendered, this.requestId))
  }

  protected override onDisconnect(listener: () => void): void {
    const { call } = this.#input
    if (call.cancelled) listener()
    else call.once('cancelled', listener)
  }

  protected override codeOfAnswer(): string {
    return 'UNKNOWN'
  }
}

/** Status of a failed call. */
export function statusOf(rendered: Rendered, requestId: string): grpc.ServiceError {
  const metadata = new grpc.Metadata()
  metadata.set('x-request-id', requestId)
  const status = Buffer.from(errorStatus(rendered))
  if (status.length <= maxStatusBytes) metadata.set('grpc-status-details-bin', status)
  // Replaces single surrogates in the message. For them, grpc-js would throw an error that nothing catches.
  const details = rendered.message.slice(0, 1000).toWellFormed()
  return { code: codes[rendered.code].number, details, metadata, name: rendered.code, message: details }
}

/** Ends a stream with an error status, in one header block without a body ("Trailers-Only" of the gRPC protocol). */
export function endWithStatus(stream: ServerHttp2Stream, { code, details, metadata }: grpc.ServiceError): void {
  const head = {
    ...metadata.toHttp2Headers(),
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': String(code),
    'grpc-message': encodeURI(details),
  }
  stream.respond(head, { endStream: true })
  stream.close()
}
