// The health service of gRPC (grpc.health.v1), for the server as a whole: it has no status of single services.
import { create, type DescMethod, fromBinary, type Message, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import {
  type HealthCheckRequest,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
  Health as service,
} from '#gen/grpc/health/v1/health_pb.ts'

export type Health = { stop(): void }

type Server = Pick<grpc.Server, 'addService'>
type Call = { request: HealthCheckRequest }

/** Serving until it is stopped, of which whoever watches is told. */
export function addHealth(server: Server): Health {
  let status: Status = Status.SERVING
  const watching = new Set<grpc.ServerWritableStream<HealthCheckRequest, Message>>()
  const now = () => create(HealthCheckResponseSchema, { status })
  server.addService(definitions(), {
    Check({ request }: Call, answer: grpc.sendUnaryData<Message>) {
      if (request.service === '') return answer(null, now())
      answer({ code: grpc.status.NOT_FOUND, details: 'the health of single services is not known' })
    },
    List(_call: unknown, answer: grpc.sendUnaryData<Message>) {
      answer(
        null,
        create(HealthListResponseSchema, { statuses: { '': now() } } as MessageInitShape<
          typeof HealthListResponseSchema
        >),
      )
    },
    Watch(call: grpc.ServerWritableStream<HealthCheckRequest, Message>) {
      if (call.request.service !== '') {
        call.write(create(HealthCheckResponseSchema, { status: Status.SERVICE_UNKNOWN }))
        return
      }
      watching.add(call)
      call.on('cancelled', () => watching.delete(call))
      call.write(now())
    },
  })
  return {
    stop() {
      status = Status.NOT_SERVING
      for (const call of watching) call.write(now())
    },
  }
}

function definitions(): grpc.ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.name, definitionOf(method)]))
}

function definitionOf({
  parent,
  name,
  methodKind,
  input,
  output,
}: DescMethod): grpc.MethodDefinition<Message, Message> {
  return {
    path: `/${parent.typeName}/${name}`,
    requestStream: false,
    responseStream: methodKind === 'server_streaming',
    requestSerialize: (message) => Buffer.from(toBinary(input, message)),
    requestDeserialize: (bytes) => fromBinary(input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(output, message)),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  }
}
