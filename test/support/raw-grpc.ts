// gRPC calls by descriptor, with the complete answer. They are for tests of the transport, not of a service.
import { type DescMethod, fromBinary, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import grpc from '@grpc/grpc-js'
import { file_google_rpc_error_details } from '#gen/google/rpc/error_details_pb.ts'
import { StatusSchema } from '#gen/google/rpc/status_pb.ts'
import type { Json } from './pinfold.ts'

export type GrpcAnswer = {
  code: number
  message: string
  response: Message | undefined
  /** Error details in the form that REST errors have. */
  details: Json[]
  trailers: grpc.Metadata
}
export type GrpcOptions = {
  token?: string | undefined
  metadata?: Record<string, string>
  deadline?: Date
}
export type RawGrpc = {
  call(desc: DescMethod, request: Message, options?: GrpcOptions): Promise<GrpcAnswer>
  /** Calls a method that the contract may not have. Request and response are bytes. */
  send(path: string, request: Buffer, options?: GrpcOptions): Promise<GrpcAnswer & { bytes: Buffer | undefined }>
  [Symbol.dispose](): void
}

export function openGrpc(port: number): RawGrpc {
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    // Without this option, clients for one address share a connection. A test that drains the connection would then break another
    // test.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': -1,
  })
  const send: RawGrpc['send'] = (path, request, { token, metadata = {}, deadline } = {}) => {
    const sent = new grpc.Metadata()
    if (token !== undefined) sent.set('authorization', `Bearer ${token}`)
    for (const [name, value] of Object.entries(metadata)) sent.set(name, value)
    return new Promise((resolve) => {
      let failure: grpc.ServiceError | null = null
      let bytes: Buffer | undefined
      const call = client.makeUnaryRequest<Buffer, Buffer>(
        path,
        (same) => same,
        (same) => same,
        request,
        sent,
        deadline ? { deadline } : {},
        (error, response) => {
          failure = error
          bytes = response
        },
      )
      call.on('status', ({ code, details: message, metadata: trailers }) => {
        // The callback and this event may come in either order.
        setImmediate(() => {
          const details = detailsOf(failure?.metadata ?? trailers)
          resolve({ code, message, bytes, response: undefined, details, trailers })
        })
      })
    })
  }
  /** Returns the first message of a stream, and cancels the stream. */
  const begun = (
    path: string,
    desc: DescMethod,
    request: Message,
    { token }: GrpcOptions = {},
  ): Promise<GrpcAnswer> => {
    const sent = new grpc.Metadata()
    if (token !== undefined) sent.set('authorization', `Bearer ${token}`)
    return new Promise((resolve) => {
      const call = client.makeServerStreamRequest<Buffer, Buffer>(
        path,
        (same) => same,
        (same) => same,
        Buffer.from(toBinary(desc.input, request)),
        sent,
      )
      call.once('data', (bytes: Buffer) => {
        resolve({ code: 0, message: '', response: fromBinary(desc.output, bytes), details: [], trailers: sent })
        call.cancel()
      })
      call.on('error', ({ code, details: message, metadata: trailers }: grpc.ServiceError) => {
        resolve({ code, message, response: undefined, details: detailsOf(trailers), trailers })
      })
    })
  }
  return {
    send,
    async call(desc, request, options) {
      const path = `/${desc.parent.typeName}/${desc.name}`
      if (desc.methodKind === 'server_streaming') return begun(path, desc, request, options)
      const { bytes, ...answer } = await send(path, Buffer.from(toBinary(desc.input, request)), options)
      return { ...answer, response: bytes && fromBinary(desc.output, bytes) }
    },
    [Symbol.dispose]: () => client.close(),
  }
}

function detailsOf(trailers: grpc.Metadata): Json[] {
  const [bytes] = trailers.get('grpc-status-details-bin')
  if (bytes === undefined) return []
  return fromBinary(StatusSchema, bytes as Buffer).details.map((detail) => {
    const desc = file_google_rpc_error_details.messages.find(({ typeName }) => detail.typeUrl.endsWith(`/${typeName}`))
    // Only the type of a detail outside of google.rpc is shown.
    if (!desc) return { '@type': detail.typeUrl }
    return {
      '@type': detail.typeUrl,
      ...(toJson(desc, anyUnpack(detail, desc)!, { alwaysEmitImplicit: true }) as Json),
    }
  })
}
