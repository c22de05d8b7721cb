// gRPC server for the methods of the API, on the same port as REST. Uses grpc-js.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Http2Server, Http2ServerResponse, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import http2 from 'node:http2'
import type { Socket } from 'node:net'
import { type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import { declareMethods } from '#edge/arrival.ts'
import { http2Limits } from '#edge/request-limits.ts'
import { setSafeHeaders } from '#edge/safe-headers.ts'
import { AppError } from '#lib/errors.ts'
import type { Api } from './entry-point.ts'
import { type Admission, createAdmission } from './grpc-admission.ts'
import { streaming, unary } from './grpc-calls.ts'
import { limitReading, type ReadingCall, readMessage } from './grpc-messages.ts'
import { createStreams, type Streams } from './grpc-streams.ts'
import { limitsOf, limitsOfLibrary } from './message-limits.ts'
import { type Endpoint, isStreaming } from './methods.ts'
import { createPathReader, isGrpcType } from './naming/grpc-names.ts'
import { addHealth, healthPaths } from './naming/health.ts'
import { addReflection, reflectionPaths } from './naming/reflection.ts'
import { keepStreamsInList } from './port/stream-table.ts'
import { limitUnread } from './port/unread-streams.ts'

/**
 * Maximum number of messages in a reflection stream. A client that reads all services requests each of them, and each imported
 * file.
 */
const maxMessagesOfStream = 1000

export type GrpcServer = {
  /** Serves a connection whose client uses HTTP/2. */
  accept(socket: Socket): void
  /** Sends GOAWAY to all clients. Calls in progress get `graceMs` milliseconds to finish. */
  drain(graceMs: number): void
}

/** Creates the gRPC server. Some proxies send all requests over HTTP/2. `onRest` gets those that are not gRPC. */
export function createGrpcServer(api: Api, endpoints: readonly Endpoint[], onRest: RequestListener): GrpcServer {
  const { config, vendor } = api.app
  const streams = createStreams()
  const pathsOfLibraries = new Set([...healthPaths, ...(config.reflection ? reflectionPaths : [])])
  const admission = createAdmission(api, endpoints, pathsOfLibraries)
  const server = new grpc.Server({
    interceptors: [limitMessages(api, endpoints, streams, admission)],
    'grpc.max_receive_message_length': config.maxBodyBytes,
    'grpc.max_send_message_length': -1,
    'grpc.enable_channelz': 0,
    'grpc.max_concurrent_streams': 100,
    'grpc.max_connection_idle_ms': config.keepAliveTimeoutMs * 10,
  })
  raiseHeaderLimits(server)
  declareMethods(api, { name: 'grpc', methods: endpoints.map(({ method }) => method.name) })
  const streamPaths = new Set(endpoints.filter(isStreaming).map(({ method }) => `/${method.fullName}`))
  for (const [service, methods] of Map.groupBy(endpoints, ({ desc }) => desc.parent)) {
    const definition: Record<string, grpc.MethodDefinition<Message, Message>> = {}
    const handlers: grpc.UntypedServiceImplementation = {}
    for (const endpoint of methods) {
      definition[endpoint.desc.localName] = definitionOf(service.typeName, endpoint.desc)
      handlers[endpoint.desc.localName] = isStreaming(endpoint)
        ? streaming(api, endpoint, streams)
        : unary(api, endpoint, streams)
    }
    server.addService(definition, handlers)
  }
  const health = addHealth(server)
  if (config.reflection) {
    const files = new Set(endpoints.map(({ desc }) => desc.parent.file))
    addReflection(server, files, vendor?.token)
  }

  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure())
  const readPath = createPathReader(vendor?.token)
  const unread = limitUnread(config.requestTimeoutMs)
  const onOther: RequestListener = (req, res) => {
    if (unread.watch((res as unknown as Http2ServerResponse).stream, 'once ended')) onRest(req, res)
  }
  serveRestToo(server, onOther, (stream, headers, pass) => {
    const called = headers[':path'] ?? ''
    readPath(headers)
    if (!unread.watch(stream, streamPaths.has(headers[':path']!) ? 'once ended' : 'all')) return
    endInTime(stream, config.requestTimeoutMs)
    admission.admit(streams.add(stream, headers, called), pass)
  })
  return {
    accept(socket) {
      unread.accept(socket)
      injector.injectConnection(socket)
    },
    drain(graceMs) {
      health.stop()
      injector.drain(graceMs)
      unread.stop()
    },
  }
}

