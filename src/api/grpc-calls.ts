// One call over gRPC: from what grpc-js hands over, through the door, and back.
import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import { Arrival, gone, type Rules, tooSlow, type Wishes } from '#edge/arrival.ts'
import { type AppError, codes, invalid } from '#lib/errors.ts'
import { type Api, enter, etagOf, fail, invoke, stream } from './door.ts'
import { errorStatus, type Rendered } from './errors.ts'
import type { Endpoint } from './methods.ts'
import { vendorTag } from './naming/grpc-names.ts'

/** Trailers are headers: of much larger ones clients drop the connection, with all that goes over it. */
const maxStatusBytes = 6 * 1024

/** The metadata in which a call has the tag of its stream; what a client sends under this name is replaced. */
export const streamTag = 'x-pinfold-stream'

type Stream = grpc.ServerWritableStream<Message, Message>

export function unary(api: Api, endpoint: Endpoint): grpc.handleUnaryCall<Message, Message> {
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
    void new GrpcArrival({ api, rules, call, serve, answer: (status) => callback(status) }).run()
  }
}

function withEtag(etag: string): grpc.Metadata {
  const metadata = new grpc.Metadata()
  metadata.set('etag', etag)
  return metadata
}

/** `cut` ends the stream of a tag on the spot. */
export function streaming(
  api: Api,
  endpoint: Endpoint,
  cut: (tag: string) => void,
): grpc.handleServerStreamingCall<Message, Message> {
  const { requestTimeoutMs } = api.app.config
  const rules = rulesOf(api)
  return (call) => {
    const serve = async (arrival: GrpcArrival): Promise<void> => {
      await enter(api, endpoint, arrival)
      for await (const message of await stream(api, endpoint, requestOf(call), arrival)) {
        if (arrival.isSettled) return
        arrival.begun()
        await sent(call, message, requestTimeoutMs, cut)
      }
      if (arrival.settle('OK')) call.end()
    }
    void new GrpcArrival({ api, rules, call, serve, answer: (status) => void call.emit('error', status) }).run()
  }
}

/** A message that cannot be read; whoever sent it is answered once it is known who that is. */
class UnreadableMessage {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** Never throws: grpc-js would answer by itself, and nobody would hear of it. */
export function readMessage(desc: DescMessage, bytes: Uint8Array): Message {
  try {
    return fromBinary(desc, bytes)
  } catch (error) {
    return new UnreadableMessage(error) as unknown as Message
  }
}

function requestOf({ request }: AnyCall): Message {
  const read: unknown = request
  if (!(read instanceof UnreadableMessage)) return request
  throw invalid({ field: 'message', description: `cannot be read: ${(read.error as Error).message}` })
}

function rulesOf({ app: { config } }: Api): Rules {
  return { name: 'grpc', verifies: true, deadlineMs: config.requestTimeoutMs }
}

/** Resolves once the client has room for more. */
function sent(call: Stream, message: Message, stallMs: number, cut: (tag: string) => void): Promise<void> {
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
      cut(String(call.metadata.get(streamTag)[0]))
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
  serve: (arrival: GrpcArrival) => Promise<void>
  answer: (status: grpc.ServiceError) => void
}

/** One call over gRPC. */
class GrpcArrival extends Arrival {
  readonly #input: GrpcCall

  constructor(input: GrpcCall) {
    const { call, api, rules } = input
    const said = (name: string) => call.metadata.get(name)[0]?.toString()
    super(api, rules, {
      // The peer comes with its port, and without brackets where it is IPv6.
      peer: call.getPeer().replace(/:\d+$/, ''),
      forwardedFor: said('x-forwarded-for'),
      requestId: said('x-request-id'),
      userAgent: said('user-agent'),
      authorization: said('authorization'),
      traceparent: said('traceparent'),
    })
    this.#input = input
    if (api.app.vendor && said(vendorTag) === '1') this.vendor = api.app.vendor
  }

  override get wishes(): Wishes {
    const said = (name: string) => this.#input.call.metadata.get(name)[0]?.toString()
    return {
      ifMatch: said('if-match'),
      ifNoneMatch: said('if-none-match'),
      idempotencyKey: said('idempotency-key'),
    }
  }

  /** The stream was counted when it came. */
  override countStranger(): void {}

  protected override serve(): Promise<void> {
    return this.#input.serve(this)
  }

  protected override refuse(error: unknown): void {
    const { api, answer } = this.#input
    const rendered = fail(api, error, this)
    if (this.settle(rendered.code)) answer(statusOf(rendered, this.requestId))
  }

  protected override whenGone(listener: () => void): void {
    const { call } = this.#input
    if (call.cancelled) listener()
    else call.once('cancelled', listener)
  }

  protected override codeOfAnswer(): string {
    return 'UNKNOWN'
  }
}

/** What a call ends with that fails. */
export function statusOf(rendered: Rendered, requestId: string): grpc.ServiceError {
  const metadata = new grpc.Metadata()
  metadata.set('x-request-id', requestId)
  const status = Buffer.from(errorStatus(rendered))
  if (status.length <= maxStatusBytes) metadata.set('grpc-status-details-bin', status)
  // grpc-js throws on half of a surrogate pair, where nobody would catch it.
  const details = rendered.message.slice(0, 1000).toWellFormed()
  return { code: codes[rendered.code].number, details, metadata, name: rendered.code, message: details }
}
