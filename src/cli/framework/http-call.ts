// HTTP request of a command, without `fetch` of Node. Loading `fetch` would take longer than the rest of a command that sends one
// request.

// An `import` of the module would evaluate all of its exports, and one of these exports loads `fetch`.
const { request: requestPlain } = process.getBuiltinModule('node:http')

/** Maximum size of a response in bytes. Lists have pages of 200 items, which are far smaller. */
const maxBytes = 64 * 1024 * 1024

type HttpAnswer = { status: number; text: string }
type Sent = { method: string; headers: Record<string, string>; body?: string | undefined; timeoutMs: number }

/**
 * Sends a request and returns the whole response. Follows no redirect, so a token is not sent to another server. Throws an error
 * named TimeoutError if no response comes in time.
 */
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
      // If the connection is closed before the response, `close` is the only event.
      reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }))
    })
    req.end(body)
  })
}
