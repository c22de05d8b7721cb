// Clients that need little processor time. The server must be busy to be measured, and on a small machine an ordinary Node client
// needs as much time for a request as the server.
import http2 from 'node:http2'
import { connect, type Socket } from 'node:net'

/** HTTP/1.1 request. Its path may differ from one request to the next. */
export type Wanted = { path: string; method?: string; headers?: Record<string, string>; body?: string }
export type Connections = {
  /** Sends a request on the connection of this lane. Rejects if the answer is an error. */
  send(lane: number, index: number): Promise<void>
  close(): void
}

/** Connections over HTTP/1.1, one for each lane, each with one request at a time. */
export function httpConnections(url: string, lanes: number, wanted: (index: number) => Wanted): Connections {
  const { hostname, port, host } = new URL(url)
  const sockets = Array.from({ length: lanes }, () => connect(Number(port), hostname).setNoDelay())
  const send = (lane: number, index: number) => {
    const { path, method = 'GET', headers = {}, body = '' } = wanted(index)
    const length = method === 'GET' ? {} : { 'content-length': Buffer.byteLength(body) }
    const lines = Object.entries({ host, ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`)
    return exchange(sockets[lane]!, `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  }
  return { send, close: () => sockets.forEach((socket) => void socket.destroy()) }
}

function exchange(socket: Socket, request: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const finish = (problem?: string | Error) => {
      socket.off('data', read).off('error', finish).off('close', cut)
      if (problem === undefined) resolve()
      else reject(new Error(`${request.slice(0, request.indexOf('\r\n'))}: ${problem}`))
    }
    const cut = () => finish('the connection was closed')
    const read = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1]
      if (length === undefined || text[9] !== '2') finish(text.slice(0, 1000))
      else if (text.length >= head + 4 + Number(length)) finish()
    }
    socket.on('data', read).on('error', finish).on('close', cut).write(request)
  })
}

/** Repeats one gRPC call, with eight calls at a time on each connection. */
export function grpcConnections(
  url: string,
  lanes: number,
  call: { path: string; token: () => string; message: Uint8Array },
): Connections {
  const frame = Buffer.concat([Buffer.alloc(5), call.message])
  frame.writeUInt32BE(call.message.length, 1)
  const sessions = Array.from({ length: Math.ceil(lanes / 8) }, () => http2.connect(url))
  const headers = { ':method': 'POST', ':path': call.path, 'content-type': 'application/grpc', te: 'trailers' }
  const send = (lane: number) =>
    new Promise<void>((resolve, reject) => {
      const stream = sessions[lane % sessions.length]!.request({ ...headers, authorization: `Bearer ${call.token()}` })
      let status: unknown
      stream.once('trailers', (trailers) => {
        status = trailers['grpc-status']
      })
      stream.once('end', () => (status === '0' ? resolve() : reject(new Error(`${call.path}: status ${status}`))))
      stream.once('error', reject).resume().end(frame)
    })
  return { send, close: () => sessions.forEach((session) => void session.close()) }
}
