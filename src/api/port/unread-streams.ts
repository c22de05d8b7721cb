// Memory limit for clients that do not read, over HTTP/2, whose windows a client need not open: a number of bytes on one
// connection, for a limited time.
import { constants, type Http2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Slots } from '#lib/caches/slots.ts'

export type UnreadStreams = {
  /** Call it for the socket of each connection. Node closes a connection only after it has sent the waiting data. */
  accept(socket: Socket): void
  /** Call it for each stream before the response. Returns false if the stream was refused, since too many bytes wait already. */
  watch(stream: ServerHttp2Stream, counts: CountedBytes): boolean
  stop(): void
}

/**
 * Bytes of a stream that count as held: all written bytes, or only those written with the end. A handler that waits for the
 * client between pieces holds few bytes.
 */
export type CountedBytes = 'all' | 'once ended'

type Watched = { stream: ServerHttp2Stream; counts: CountedBytes; holdsSince: number | undefined }
type Connection = {
  streams: Slots<Watched>
  /** Bytes sent when the last sufficient progress was noticed, and its time. */
  read: { bytes: number; at: number }
  /** Bytes sent so far, and the time of the last change. */
  sent: { bytes: number; at: number }
  /** True after GOAWAY was sent. */
  goes: boolean
}

/** Most held bytes of all responses on one connection. */
const mostBytes = 64 * 2 ** 20
/** Fewest bytes that must be sent within the limit to count as reading. The response to a ping has 17 bytes. */
const leastBytes = 1024
/** Slow readers have this multiple of the limit. */
const slowest = 10

/** Creates the limit: closes streams that are not read for `limitMs`, and refuses those above `most` bytes. */
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
      // A stream that is closed for this reason emits an error, and there may be no other listener.
      stream.on('error', () => {})
      if (heldBy(connection) > most) {
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
        const held = heldBy(connection)
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

function heldBy({ streams }: Connection): number {
  let sum = 0
  for (const watched of streams.items) if (watched && isCounted(watched)) sum += watched.stream.writableLength
  return sum
}

function isCounted({ stream, counts: which }: Watched): boolean {
  return !stream.closed && (which === 'all' || stream.writableEnded)
}

/** Calls `look` after each call of a method of the stream. */
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
      // Without any progress, even a reset may not be sent. The client gets GOAWAY, and is then disconnected.
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
