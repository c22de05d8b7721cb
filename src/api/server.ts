import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import { downloadsEntryPoint } from '#downloads/entry-point.ts'
import { createEdge } from '#edge/arrival.ts'
import { type EntryPoint, serveEntryPoints } from '#edge/entry-points.ts'
import { Terms } from '#gen/pinfold/iam/v1/terms_pb.ts'
import { TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { ledgerEntryPoint } from '#ledger/entry-point.ts'
import { unavailable } from '#lib/errors.ts'
import { registryEntryPoint } from '#oci/entry-point.ts'
import { scimEntryPoint } from '#scim/entry-point.ts'
import { documentsEntryPoint } from './documents.ts'
import { type Api, openApi } from './entry-point.ts'
import { createGrpcServer } from './grpc.ts'
import { mcpEntryPoint } from './mcp/mcp.ts'
import { buildEndpoints, type Endpoint } from './methods.ts'
import { serveMetrics } from './metrics.ts'
import { checkToken } from './naming/members.ts'
import { oauthEntryPoint } from './oauth.ts'
import { openPort, type Port } from './port/open-port.ts'
import { referenceEntryPoint } from './reference/reference.ts'
import { restEntryPoint } from './rest.ts'
import { services } from './services.ts'
import { consoleApiEntryPoint, ledgerOfConsole } from './ui/console-api.ts'
import { pagesEntryPoint } from './ui/entry-point.ts'
import { signInEntryPoint } from './ui/sign-in-entry-point.ts'

export type Server = {
  /** URL of the server for clients. */
  url: string
  /** URL for callers on this machine. */
  localUrl: string
  port: number
  /** URL of the metrics. Undefined if they have no address of their own. */
  metricsUrl: string | undefined
  /** Reads the certificate files again. If they cannot be used, logs the reason and keeps the old certificate. */
  reloadCertificate(): Promise<void>
  /** Starts to serve requests. Before, new connections are closed at once. */
  open(): void
  /** For `ms` milliseconds, reports that the server is not ready. All requests are still served. */
  leave(ms: number): Promise<void>
  /**
   * Accepts no more connections. Lets requests in progress finish within the configured time, and then closes the remaining
   * connections.
   */
  close(): Promise<void>
}

/** Throws if a name in PINFOLD_TERMS_METHODS is not a method with a scope, since the setting would have no effect on it. */
function checkGuarded({ config, eventTable }: App, endpoints: readonly Endpoint[]): void {
  // Methods that create an organization have no scope in their request. Their service checks the terms instead.
  const asking = eventTable.methods('iam.group.created')
  for (const name of config.termsMethods) {
    if (asking.includes(name)) continue
    const method = endpoints.find((endpoint) => endpoint.method.fullName === name)?.method
    // Methods that accept the terms cannot require accepted terms.
    const isAcceptance = [Terms.typeName, TermsService.typeName].includes(method?.desc.parent.typeName ?? '')
    if (method?.access.mode === 'scoped' && !isAcceptance) continue
    throw new Error(
      `PINFOLD_TERMS_METHODS: ${name} must be a method of the API that takes the uid of a group or of a resource in it`,
    )
  }
}

/** Like `bindServer`, but opens the server at once. */
export async function startServer(app: App): Promise<Server> {
  const server = await bindServer(app)
  server.open()
  return server
}

/** Entry points of the HTTP port. The first one that matches a path serves the request. */
export function openEntryPoints(api: Api, endpoints: readonly Endpoint[]): EntryPoint[] {
  return [
    registryEntryPoint(api),
    documentsEntryPoint(api),
    oauthEntryPoint(api),
    signInEntryPoint(api),
    mcpEntryPoint(api, endpoints),
    ledgerEntryPoint(api, ledgerOfConsole(api)),
    consoleApiEntryPoint(api, endpoints),
    pagesEntryPoint(api),
    scimEntryPoint(api),
    downloadsEntryPoint(api),
    ledgerEntryPoint(api),
    referenceEntryPoint(api),
    restEntryPoint(api, endpoints),
  ]
}

/**
 * Opens the port for REST and gRPC, so that its URL is known. Requests are served after `open`. If a port is given, it keeps its
 * former handlers until then.
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
    app.log.warn('listening on all addresses without a url; only clients on this machine can get tokens', {
      url,
      setting: 'PINFOLD_URL',
    })
  }

  const edge = createEdge(app, url)
  const api = openApi(edge, endpoints)
  const onRequest = serveEntryPoints(edge, openEntryPoints(api, endpoints))
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
      edge.closing.abort(unavailable('the server is stopping; retry later'))
      grpc.drain(config.drainMs)
      await port.drain(config.drainMs)
      metrics?.close()
    },
  }
}