/** Limits the size of messages by method. Also limits the bytes in memory, together with the bodies of other entry points. */
function limitMessages(
  api: Api,
  endpoints: readonly Endpoint[],
  streams: Streams,
  admission: Admission,
): grpc.ServerInterceptor {
  const { maxBodyBytes } = api.app.config
  const ours = new Map(
    endpoints.map(({ method, desc }) => {
      const isAnonymous = method.access.mode === 'open'
      const limits = limitsOf(method, maxBodyBytes)
      return [`/${method.fullName}`, { limits, desc: desc.input, isAnonymous }]
    }),
  )
  const ofLibrary = { limits: limitsOfLibrary(maxBodyBytes), desc: undefined, isAnonymous: true }
  return ({ path }, call) => {
    const reading = call as unknown as ReadingCall
    const opened = streams.of(reading)
    const source = opened ? api.sourceOf(opened.facts.peer, opened.facts.forwardedFor) : ''
    const own = ours.get(path)
    const { limits, desc, isAnonymous } = own ?? ofLibrary
    const held = api.bodies.open({ source, transport: 'grpc', isAnonymous })
    if (opened) {
      opened.held = held
      opened.stream.once('close', held.release)
    } else held.release()
    limitReading(reading, {
      limits,
      desc,
      held,
      ...(!own && { stream: { count: messageCounter(api, source) } }),
      refuse: (error) => {
        if (opened) admission.refuse(opened, error, (status) => reading.sendStatus(status))
      },
    })
    return call as grpc.ServerInterceptingCall
  }
}

/**
 * Counts the messages of a stream like requests without a token. The first message is not counted, since the stream itself was.
 */
function messageCounter(api: Api, source: string): () => void {
  let count = 0
  return () => {
    count++
    if (count > maxMessagesOfStream) {
      throw new AppError(
        'RESOURCE_EXHAUSTED',
        `the stream has reached its limit of ${maxMessagesOfStream} messages; open a new one`,
      )
    }
    if (count > 1) api.app.limits.check('request', source)
  }
}

function definitionOf(service: string, desc: DescMethod): grpc.MethodDefinition<Message, Message> {
  return {
    path: `/${service}/${desc.name}`,
    requestStream: false,
    responseStream: isStreaming({ desc }),
    requestSerialize: (message) => bufferOf(toBinary(desc.input, message)),
    requestDeserialize: (bytes) => readMessage(desc.input, bytes),
    responseSerialize: (message) => bufferOf(toBinary(desc.output, message)),
    responseDeserialize: (bytes) => fromBinary(desc.output, bytes),
  }
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/**
 * Sets header limits of HTTP/2. grpc-js has no option for them, so this uses private data; `transport.refusals.test.ts` detects
 * changes of grpc-js.
 */
function raiseHeaderLimits(server: grpc.Server): void {
  const { commonServerOptions } = server as unknown as { commonServerOptions: http2.ServerOptions }
  const { maxHeaderListSize, maxHeaderListPairs } = http2Limits
  commonServerOptions.settings = { ...commonServerOptions.settings, maxHeaderListSize }
  commonServerOptions.maxHeaderListPairs = maxHeaderListPairs
}

type OnGrpc = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, pass: () => void) => void

/**
 * Serves REST over HTTP/2 with the handler of HTTP/1.1. Wraps the `stream` listener of grpc-js, which responds 415 to all
 * requests but gRPC. Reads a private map of grpc-js; `one-port.test.ts` detects changes.
 */
function serveRestToo(server: grpc.Server, onRest: RequestListener, onGrpc: OnGrpc): void {
  const servers = (server as unknown as { http2Servers: Map<Http2Server, unknown> }).http2Servers
  const inner = [...servers.keys()].at(-1)!
  type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: string[]) => void
  const [onStream] = inner.listeners('stream') as OnStream[]
  inner.removeAllListeners('stream')
  inner.prependListener('session', keepStreamsInList)
  inner.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: string[]) => {
    // Without a listener, a reset with any code but CANCEL ends the process.
    stream.on('error', () => {})
    // Node emits a stream a moment after its arrival. If the client has reset the stream meanwhile, it must get no response,
    // since grpc-js would throw.
    if (stream.destroyed) return
    if (isGrpc(headers)) {
      onGrpc(stream, headers, () => onStream!.call(inner, stream, headers, flags, raw))
      return
    }
    const req = new http2.Http2ServerRequest(stream, headers, {}, raw)
    const res = new http2.Http2ServerResponse(stream) as unknown as ServerResponse
    setSafeHeaders(res)
    onRest(req as unknown as IncomingMessage, res)
  })
}

/**
 * True for a call of the gRPC protocol. grpc-js takes every type that starts with application/grpc. It would run a call of
 * gRPC-Web, whose client cannot read the response.
 */
function isGrpc({ ':method': method, 'content-type': type }: IncomingHttpHeaders): boolean {
  return method === 'POST' && isGrpcType(type)
}

/**
 * Cancels a request whose message is not complete in time. grpc-js would wait for the rest forever, and keep the received part in
 * memory.
 */
function endInTime(stream: ServerHttp2Stream, requestMs: number): void {
  const timer = setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), requestMs)
  for (const event of ['end', 'close']) stream.once(event, () => clearTimeout(timer))
}
