// TLS on the one port: accepts a connection that starts with a handshake, and passes on the connection inside.
import type { Socket } from 'node:net'
import tls, { type SecureContextOptions, type TLSSocket } from 'node:tls'

export type Tls = {
  /** Performs the handshake, and calls back when it is done. Closes a connection that fails or takes too long. */
  accept(socket: Socket, done: (secured: TLSSocket) => void): void
  /** Sets the certificate for later handshakes. */
  use(options: SecureContextOptions): void
}

/** First byte of a handshake. No HTTP request starts with it. */
export const handshakeByte = 0x16

/**
 * Protocols in order of preference. Clients that offer both get HTTP/1.1: they are registry clients and browsers. Their uploads
 * then have a connection of their own instead of a small window of a shared one. gRPC clients offer HTTP/2 alone.
 */
const protocols = ['http/1.1', 'h2']

export function createTls(options: SecureContextOptions, handshakeTimeout: number): Tls {
  const waiting = new Map<string, (secured: TLSSocket) => void>()
  const server = tls.createServer({ ...options, ALPNProtocols: protocols, handshakeTimeout })
  server.on('secureConnection', (secured: TLSSocket) => {
    // No client needs renegotiation, and each costs as much as a handshake.
    secured.disableRenegotiation()
    secured.on('error', () => secured.destroy())
    const name = nameOf(secured)
    const done = waiting.get(name)
    waiting.delete(name)
    if (done) done(secured)
    else secured.destroy()
  })
  server.on('tlsClientError', (_error, secured) => secured.destroy())
  return {
    accept(socket, done) {
      const name = nameOf(socket)
      waiting.set(name, done)
      socket.once('close', () => waiting.delete(name))
      server.emit('connection', socket)
    },
    use: (renewed) => server.setSecureContext(renewed),
  }
}

/** Name of a connection. The TLS connection inside has the same one. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
