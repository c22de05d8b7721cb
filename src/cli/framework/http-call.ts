// One request of a command and its whole answer. Node's fetch does more and takes longer to load than all the rest of a
// command that asks a server one question.

// An import of it would read each of its names, and one of them loads all of fetch.
const { request: requestPlain } = process.getBuiltinModule('node:http')

/** The most bytes of a response; lists come in pages of 200. */
const maxBytes = 64 * 1024 * 1024

type HttpAnswer = { status: number; text: string }
type Sent = { method: string; headers: Record<string, string>; body?: string | undefined; timeoutMs: number }

/** Follows no redirect, so that a token is not sent elsewhere. Throws an error named TimeoutError if no answer comes in time. */
export async function httpCall(url: URL, { method, headers, body, timeoutMs }: Sent): Promise<HttpAnswer> {
  const request = url.protocol === 'https:' ? process.getBuiltinModule('node:https').request : requestPlain
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return new Promise((resolve, reject) => {
    const req = request(url, { method, headers: { ...headers, ...length } }, (res) => {
      const parts: Buffer[] = []
      let size = 0
      res.on('data', (part: Buffer) => {
        size += part.length
        if (size > maxBytes) req.destroy(new Error('the response is larger than 64 MiB'))
        else parts.push(part)
      })
      res.on('error', reject)
      res.once('end', () => resolve({ status: res.statusCode!, text: Buffer.concat(parts).toString() }))
    })
    const timer = setTimeout(() => {
      const late = new Error(`no response within ${timeoutMs / 1000} seconds`)
      req.destroy(Object.assign(late, { name: 'TimeoutError' }))
    }, timeoutMs)
    req.on('error', reject)
    req.once('close', () => {
      clearTimeout(timer)
      // A connection that ends before its answer causes no other event.
      reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }))
    })
    req.end(body)
  })
}
