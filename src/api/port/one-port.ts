// One port for HTTP/1.1 and HTTP/2, with or without TLS. The http.Server owns the port, so its timeouts and its close() work.
// Only its `connection` listener is replaced, by one that reads the first bytes of a connection.
import http, { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { noTunnel, notSecured, unreadable } from '#edge/request-limits.ts'
import { SafeResponse, safeHeaderLines } from '#edge/safe-headers.ts'
import type { AppError } from '#lib/errors.ts'
import { newRequestId } from '#lib/request-id.ts'
import { errorJson, renderError } from '../errors.ts'
import type { Connections } from './connections.ts'
import { limitBodies } from './slow-bodies.ts'
import { BoundedMessage } from './small-chunks.ts'
import { handshakeByte, type Tls } from './tls.ts'
import { oneAfterTheOther } from './unread-answers.ts'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

const classes = { IncomingMessage: BoundedMessage, ServerResponse: SafeResponse }

export type OnePortOptions = http.ServerOptions & {
  /** Longest time for a whole request to arrive, in milliseconds. Does not apply to paths of uploads. */
  requestTimeout: number
  /** Limit on connections of a client. */
  connections: Connections
  isUpload: (path: string) => boolean
  /** If set, the port accepts only connections with TLS. */
  tls?: Tls | undefined
  /** If this returns false, new connections are closed at once. */
  isOpen?: () => boolean
  /** `ErrorInfo.domain` of the errors that this module sends. */
  errorDomain: string
  /** Serves a request. The returned function responds with an error. If there is a response already, it does nothing. */
  onRequest: (req: IncomingMessage, res: ServerResponse) => Refuse | undefined
  onHttp2: (socket: Socket) => void
}

export type Refuse = (error: AppError) => void

export type OnePort = {
  server: http.Server
  /** Serves a request over HTTP/2 that is not gRPC. */
  receive: http.RequestListener
  /** Accepts no more connections. Closes each connection when it becomes idle, and all others after `graceMs`. */
  drain(graceMs: number): Promise<void>
}

export function createOnePort(given: OnePortOptions): OnePort {
  const {
    isOpen = () => true,
    onRequest,
    onHttp2,
    isUpload,
    requestTimeout,
    connections,
    tls,
    errorDomain,
    ...options
  } = given
  const timeoutMs = options.headersTimeout ?? 10_000
  const late = unreadable('ERR_HTTP_REQUEST_TIMEOUT')
  const open = new Set<Socket>()
  const undecided = new Set<Socket>()
  const bodies = limitBodies(requestTimeout, isUpload)
  const receive: http.RequestListener = (req, res) => {
    bodies.watch(req, res, onRequest(req, res))
  }
  const refuseRaw = (socket: Duplex, error: AppError) => endWith(socket, answerOf(error, errorDomain))
  const inTurn = oneAfterTheOther(requestTimeout, (req, res) => {
    // Refuses other versions, since Node's parser also accepts HTTP/0.9 and 2.0 in the request line.
    if (req.httpVersionMajor === 1) receive(req, res)
    else refuseRaw(req.socket, unreadable('HPE_INVALID_VERSION'))
  })
  const parsing = { ...options, requestTimeout: 0, requireHostHeader: false, ...classes }
  const server = http.createServer(parsing, inTurn)
  server.once('close', () => bodies.stop())
  server.on('checkExpectation', inTurn)
  server.on('connect', (_req, socket) => refuseRaw(socket, noTunnel()))
  const refused = new WeakSet<Duplex>()
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Node emits this error again for each further chunk of data.
    if (refused.has(socket)) return
    refused.add(socket)
    const { _httpMessage: answer } = socket as { _httpMessage?: ServerResponse }
    // If a response has started, nothing can be sent, so the connection is closed. Node stores the response in a private member.
    if (socket.writable && !answer?.headersSent) refuseRaw(socket, unreadable(error.code))
    else socket.destroy(error)
  })
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
    const decide = (carrier: Socket) =>
      sniff(carrier, readHttp, { timeoutMs, late: () => refuseRaw(carrier, late) }, (isHttp2) => {
        undecided.delete(socket)
        if (isHttp2) onHttp2(carrier)
        else onHttp1!.call(server, carrier)
      })
    if (!tls) return decide(socket)
    sniff(socket, readHandshake, { timeoutMs, late: () => socket.destroy() }, (isHandshake) => {
      if (isHandshake) tls.accept(socket, decide)
      else refuseRaw(socket, notSecured())
    })
  })

  return {
    server,
    receive,
    drain: (graceMs) =>
      new Promise((resolve) => {
        // Closes idle connections repeatedly, since `close()` misses those that become idle later.
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

/** Error response to data that is not a valid request, in the format of the API. */
function answerOf(error: AppError, domain: string): string {
  const requestId = newRequestId(undefined)
  const text = errorJson(renderError(error, requestId, domain))
  const lines = [
    `HTTP/1.1 ${error.http} ${STATUS_CODES[error.http]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    `X-Request-Id: ${requestId}`,
  ]
  return `${lines.join('\r\n')}\r\n${safeHeaderLines}Connection: close\r\n\r\n${text}`
}

const lingerMs = 1000

/**
 * Sends a response and ends the connection. For a moment, still reads and drops data. Unread data would reset the connection, and
 * the client would not receive the response.
 */
function endWith(socket: Duplex, answer: string): void {
  // Without this listener, a reset by the client would end the process.
  socket.on('error', () => socket.destroy())
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  socket.resume()
  socket.end(answer)
}

function destroyAll(sockets: Iterable<Socket>): void {
  for (const socket of sockets) socket.destroy()
}

/** Decides from the first bytes of a connection. Undefined if more bytes are needed. */
type ReadFirstBytes = (seen: Buffer) => boolean | undefined

/**
 * True if the connection uses HTTP/2. `P` and `PR` may be the start of the HTTP/2 preface, or of POST, PUT or PATCH. The timer of
 * `sniff` limits the wait for further bytes.
 */
const readHttp: ReadFirstBytes = (seen) => {
  const length = Math.min(seen.length, preface.length)
  if (!seen.subarray(0, length).equals(preface.subarray(0, length))) return false
  return length < preface.length ? undefined : true
}

const readHandshake: ReadFirstBytes = ([first]) => first === handshakeByte

/** Reads first bytes until the protocol is known. Then puts them back into the socket and calls `decide`. */
function sniff(
  socket: Socket,
  reading: ReadFirstBytes,
  { timeoutMs, late }: { timeoutMs: number; late: () => void },
  decide: (answer: boolean) => void,
): void {
  let seen: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => {
    done()
    // A client that has sent nothing gets no response.
    if (seen.length > 0) late()
    else socket.destroy()
  }, timeoutMs)
  const done = () => {
    clearTimeout(timer)
    socket.off('readable', read)
    socket.off('error', give)
    socket.off('close', gone)
  }
  const give = () => socket.destroy()
  const gone = () => clearTimeout(timer)
  const read = () => {
    // Collects the bytes and puts them back only once. If they were put back earlier, the socket would become readable again at
    // once.
    for (let chunk = socket.read() as Buffer | null; chunk; chunk = socket.read() as Buffer | null) {
      seen = Buffer.concat([seen, chunk])
    }
    if (seen.length === 0) return
    const answer = reading(seen)
    if (answer === undefined) return
    done()
    socket.unshift(seen)
    decide(answer)
  }
  socket.on('readable', read)
  socket.on('error', give)
  socket.once('close', gone)
}
