// Access to the metrics, at the main port or at an address of their own. Metrics contain no names of users or resources, but show
// the load of the server.
import { createHash, timingSafeEqual } from 'node:crypto'
import http, { type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { App } from '#app.ts'
import type { Arrival } from '#edge/arrival.ts'
import { authenticate, bearerOf } from '#edge/caller.ts'
import { SafeResponse } from '#edge/safe-headers.ts'
import { permissionDenied } from '#lib/errors.ts'
import type { Api } from './entry-point.ts'
import type { Connections } from './port/connections.ts'
import { sendText } from './send-text.ts'

/** Throws if the credential is neither the token from the settings nor a token of the operator. */
export async function admitToMetrics({ app, verify }: Api, arrival: Arrival): Promise<void> {
  const { metricsToken } = app.config
  const bearer = bearerOf(arrival.authorization)
  if (metricsToken !== '' && bearer !== undefined && isSame(bearer, metricsToken)) return
  const { operator } = await authenticate(app, verify, arrival)
  if (!operator)
    throw permissionDenied(
      'only the operator can read the metrics; use the token of PINFOLD_METRICS_TOKEN or an operator token',
    )
}

/** Sends the metrics in the Prometheus format. Uses the OpenMetrics format if that has more data and the client accepts it. */
export async function sendMetrics(metrics: App['metrics'], res: ServerResponse, accept = ''): Promise<void> {
  const asked = accept.includes('application/openmetrics-text') ? metrics.openMetrics : undefined
  const registry = asked ?? metrics.registry
  sendText(res, 200, registry.contentType, await registry.metrics())
}

/** Maximum number of connections, well above the number of metrics collectors. Each also counts for the limit of its address. */
const mostConnections = 100

/** Serves only `/metrics`, at the address from the settings. Returns undefined if no setting has an address. */
export async function serveMetrics(
  { config, metrics, log }: App,
  connections: Connections,
): Promise<{ url: string; close(): void } | undefined> {
  const { metricsListen } = config
  if (!config.metrics || !metricsListen) return undefined
  const limits = { headersTimeout: config.headersTimeoutMs, requestTimeout: config.requestTimeoutMs }
  const server = http.createServer({ ...limits, ServerResponse: SafeResponse }, (req, res) => {
    const [path] = (req.url ?? '').replace(/^https?:\/\/[^/?#]*/i, '').split('?')
    if (path !== '/metrics')
      return sendText(res, 404, 'text/plain', 'path not found; this address serves only /metrics\n')
    if (req.method !== 'GET' && req.method !== 'HEAD') return sendText(res, 405, 'text/plain', 'only GET is allowed\n')
    sendMetrics(metrics, res, req.headers.accept).catch((error: unknown) => {
      log.error('document request failed', { path, error })
      sendText(res, 500, 'text/plain', 'internal error\n')
    })
  })
  server.maxConnections = mostConnections
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? ''
    if (connections.open(address)) socket.once('close', () => connections.close(address))
    else socket.destroy()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(new Error(`PINFOLD_METRICS_LISTEN: ${cause.message}`, { cause })))
    server.listen(metricsListen.port, metricsListen.host, resolve)
  })
  const host = metricsListen.host.includes(':') ? `[${metricsListen.host}]` : metricsListen.host
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}/metrics`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Compares in constant time. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest())
  return timingSafeEqual(a!, b!)
}
