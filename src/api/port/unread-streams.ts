// Limit on the memory for HTTP/2 clients that do not read. A client can keep its flow-control windows closed, so responses wait
// in memory. The limit is a number of bytes for each connection, and a time.
import { constants, type Http2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Slots } from '#lib/caches/slots.ts'

export type UnreadStreams = {
  /**
   * Call it for the socket of each connection. The limit destroys the socket itself, since Node would first try to send the
   * waiting data.
   */
  accept(socket: Socket): void
  /**
   * Call it for each stream before the response. Returns false if the stream was refused because too many bytes wait on the
   * connection.
   */
  watch(stream: ServerHttp2Stream, counts: CountedBytes): boolean
  stop(): void
}

/**
 * Rule that decides which waiting bytes of a stream count: all bytes, or only those of a finished response. A handler that waits
 * for the client between chunks has only few waiting bytes.
 */
export type CountedBytes = 'all' | 'once ended'

type Watched = { stream: ServerHttp2Stream; counts: CountedBytes; holdsSince: number | undefined }
type Connection = {
  streams: Slots<Watched>
  /** Bytes sent on the connection when the client last made enough progress, and the time of that. */
  read: { bytes: number; at: number }
  /** Bytes sent on the connection at the last change, and the time of that. */
  sent: { bytes: number; at: number }
  /** True after the client was sent GOAWAY. */
  goes: boolean
}

/** Maximum number of waiting bytes of all responses on one connection. */
const mostBytes = 64 * 2 ** 20
/**
 * Minimum number of bytes that a reading client must receive within the time limit. The response to a ping has 17 bytes, so pings
 * alone do not count.
 */
const leastBytes = 1024
/** Multiple of the time limit after which a slow response is ended, even if its client reads some bytes. */
const slowest = 10

/**
 * Creates the limit. Closes streams that a client does not read for `limitMs`. Refuses streams if more than `most` bytes wait on
 * their connection.
 */
export function limitUnread(limitMs: number, most: number = mostBytes): UnreadStreams {
  const connections = new Map<Http2Session, Connection>()
  const sockets = new Map<string, Socket>()
  const drop = ({ socket }: Http2Session) => {
    const carrier = sockets.get(nameOf(socket))
    setTimeout(() => carrier?.destroy(), limitMs / 2).unref()
  }
  const timer = setInterval(() => closeStalled(connections, limitMs, drop), Math.min(1000, limitMs / 4))
  timer.unref()
  return {
    accept(socket) {
      const name = nameOf(socket)
      sockets.set(name, socket)
      socket.once('close', () => sockets.delete(name))
    },
    watch(stream, counts) {
      const { session } = stream
      if (!session) return true
      const none = { bytes: 0, at: performance.now() }
      const connection = connections.get(session) ?? { streams: new Slots(), read: none, sent: none, goes: false }
      connections.set(session, connection)
      // A refused stream emits an error. Without this listener, the error could end the process.
      stream.on('error', () => {})
      if (bytesOf(connection) > most) {
        stream.close(constants.NGHTTP2_REFUSED_STREAM)
        return false
      }
      const watched: Watched = { stream, counts, holdsSince: undefined }
      const slot = connection.streams.add(watched)
      stream.once('close', () => {
        connection.streams.remove(slot, watched)
        if (connection.streams.size === 0) connections.delete(session)
      })
      const look = () => {
        const held = bytesOf(connection)
        const isAlone = counts === 'once ended' && held === stream.writableLength
        if (held > most && !isAlone) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      }
      callAfter(stream, counts === 'all' ? 'write' : 'end', look)
      return true
    },
    stop: () => clearInterval(timer),
  }
}

function nameOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`
}

function bytesOf({ streams }: Connection): number {
  let sum = 0
  for (const watched of streams.items) if (watched && isCounted(watched)) sum += watched.stream.writableLength
  return sum
}

function isCounted({ stream, counts: which }: Watched): boolean {
  return !stream.closed && (which === 'all' || stream.writableEnded)
}

/** Calls `look` after each call of the method `name` of a stream. */
function callAfter(stream: ServerHttp2Stream, name: 'write' | 'end', look: () => void): void {
  const inner = stream[name] as (...args: unknown[]) => unknown
  const outer = (...args: unknown[]): unknown => {
    const result = inner.apply(stream, args)
    look()
    return result
  }
  Object.assign(stream, { [name]: outer })
}

function closeStalled(
  connections: ReadonlyMap<Http2Session, Connection>,
  limitMs: number,
  drop: (session: Http2Session) => void,
): void {
  const now = performance.now()
  for (const [session, connection] of connections) {
    const streams = connection.streams.items.filter((one) => one !== undefined)
    const holding = streams.filter(({ stream }) => stream.writableLength > 0)
    const bytes = session.destroyed ? 0 : session.socket.bytesWritten
    if (bytes !== connection.sent.bytes) connection.sent = { bytes, at: now }
    if (holding.length === 0 || bytes - connection.read.bytes >= leastBytes) {
      connection.read = { bytes, at: now }
    } else if (now - connection.read.at >= limitMs) {
      for (const { stream } of holding) stream.close(constants.NGHTTP2_CANCEL)
      // If no bytes at all are sent, the reset cannot be sent either. So the client gets GOAWAY, and its connection is closed.
      if (!connection.goes && !session.destroyed && now - connection.sent.at >= limitMs / 2) {
        connection.goes = true
        session.goaway()
        drop(session)
      }
    }
    for (const one of streams) closeIfSlow(one, now, limitMs * slowest)
  }
}

function closeIfSlow(one: Watched, now: number, mostMs: number): void {
  const { stream } = one
  if (!isCounted(one) || stream.writableLength === 0) one.holdsSince = undefined
  else one.holdsSince ??= now
  if (one.holdsSince !== undefined && now - one.holdsSince >= mostMs) stream.close(constants.NGHTTP2_CANCEL)
}
