// Listeners of the server: its port, and a second one for this machine only if the server has a certificate.
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { App } from '#app.ts'
import type { Logger } from '#lib/log.ts'
import { type Certificate, openCertificate } from './certificate.ts'
import { createOnePort, type OnePort, type OnePortOptions } from './one-port.ts'
import { createTls, type Tls } from './tls.ts'

export type Listeners = {
  port: number
  /** URL of the server, if no setting has another one. */
  origin: string
  /**
   * URL for callers on this machine. It never uses TLS, since the certificate is not valid for this machine's loopback address.
   */
  localUrl: string
  /** True if the server listens on all addresses of the machine. */
  isEverywhere: boolean
  /** Serves a request over HTTP/2 that is not gRPC. */
  receive: RequestListener
  reloadCertificate(): Promise<void>
  drain(graceMs: number): Promise<void>
}

/** Loopback address for each wildcard address. Clients cannot call a wildcard address. */
const onThisMachine: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }

export async function openListeners(
  config: Pick<App['config'], 'listen' | 'tlsCert' | 'tlsKey'>,
  options: OnePortOptions,
  log: Logger,
): Promise<Listeners> {
  let tls: Tls | undefined
  let certificate: Certificate | undefined
  if (config.tlsCert !== '') {
    const files = { cert: config.tlsCert, key: config.tlsKey }
    certificate = await openCertificate(files, (renewed) => tls!.use(renewed), log)
    tls = createTls(certificate.options, options.headersTimeout ?? 10_000)
  }
  const outside = createOnePort({ ...options, tls })
  const inside = tls && createOnePort(options)
  try {
    const { port, address } = await listen(outside, config.listen)
    const local = inside && (await listen(inside, { host: '127.0.0.1', port: 0 }))
    const host = `${onThisMachine[address] ?? hostOf(config.listen.host)}:${port}`
    return {
      port,
      origin: `${tls ? 'https' : 'http'}://${host}`,
      localUrl: `http://${local ? `127.0.0.1:${local.port}` : host}`,
      isEverywhere: onThisMachine[address] !== undefined,
      receive: outside.receive,
      reloadCertificate: async () => await certificate?.reload(),
      async drain(graceMs) {
        certificate?.close()
        await Promise.all([outside, inside].map(async (one) => one?.drain(graceMs)))
      },
    }
  } catch (error) {
    certificate?.close()
    outside.server.close()
    throw error
  }
}

function listen({ server }: OnePort, { host, port }: { host: string; port: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve(server.address() as AddressInfo)
    })
  })
}

function hostOf(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
