// What every answer of the port says, so that nothing that anybody has pushed is ever a page or a script of our origin.
import http from 'node:http'

/** A door that shows pages sets a policy of its own instead. */
const headers = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
}

/** The same as the lines of an answer that is written to the connection by hand. */
export const safeHeaderLines = Object.entries(headers)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

/** Sets them on an answer. What `writeHead` is given later wins. */
export function setSafeHeaders(res: http.ServerResponse): void {
  for (const name in headers) res.setHeader(name, headers[name as keyof typeof headers])
}

/** Has them from the start, and so has what Node answers by itself. */
export class SafeResponse extends http.ServerResponse {
  constructor(...args: ConstructorParameters<typeof http.ServerResponse>) {
    super(...args)
    setSafeHeaders(this)
  }
}
