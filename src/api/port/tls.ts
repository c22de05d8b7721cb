// TLS on the one port: takes a connection that begins with a handshake, and hands over what is inside of it.
import type { Socket } from 'node:net'
import tls, { type SecureContextOptions, type TLSSocket } from 'node:tls'

export type Tls = {
  /** Makes the handshake, and calls back when it is done. A connection that fails, or takes too long, is closed. */
  accept(socket: Socket, done: (secured: TLSSocket) => void): void
  /** For handshakes from now on. */
  use(options: SecureContextOptions): void
}

/** The first byte of a handshake, which no request of HTTP begins with. */
export const handshakeByte = 0x16

/**
 * Clients that offer both protocols get HTTP/1.1: they are registry clients and browsers, whose uploads then have a
 * connection of their own instead of a small window of a shared one. Clients of gRPC offer HTTP/2 alone.
 */
const protocols = ['http/1.1', 'h2']

export function createTls(options: SecureContextOptions, handshakeTimeout: number): Tls {
  const waiting = new Map<string, (secured: TLSSocket) => void>()
  const server = tls.createServer({ ...options, ALPNProtocols: protocols, handshakeTimeout })
  server.on('secureConnection', (secured: TLSSocket) => {
    // Nobody needs it, and each costs as much as a handshake.
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

/** Of a connection and of what is inside of it. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
