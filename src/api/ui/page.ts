// Common parts of pages for people: the check of the host name, the style, and a content security policy without scripts.
import { createHash } from 'node:crypto'
import { afterUnread, answer, type Headers } from '#edge/answer.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { type Html, html, raw, textOf } from './html.ts'

// The colors are those of the console, in `console/src/ui/tokens.css`.
const style = `:root{color-scheme:light dark;background:light-dark(#f7f7f4,#0f0f0e);color:light-dark(#1c1c19,#eeede9)}
a{color:light-dark(#2150c0,#8db0ff);text-underline-offset:2px}
body{font:14px/1.5 system-ui,sans-serif;margin:0;padding:3rem 1rem}
main{box-sizing:border-box;max-width:29rem;margin:0 auto;padding:1.5rem 2rem 2rem;background:light-dark(#fff,#1c1c1a);
border:1px solid light-dark(#e5e4df,#2b2b28);border-radius:12px;overflow-wrap:anywhere}
main:has(table){max-width:60rem}
h1{font:600 18px/24px system-ui,sans-serif;margin:.5rem 0 1.25rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:start;padding:.4rem .6rem;border-bottom:1px solid light-dark(#e5e4df,#2b2b28)}
label{font-weight:550}
a.button,button{display:inline-block;box-sizing:border-box;font:inherit;font-weight:550;padding:.4rem 1rem;margin:.2rem 0;
min-height:36px;border:1px solid light-dark(#8c8a82,#77756d);border-radius:6px;background:none;color:inherit;
text-decoration:none;cursor:pointer}
form p>button:first-child{color:#fff;background:light-dark(#2457cf,#3d6fe6);border-color:light-dark(#2457cf,#3d6fe6)}
input{font:inherit;padding:.4rem .75rem;margin-top:.25rem;width:100%;min-height:36px;box-sizing:border-box;color:inherit;
background:light-dark(#fff,#141413);border:1px solid light-dark(#8c8a82,#77756d);border-radius:6px}
:focus-visible{outline:2px solid light-dark(#2457cf,#7ea5ff);outline-offset:2px}
ul.choices{list-style:none;padding:0}ul.choices a.button{display:block;text-align:center}
[role=alert]{padding:.75rem 1rem;border-radius:8px;background:light-dark(#fce8e8,#381a1b)}
@media(pointer:coarse){a.button,button,input{min-height:44px}}
.scroll{overflow-x:auto}`.replaceAll('\n', '')

const sourceOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const policy = [
  "default-src 'none'",
  `style-src ${sourceOf(style)}`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * True if the request has the host name of the server's URL. Cookies then belong to a single host. If the request has another
 * name of this server, redirects to the URL. Refuses any other host. In both cases, returns false.
 */
export function isAtUrl(arrival: HttpArrival): boolean {
  const { called, edge, req } = arrival
  if (called?.isUrl) return true
  if (called?.subdomain === undefined) {
    const text = `The page was not shown, because this server is ${edge.url} and does not know the host name of the request.
If a proxy is in front of the server, let the proxy pass on the Host header. Or add the proxy to PINFOLD_TRUSTED_PROXIES and let
it send X-Forwarded-Host. Add other host names of the server to PINFOLD_HOSTS.
`
    send(arrival, 421, 'text/plain; charset=utf-8', text)
    return false
  }
  send(arrival, 307, 'text/plain', '', { location: edge.url + req.url })
  return false
}

/** Converts an error message to a sentence for a page. */
export const sentenceOf = (message: string): string => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`

/** Sends a page. `script` must be one of our own scripts. The page must also work without it. */
export type Page = { title: string; body: Html; status?: number; headers?: Headers; script?: string }

export function sendPage(arrival: HttpArrival, { title, body, status = 200, headers = {}, script }: Page): void {
  const text = textOf(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} – Pinfold</title>
<style>${raw(style)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
${script !== undefined && html`<script>${raw(script)}</script>`}
</body>
</html>
`)
  send(arrival, status, 'text/html; charset=utf-8', text, {
    'content-security-policy': script === undefined ? policy : `${policy}; script-src ${sourceOf(script)}`,
    // Not `no-referrer`: browsers would then send forms without `Origin`. Over http to another machine, no other header shows
    // where a form comes from.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    ...headers,
  })
}

/** Redirects a browser. The browser does not send the present address to the next page. */
export function sendOn(arrival: HttpArrival, location: string, headers: Headers = {}, status = 303): void {
  send(arrival, status, 'text/plain', '', { location, 'referrer-policy': 'no-referrer', ...headers })
}

export function send(arrival: HttpArrival, status: number, type: string, text: string, headers: Headers = {}): void {
  answer(arrival, status, text, { 'content-type': type, ...headers, ...afterUnread(arrival) })
}

/** True if the client accepts HTML. */
export function acceptsHtml({ req }: HttpArrival): boolean {
  return /\btext\/html\b/i.test(req.headers.accept ?? '')
}
