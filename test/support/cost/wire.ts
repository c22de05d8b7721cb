// Requests of the cost guard over HTTP/1.1 and gRPC. Their bodies are bytes.
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import http2 from 'node:http2'
import { gzipSync } from 'node:zlib'

/** `status` is the HTTP or gRPC status. `bytes` is the number of bytes that were sent. */
export type Sent = { status: string; bytes: number; text: string }

export type HttpRequest = {
  verb: string
  path: string
  headers?: Record<string, string>
  body?: Buffer | string
  /** Size of the chunks of the body in bytes. */
  chunkBytes?: number
}

export type GrpcRequest = {
  path: string
  token?: string | undefined
  message: Buffer
  isCompressed?: boolean
  /** Cancels the call after the first message of the answer. */
  isStream?: boolean
}

const deadlineMs = 60_000
const maxShown = 300

export function openWire(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  let session: http2.ClientHttp2Session | undefined

  const sessionNow = (): http2.ClientHttp2Session => {
    if (!session || session.closed || session.destroyed) {
      session = http2.connect(`http://127.0.0.1:${port}`)
      session.on('error', () => {})
      session.unref()
    }
    return session
  }
  return {
    async http({ verb, path, headers = {}, body = '', chunkBytes }: HttpRequest): Promise<Sent> {
      const bytes = Buffer.from(body)
      const length = bytes.length === 0 || chunkBytes ? {} : { 'content-length': String(bytes.length) }
      const head = { ...length, ...headers }
      const req = request({ host: '127.0.0.1', port, agent, method: verb, path, headers: head })
      const answered = new Promise<{ status: string; text: string }>((resolve) => {
        req.setTimeout(deadlineMs, () => req.destroy(new Error('no answer')))
        // The server may refuse the request and close the connection while the body is still being sent.
        req.on('error', (error) => resolve({ status: 'closed', text: error.message }))
        req.once('response', (res) => {
          let text = ''
          res.setEncoding('utf8').on('data', (part: string) => {
            if (text.length < maxShown) text += part
          })
          const isStream = res.headers['content-type'] === 'text/event-stream'
          const over = () => resolve({ status: String(res.statusCode), text: text.slice(0, maxShown) })
          if (isStream) {
            over()
            res.destroy()
          } else res.once('close', over)
          res.on('error', () => {})
        })
      })
      for (let at = 0; chunkBytes && at < bytes.length; at += chunkBytes) req.write(bytes.subarray(at, at + chunkBytes))
      req.end(chunkBytes ? undefined : bytes)
      return { ...(await answered), bytes: bytes.length + path.length + JSON.stringify(head).length }
    },
    async grpc({ path, token, message, isCompressed = false, isStream = false }: GrpcRequest): Promise<Sent> {
      const body = isCompressed ? gzipSync(message) : message
      const prefix = Buffer.alloc(5)
      prefix[0] = isCompressed ? 1 : 0
      prefix.writeUInt32BE(body.length, 1)
      const stream = sessionNow().request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...(isCompressed ? { 'grpc-encoding': 'gzip' } : {}),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      })
      let code = 'none'
      let text = ''
      const note = (headers: http2.IncomingHttpHeaders) => {
        code = headers['grpc-status']?.toString() ?? code
        text = headers['grpc-message']?.toString().slice(0, maxShown) ?? text
      }
      stream.on('response', note)
      stream.on('trailers', note)
      stream.on('error', (error) => {
        text ||= error.message
      })
      stream.on('data', () => {
        if (isStream) stream.close()
      })
      // The server may refuse the call while the message is still being sent. It does not read the rest.
      stream.on('end', () => stream.close(http2.constants.NGHTTP2_CANCEL))
      stream.setTimeout(deadlineMs, () => stream.close())
      stream.end(Buffer.concat([prefix, body]))
      if (!stream.destroyed) await once(stream, 'close').catch(() => {})
      // Bytes of a refused call that the server has not read use up the window of the connection, so the connection is closed.
      if (body.length > 16_384) session?.destroy()
      return { status: code, bytes: body.length + 5 + path.length + (token?.length ?? 0), text }
    },
    close(): void {
      agent.destroy()
      session?.destroy()
    },
  }
}

export type Wire = ReturnType<typeof openWire>
