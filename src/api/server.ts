import type { AddressInfo } from 'node:net'
import type { App } from '#app.ts'
import { createEdge } from '#edge/arrival.ts'
import { serveDoors } from '#edge/doors.ts'
import { TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { unavailable } from '#lib/errors.ts'
import { registryDoor } from '#oci/door.ts'
import { documentsDoor } from './documents.ts'
import { openApi } from './door.ts'
import { createGrpcServer } from './grpc.ts'
import { buildEndpoints, type Endpoint } from './methods.ts'
import { oauthDoor } from './oauth.ts'
import { createOnePort } from './one-port.ts'
import { restDoor } from './rest.ts'
import { services } from './services.ts'

export type Server = {
  /** What clients call us. */
  url: string
  /** Where it listens, for callers on this machine. */
  localUrl: string
  port: number
  /** Stops accepting, lets requests in flight finish for at most the configured time, then closes what is left. */
  close(): Promise<void>
}

/** A server that listens everywhere is called on the loopback address. */
const onThisMachine: Record<string, string> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }

const maxHeaderBytes = 16 * 1024

/** A name that guards nothing would leave open what somebody wanted closed. */
function checkGuarded(endpoints: readonly Endpoint[], names: readonly string[]): void {
  for (const name of names) {
    const method = endpoints.find((endpoint) => endpoint.method.fullName === name)?.method
    // Nobody could get past a gate before the acceptance itself.
    if (method?.access.mode === 'scoped' && method.desc.parent.typeName !== TermsService.typeName) continue
    throw new Error(`PINFOLD_TERMS_METHODS: ${name} is not a method that can wait for the terms of a group`)
  }
}

/** Listens for REST and gRPC on one port; resolves once it serves. */
export async function startServer(app: App): Promise<Server> {
  const { config } = app
  const endpoints = buildEndpoints(services)
  checkGuarded(endpoints, config.termsMethods)
  let onRequest: Parameters<typeof createOnePort>[0]['onRequest'] = (_req, res) => res.destroy()
  let accept: Parameters<typeof createOnePort>[0]['onHttp2'] = (socket) => socket.destroy()

  const { server: listener, drain } = createOnePort({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: Math.min(config.headersTimeoutMs, config.requestTimeoutMs),
    requestTimeout: config.requestTimeoutMs,
    isUpload: (target) => /^\/v2\/[^?]*\/blobs\/uploads\/[^/?]*(?:\?|$)/.test(target),
    keepAliveTimeout: config.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, config.headersTimeoutMs),
    onRequest: (req, res) => onRequest(req, res),
    onHttp2: (socket) => accept(socket),
  })
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(config.listen.port, config.listen.host, () => {
      listener.off('error', reject)
      resolve()
    })
  })
  const { port } = listener.address() as AddressInfo
  const host = config.listen.host.includes(':') ? `[${config.listen.host}]` : config.listen.host
  const url = config.url || `http://${host}:${port}`

  const edge = createEdge(app, url)
  const api = openApi(edge)
  onRequest = serveDoors(edge, [registryDoor(edge), documentsDoor(edge), oauthDoor(edge), restDoor(api, endpoints)])
  const grpc = createGrpcServer(api, endpoints, onRequest)
  accept = grpc.accept

  return {
    url,
    localUrl: `http://${onThisMachine[host] ?? host}:${port}`,
    port,
    async close() {
      edge.closing.abort(unavailable('the server is stopping'))
      grpc.drain(config.drainMs)
      await drain(config.drainMs)
    },
  }
}
