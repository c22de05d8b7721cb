// Open port whose request handlers can be replaced. It opens before the server exists, and the server later sets its own
// handlers.
import type { Socket } from 'node:net'
import type { App } from '#app.ts'
import { maxHeadBytes } from '#edge/request-limits.ts'
import { createDropped } from '#lib/batches/dropped.ts'
import { isLoopback, isProxy, trustedProxies } from '#lib/net/source-address.ts'
import { type Connections, createConnections } from './connections.ts'
import { type Listeners, openListeners } from './listeners.ts'
import type { OnePortOptions } from './one-port.ts'

export type Answers = Pick<OnePortOptions, 'onRequest'> & {
  onHttp2(socket: Socket): void
  /** Closes HTTP/2 sessions, so that clients connect again and get the next handlers. */
  leave?(): void
}

export type Port = {
  listeners: Listeners
  connections: Connections
  /** Sets the handlers. While there are none, connections are closed at once. */
  answer(answers: Answers): void
  /** Sets a function that gets the number of connections that were refused because their address had too many. */
  countRefused(count: (by: number) => void): void
  drain(graceMs: number): Promise<void>
}

type Needs = Pick<App, 'config' | 'log'>

export async function openPort({ config, log }: Needs): Promise<Port> {
  let answers: Answers | undefined
  let count: (by: number) => void = () => {}
  const refused = createDropped(
    (by) => count(by),
    (since) => log.warn('connections refused: too many from one address', { count: since }),
    () => performance.now(),
  )
  // Trusted proxies have no limit, since they have the connections of all their clients. This machine has none either, since a
  // proxy may run here that no setting names.
  const proxies = trustedProxies(config.trustedProxies)
  const isExempt = (address: string) => isLoopback(address) || isProxy(address, proxies)
  const connections = createConnections(config.connectionsPerSource, isExempt, () => refused.add(1))
  const options: OnePortOptions = {
    maxHeaderSize: maxHeadBytes,
    headersTimeout: Math.min(config.headersTimeoutMs, config.requestTimeoutMs),
    requestTimeout: config.requestTimeoutMs,
    isUpload: (target) => /^\/v2\/[^?]*\/blobs\/uploads\/[^/?]*(?:\?|$)/.test(target),
    keepAliveTimeout: config.keepAliveTimeoutMs,
    connections,
    connectionsCheckingInterval: Math.min(1000, config.headersTimeoutMs),
    errorDomain: config.errorDomain,
    isOpen: () => answers !== undefined,
    onRequest: (req, res) => answers!.onRequest(req, res),
    onHttp2: (socket) => answers!.onHttp2(socket),
  }
  const listeners = await openListeners(config, options, log)
  return {
    listeners,
    connections,
    answer(next) {
      answers?.leave?.()
      answers = next
    },
    countRefused(next) {
      count = next
    },
    async drain(graceMs) {
      await listeners.drain(graceMs)
      refused.close()
    },
  }
}
