// One listener for HTTP/1.1 and cleartext HTTP/2. The http.Server owns it, so its timeouts and its close() keep working;
// only its `connection` listener is replaced by one that looks at the first bytes.
import http from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { SafeResponse, safeHeaderLines } from '#edge/safe-headers.ts'
import type { Connections } from './connections.ts'
import { limitBodies } from './slow-bodies.ts'
import { oneAfterTheOther } from './unread-answers.ts'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export type OnePortOptions = http.ServerOptions & {
  /** How long a client may take to send a whole request, in milliseconds, unless its path is that of an upload. */
  requestTimeout: number
  /** Whether a client may have one more connection; `close` is told when it is closed. */
  connections: Connections
  isUpload: (path: string) => boolean
  /** Until it says so, connections are closed as they come. */
  isOpen?: () => boolean
  onRequest: http.RequestListener
  onHttp2: (socket: Socket) => void
}

export type OnePort = {
  server: http.Server
  /** Takes a request that came over HTTP/2 and is not gRPC. */
  receive: http.RequestListener
  /** Stops accepting. Connections close as they fall idle; what is left after `graceMs` is cut off. */
  drain(graceMs: number): Promise<void>
}

export function createOnePort(given: OnePortOptions): OnePort {
  const { isOpen = () => true, onRequest, onHttp2, isUpload, requestTimeout, connections, ...options } = given
  const open = new Set<Socket>()
  const undecided = new Set<Socket>()
  const bodies = limitBodies(requestTimeout, isUpload)
  const receive: http.RequestListener = (req, res) => {
    bodies.watch(req, res)
    onRequest(req, res)
  }
  const inTurn = oneAfterTheOther(requestTimeout, receive)
  const server = http.createServer({ ...options, requestTimeout: 0, ServerResponse: SafeResponse }, inTurn)
  server.once('close', () => bodies.stop())
  server.on('clientError', refuseUnreadable)
  const [onHttp1] = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket
    if (!isOpen() || !connections.open(remoteAddress)) return socket.destroy()
    socket.once('close', () => connections.close(remoteAddress))
    open.add(socket)
    undecided.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      undecided.delete(socket)
    })
    sniff(socket, options.headersTimeout ?? 10_000, (isHttp2) => {
      undecided.delete(socket)
      if (isHttp2) onHttp2(socket)
      else onHttp1!.call(server, socket)
    })
  })

  return {
    server,
    receive,
    drain: (graceMs) =>
      new Promise((resolve) => {
        // close() overlooks keep-alive connections that become idle later.
        const idle = setInterval(() => server.closeIdleConnections(), 50)
        const hard = setTimeout(() => destroyAll(open), graceMs)
        server.close(() => {
          clearInterval(idle)
          clearTimeout(hard)
          resolve()
        })
        destroyAll(undecided)
      }),
  }
}

/** What is said to bytes that are no request, by the code of Node's error; 400 to any other. */
const unreadable: Record<string, string> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** As Node does it, with our headers. Nothing may be written into an answer that has begun, which Node keeps to itself. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  const { _httpMessage: answer } = socket as { _httpMessage?: http.ServerResponse }
  if (socket.writable && !answer?.headersSent) {
    const status = unreadable[error.code ?? ''] ?? '400 Bad Request'
    socket.write(`HTTP/1.1 ${status}\r\n${safeHeaderLines}Connection: close\r\n\r\n`)
  }
  socket.destroy(error)
}

function destroyAll(sockets: Iterable<Socket>): void {
  for (const socket of sockets) socket.destroy()
}

/** Reads until it is clear which protocol the client speaks, then puts the bytes back once. */
function sniff(socket: Socket, timeoutMs: number, decide: (isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  const done = () => {
    clearTimeout(timer)
    socket.off('readable', read)
    socket.off('error', give)
    socket.off('close', gone)
  }
  const give = () => socket.destroy()
  const gone = () => clearTimeout(timer)
  const read = () => {
    // The bytes are kept here: putting back a part of a preface and waiting for more would wake us again at once.
    for (let chunk = socket.read() as Buffer | null; chunk; chunk = socket.read() as Buffer | null) {
      seen = Buffer.concat([seen, chunk])
    }
    if (seen.length === 0) return
    const length = Math.min(seen.length, preface.length)
    const isHttp2 = seen.subarray(0, length).equals(preface.subarray(0, length))
    // `P` and `PR` may still become POST, PUT or PATCH; the rest is waited for so that this timer covers it.
    if (isHttp2 && length < preface.length) return
    done()
    socket.unshift(seen)
    decide(isHttp2)
  }
  socket.on('readable', read)
  socket.on('error', give)
  socket.once('close', gone)
}
