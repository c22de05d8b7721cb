// TLS on the port. Decrypts connections that start with a TLS handshake, and passes on the decrypted connection.
import type { Socket } from 'node:net'
import tls, { type SecureContextOptions, type TLSSocket } from 'node:tls'

export type Tls = {
  /** Performs the handshake, and then calls back. Closes the connection if the handshake fails or takes too long. */
  accept(socket: Socket, done: (secured: TLSSocket) => void): void
  /** Sets the certificate for later handshakes. */
  use(options: SecureContextOptions): void
}

/** First byte of a TLS handshake. No HTTP request starts with this byte. */
export const handshakeByte = 0x16

/**
 * Protocols in order of preference. Clients that support both, such as registry clients and browsers, get HTTP/1.1. Their uploads
 * then have a connection of their own, instead of sharing the small window of an HTTP/2 connection. gRPC clients offer only
 * HTTP/2.
 */
const protocols = ['http/1.1', 'h2']

export function createTls(options: SecureContextOptions, handshakeTimeout: number): Tls {
  const waiting = new Map<string, (secured: TLSSocket) => void>()
  const server = tls.createServer({ ...options, ALPNProtocols: protocols, handshakeTimeout })
  server.on('secureConnection', (secured: TLSSocket) => {
    // Refuses renegotiation, which no client needs and which costs as much as a handshake.
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

/** Key of a connection. The decrypted connection has the same key as the outer one. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
