// HTTP client of the tests. Connections are kept open. Costs half as much processor time as fetch.
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'

export type HttpAnswer = { status: number; rawHeaders: string[]; text: string; type: string }

const agent = new Agent({ keepAlive: true })
const tlsAgent = new TlsAgent({ keepAlive: true })

/** Sends a request and reads the answer as text. Redirects are not followed. The text of an event stream, which never ends, is empty. */
export function askHttp(
  url: string,
  method: string,
  headers: Record<string, string>,
  body?: string,
): Promise<HttpAnswer> {
  const { protocol, hostname, port, pathname, search } = new URL(url)
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const options: RequestOptions = {
    // A URL has brackets around an IPv6 address.
    hostname: hostname.replaceAll(/[[\]]/g, ''),
    port,
    method,
    path: pathname + search,
    headers: { ...length, ...headers },
  }
  return new Promise((resolve, reject) => {
    const answered = (res: IncomingMessage): void => {
      const type = res.headers['content-type'] ?? ''
      const answer = (text: string): HttpAnswer => ({ status: res.statusCode!, rawHeaders: res.rawHeaders, text, type })
      if (type === 'text/event-stream') {
        resolve(answer(''))
        res.destroy()
        return
      }
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => void chunks.push(chunk))
      res.on('error', reject)
      res.once('end', () => resolve(answer(Buffer.concat(chunks).toString())))
    }
    const sent =
      protocol === 'https:'
        ? tlsRequest({ ...options, agent: tlsAgent }, answered)
        : request({ ...options, agent }, answered)
    // A broken connection may emit several errors.
    sent.on('error', reject)
    sent.end(body)
  })
}

export function headersOf({ rawHeaders }: HttpAnswer): Headers {
  const headers = new Headers()
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!)
  return headers
}
