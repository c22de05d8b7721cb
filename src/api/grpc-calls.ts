// One call over gRPC: from what grpc-js hands over, through the door, and back.
import type { Message } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import type { Caller } from '#app.ts'
import { AppError, type Code, codes } from '#lib/errors.ts'
import { sourceAddress } from '#lib/net/source-address.ts'
import { newRequestId } from '#lib/request-id.ts'
import { type Door, enter, fail, gone, invoke, leave, open, type Passage, tooSlow } from './door.ts'
import { errorStatus, type Rendered } from './errors.ts'
import type { Endpoint } from './methods.ts'

/** Trailers are headers: of much larger ones clients drop the connection, with all that goes over it. */
const maxStatusBytes = 6 * 1024

/** The metadata in which a call has the tag of its stream; what a client sends under this name is replaced. */
export const streamTag = 'x-pinfold-stream'

type Stream = grpc.ServerWritableStream<Message, Message>

export function unary(door: Door, endpoint: Endpoint): grpc.handleUnaryCall<Message, Message> {
  return async (call, callback) => {
    const state = begin(door, endpoint, call, (status) => callback(status))
    try {
      const response = await invoke(door, endpoint, await state.enter(), call.request, undefined, state.passage)
      if (state.finish()) callback(null, response)
    } catch (error) {
      state.refuse(error)
    } finally {
      state.leave()
    }
  }
}

/** `cut` ends the stream of a tag on the spot. */
export function streaming(
  door: Door,
  endpoint: Endpoint,
  cut: (tag: string) => void,
): grpc.handleServerStreamingCall<Message, Message> {
  const { requestTimeoutMs } = door.app.config
  return async (call) => {
    const state = begin(door, endpoint, call, (status) => void call.emit('error', status))
    try {
      const messages = await open(door, endpoint, await state.enter(), call.request, state.passage)
      for await (const message of messages) {
        if (state.isOver()) return
        state.started()
        await sent(call, message, requestTimeoutMs, cut)
      }
      if (state.finish()) call.end()
    } catch (error) {
      state.refuse(error)
    } finally {
      state.leave()
    }
  }
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

/** What calls of both kinds do alike: who calls, for how long at most, and that each is answered and measured once. */
function begin(door: Door, endpoint: Endpoint, call: AnyCall, answer: (status: grpc.ServiceError) => void) {
  const { metrics, config } = door.app
  const passage = passageOf(door, call)
  let caller: Caller | undefined
  let code: Code | 'OK' | undefined
  const refuse = (error: unknown): void => {
    const rendered = fail(door, error, passage)
    if (code) return
    code = rendered.code
    answer(statusOf(rendered, passage))
  }
  metrics.inFlight.inc()
  // What a handler does afterwards is thrown away.
  const late = () => refuse(new AppError('DEADLINE_EXCEEDED', 'the request took too long'))
  const deadline = setTimeout(late, config.requestTimeoutMs)
  return {
    passage,
    refuse,
    async enter(): Promise<Caller> {
      caller = await enter(door, endpoint, passage.authorization)
      return caller
    },
    /** The answer has begun in time. */
    started: () => clearTimeout(deadline),
    isOver: () => code !== undefined,
    /** False when the call has been answered already. */
    finish(): boolean {
      if (code) return false
      code = 'OK'
      return true
    },
    leave(): void {
      clearTimeout(deadline)
      metrics.inFlight.dec()
      leave(door, endpoint, caller, code ?? 'UNKNOWN', passage)
    },
  }
}

function passageOf(door: Door, call: AnyCall): Passage {
  const given = call.metadata.get('x-request-id')[0]
  const forwardedFor = call.metadata.get('x-forwarded-for')[0]?.toString()
  return {
    transport: 'grpc',
    requestId: newRequestId(given?.toString()),
    // The peer comes with its port, and without brackets where it is IPv6.
    remoteAddress: sourceAddress(call.getPeer().replace(/:\d+$/, ''), forwardedFor, door.proxies),
    userAgent: call.metadata.get('user-agent')[0]?.toString() ?? '',
    authorization: call.metadata.get('authorization')[0]?.toString(),
    startedAt: performance.now(),
    signal: () => {
      const controller = new AbortController()
      if (call.cancelled) controller.abort(gone())
      else call.once('cancelled', () => controller.abort(gone()))
      return controller.signal
    },
  }
}

function statusOf(rendered: Rendered, { requestId }: Passage): grpc.ServiceError {
  const metadata = new grpc.Metadata()
  metadata.set('x-request-id', requestId)
  const status = Buffer.from(errorStatus(rendered))
  if (status.length <= maxStatusBytes) metadata.set('grpc-status-details-bin', status)
  // grpc-js throws on half of a surrogate pair, where nobody would catch it.
  const details = rendered.message.slice(0, 1000).toWellFormed()
  return { code: codes[rendered.code].number, details, metadata, name: rendered.code, message: details }
}
