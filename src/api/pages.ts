// Pages for people: under which host they are shown, and that nothing but their own style runs on them.
import { createHash } from 'node:crypto'
import type { HttpArrival } from '#edge/doors.ts'

const style = 'body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}'
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * False when the request is answered already: pages are shown at the URL alone, so that a person signs in and keeps cookies
 * in one place. Another of our names leads there; any other host is refused, since whoever made it lead here is a stranger.
 */
export function isAtUrl(arrival: HttpArrival): boolean {
  const { called, edge, req } = arrival
  if (called?.isUrl) return true
  if (called?.subdomain === undefined) {
    const text = `This server is ${edge.url}, and does not answer to the name that was used.
If there is a proxy in front of it, have the proxy pass on the Host header, or name it in PINFOLD_TRUSTED_PROXIES and have
it send X-Forwarded-Host. Further names are listed in PINFOLD_HOSTS.
`
    sendText(arrival, 421, 'text/plain; charset=utf-8', text)
    return false
  }
  sendText(arrival, 307, 'text/plain', '', { location: edge.url + req.url })
  return false
}

/** `title` and `paragraphs` are plain text. */
export function sendPage(arrival: HttpArrival, status: number, title: string, paragraphs: readonly string[]): void {
  const text = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${style}</style>
<h1>${escaped(title)}</h1>
${paragraphs.map((one) => `<p>${escaped(one)}</p>\n`).join('')}</html>
`
  const headers = { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }
  sendText(arrival, status, 'text/html; charset=utf-8', text, headers)
}

export function sendText(
  arrival: HttpArrival,
  status: number,
  type: string,
  text: string,
  headers: Record<string, string> = {},
): void {
  if (!arrival.settle(String(status))) return
  const { req, res } = arrival
  res.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    ...headers,
    ...(req.complete || req.httpVersionMajor === 2 ? {} : { connection: 'close' }),
  })
  res.end(req.method === 'HEAD' ? undefined : text)
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => entities[one]!)
}
