// One listener for HTTP/1.1 and cleartext HTTP/2. The http.Server owns it, so its timeouts and its close() keep working;
// only its `connection` listener is replaced by one that looks at the first bytes (tech notes: "One port").
import http from 'node:http'
import type { Socket } from 'node:net'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** `P` and `PR` may still become POST, PUT or PATCH. */
const telling = 3

export type OnePortOptions = http.ServerOptions & { onRequest: http.RequestListener; onHttp2: (socket: Socket) => void }

export function createOnePort({ onRequest, onHttp2, ...options }: OnePortOptions): http.Server {
  const server = http.createServer(options, onRequest)
  const [onHttp1] = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    sniff(socket, options.headersTimeout ?? 10_000, (isHttp2) =>
      isHttp2 ? onHttp2(socket) : onHttp1!.call(server, socket),
    )
  })
  return server
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
    if (isHttp2 && length < telling) return
    done()
    socket.unshift(seen)
    decide(isHttp2)
  }
  socket.on('readable', read)
  socket.on('error', give)
  socket.once('close', gone)
}
