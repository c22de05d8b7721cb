import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import { downloadsDoor } from '#downloads/door.ts'
import { createEdge } from '#edge/arrival.ts'
import { type Door, serveDoors } from '#edge/doors.ts'
import { Terms } from '#gen/pinfold/iam/v1/terms_pb.ts'
import { TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { ledgerDoor } from '#ledger/door.ts'
import { unavailable } from '#lib/errors.ts'
import { registryDoor } from '#oci/door.ts'
import { scimDoor } from '#scim/door.ts'
import { documentsDoor } from './documents.ts'
import { type Api, openApi } from './door.ts'
import { createGrpcServer } from './grpc.ts'
import { mcpDoor } from './mcp/mcp.ts'
import { buildEndpoints, type Endpoint } from './methods.ts'
import { serveMetrics } from './metrics.ts'
import { checkToken } from './naming/members.ts'
import { oauthDoor } from './oauth.ts'
import { openPort, type Port } from './port/open-port.ts'
import { referenceDoor } from './reference/reference.ts'
import { restDoor } from './rest.ts'
import { services } from './services.ts'
import { consoleApiDoor, ledgerOfConsole } from './ui/console-api.ts'
import { pagesDoor } from './ui/door.ts'
import { signInDoor } from './ui/oauth-door.ts'

export type Server = {
  /** What clients call us. */
  url: string
  /** Where it listens, for callers on this machine. */
  localUrl: string
  port: number
  /** Where the metrics are, when they have an address of their own. */
  metricsUrl: string | undefined
  /** Reads the files of the certificate again; what cannot be used is logged, and the old one stays. */
  reloadCertificate(): Promise<void>
  /** Nobody is answered before. */
  open(): void
  /** Stops accepting, lets requests in flight finish for at most the configured time, then closes what is left. */
  /** Says that it is not ready, for `ms` milliseconds in which everything is still served. */
  leave(ms: number): Promise<void>
  close(): Promise<void>
}

/** A name that guards nothing would leave open what somebody wanted closed. */
function checkGuarded({ config, eventTable }: App, endpoints: readonly Endpoint[]): void {
  // They name no place that the door could ask about, so the service does.
  const asking = eventTable.methods('iam.group.created')
  for (const name of config.termsMethods) {
    if (asking.includes(name)) continue
    const method = endpoints.find((endpoint) => endpoint.method.fullName === name)?.method
    // Nobody could get past a gate before the acceptance itself.
    const isAcceptance = [Terms.typeName, TermsService.typeName].includes(method?.desc.parent.typeName ?? '')
    if (method?.access.mode === 'scoped' && !isAcceptance) continue
    throw new Error(`PINFOLD_TERMS_METHODS: ${name} is not a method that can wait for the terms of a group`)
  }
}

/** The same as `bindServer`, open from the start. */
export async function startServer(app: App): Promise<Server> {
  const server = await bindServer(app)
  server.open()
  return server
}

/** The doors of HTTP, in the order in which they are asked for a path. */
export function openDoors(api: Api, endpoints: readonly Endpoint[]): Door[] {
  return [
    registryDoor(api),
    documentsDoor(api),
    oauthDoor(api),
    signInDoor(api),
    mcpDoor(api, endpoints),
    ledgerDoor(api, ledgerOfConsole(api)),
    consoleApiDoor(api, endpoints),
    pagesDoor(api),
    scimDoor(api),
    downloadsDoor(api),
    ledgerDoor(api),
    referenceDoor(api),
    restDoor(api, endpoints),
  ]
}

/**
 * Takes the one port for REST and gRPC, so that it is known what it is called; it serves once it is opened. A port that is given
 * goes on to be answered by others until then.
 */
export async function bindServer(app: App, given?: Port): Promise<Server> {
  const { config } = app
  const endpoints = buildEndpoints(services)
  checkGuarded(app, endpoints)
  if (app.vendor) checkToken(new Set(endpoints.map(({ desc }) => desc.parent.file)), app.vendor.token)
  const port = given ?? (await openPort(app))
  const { listeners } = port
  port.countRefused((by) => app.metrics.connectionsRefused.inc(by))
  const metrics = await serveMetrics(app, port.connections).catch(async (error: unknown) => {
    await port.drain(0)
    throw error
  })
  const url = config.url || listeners.origin
  if (listeners.isEverywhere && config.url === '') {
    app.log.warn('no url is set while listening on all addresses; only clients on this machine can get tokens', { url })
  }

  const edge = createEdge(app, url)
  const api = openApi(edge, endpoints)
  const onRequest = serveDoors(edge, openDoors(api, endpoints))
  const grpc = createGrpcServer(api, endpoints, listeners.receive)

  return {
    url,
    localUrl: listeners.localUrl,
    port: listeners.port,
    reloadCertificate: listeners.reloadCertificate,
    metricsUrl: metrics?.url,
    open() {
      port.answer({ onRequest, onHttp2: grpc.accept })
    },
    async leave(ms) {
      edge.leaving.abort()
      if (ms > 0) await sleep(ms)
    },
    async close() {
      edge.closing.abort(unavailable('the server is stopping'))
      grpc.drain(config.drainMs)
      await port.drain(config.drainMs)
      metrics?.close()
    },
  }
}
