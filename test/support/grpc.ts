// gRPC client for tests. Each method of a service is a function. Errors have their typed details.
import {
  create,
  type DescMethodUnary,
  fromBinary,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import grpc from '@grpc/grpc-js'
import { BadRequestSchema, ErrorInfoSchema } from '#gen/google/rpc/error_details_pb.ts'
import { StatusSchema } from '#gen/google/rpc/status_pb.ts'
import { pathToVendor } from './vendor.ts'

export type GrpcClient<S extends GenService<GenServiceMethods>> = {
  [K in keyof S['method']]: (
    request: MessageInitShape<S['method'][K]['input']>,
  ) => Promise<MessageShape<S['method'][K]['output']>>
} & { [Symbol.dispose](): void }

/** Error of a failed gRPC call. */
export class GrpcError extends Error {
  readonly code: number
  readonly reason: string
  /** Fields in the BadRequest detail. */
  readonly fields: string[]

  constructor(error: grpc.ServiceError) {
    super(error.details)
    const [bytes] = error.metadata.get('grpc-status-details-bin')
    const details = bytes === undefined ? [] : fromBinary(StatusSchema, bytes as Buffer).details
    this.code = error.code
    this.reason = details.map((detail) => anyUnpack(detail, ErrorInfoSchema)?.reason).find(Boolean) ?? ''
    this.fields = details.flatMap((detail) => {
      return anyUnpack(detail, BadRequestSchema)?.fieldViolations.map(({ field }) => field) ?? []
    })
  }
}

export function grpcClientOf<S extends GenService<GenServiceMethods>>(
  server: { port: number },
  service: S,
  token: string | undefined,
): GrpcClient<S> {
  const client = new grpc.Client(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure())
  const metadata = new grpc.Metadata()
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)

  const call = (desc: DescMethodUnary, init: object) =>
    new Promise<Message>((resolve, reject) => {
      client.makeUnaryRequest<Message, Message>(
        pathToVendor('POST', `/${service.typeName}/${desc.name}`),
        (message) => Buffer.from(toBinary(desc.input, message)),
        (bytes) => fromBinary(desc.output, bytes),
        create(desc.input, init as never),
        metadata,
        (error, response) => (error ? reject(new GrpcError(error)) : resolve(response!)),
      )
    })
  const methods = service.methods.map((desc) => {
    return [desc.localName, (init: object) => call(desc as DescMethodUnary, init)]
  })
  return { ...Object.fromEntries(methods), [Symbol.dispose]: () => client.close() }
}
