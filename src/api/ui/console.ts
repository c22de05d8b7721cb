// The console: one page for all of its paths, and its files. The content security policy of the page allows no other content of
// the same origin.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { answer } from '#edge/answer.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { operator, type Session } from '#issuer/people/sessions.ts'
import { html, textOf } from './html.ts'
import { send } from './page.ts'

export const assetsPath = '/ui/assets/'

type Asset = { path: string; type: string; plain: Buffer; zipped: Buffer }

/** Files of the console, read at the first request. Their names contain a hash of the content. */
export type Console = { script: Asset; style: Asset; icon: Asset }

export function openConsole(): () => Console {
  let known: Console | undefined
  return () => {
    known ??= {
      script: assetOf('console.js', 'text/javascript; charset=utf-8'),
      style: assetOf('console.css', 'text/css; charset=utf-8'),
      icon: assetOf('icon.svg', 'image/svg+xml'),
    }
    return known
  }
}

function assetOf(name: string, type: string): Asset {
  const plain = readFileSync(new URL(`../../../gen/console/${name}`, import.meta.url))
  const path = `${assetsPath}${name.replace('.', `-${hash('sha256', plain).slice(0, 16)}.`)}`
  return { path, type, plain, zipped: gzipSync(plain, { level: 9 }) }
}

const forever = 'public, max-age=31536000, immutable'

/**
 * Sends a file of the console. Responds 404 for a file of another release. Otherwise caches would store wrong content under its
 * name.
 */
export function sendAsset(arrival: HttpArrival, { script, style, icon }: Console): void {
  const asset = [script, style, icon].find(({ path }) => path === arrival.path)
  if (!asset) {
    send(arrival, 404, 'text/plain', 'there is no such file\n')
    return
  }
  const isZipped = /\bgzip\b/.test(String(arrival.req.headers['accept-encoding'] ?? ''))
  answer(arrival, 200, isZipped ? asset.zipped : asset.plain, {
    'content-type': asset.type,
    'cache-control': forever,
    vary: 'accept-encoding',
    'cross-origin-resource-policy': 'same-origin',
    ...(isZipped && { 'content-encoding': 'gzip' }),
  })
}

/**
 * Content security policy of the page, with paths: the registry shares the origin, so `'self'` would allow content that anyone
 * has pushed. Forms go to our own pages.
 */
function policyOf(url: string): string {
  const assets = `${url}${assetsPath}`
  return [
    "default-src 'none'",
    `script-src ${assets}`,
    `style-src ${assets}`,
    `img-src ${assets}`,
    `connect-src ${url}/ui/api/`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** Sends the page for any path of the console. The script shows the screen of the path. */
export function sendConsole(arrival: HttpArrival, session: Session, { script, style, icon }: Console): void {
  const { url, app } = arrival.edge
  const { identityUid, profile, organization } = session
  const isOperator = identityUid === operator
  const name = isOperator ? 'Operator' : profile.name || profile.email || identityUid
  const text = textOf(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Pinfold</title>
<link rel="icon" href="${icon.path}">
<link rel="stylesheet" href="${style.path}">
<script type="module" src="${script.path}"></script>
</head>
<body data-uid="${identityUid}" data-name="${name}" data-email="${profile.email}" data-organization="${organization}"
data-operator="${isOperator ? 'yes' : 'no'}" data-host="${new URL(url).host}" data-version="${app.version}">
<noscript><p>The console needs JavaScript. <a href="/ui/sessions">Your account and sessions</a> work without it.</p></noscript>
</body>
</html>
`)
  send(arrival, 200, 'text/html; charset=utf-8', text, {
    'content-security-policy': policyOf(url),
    // Not `no-referrer`: browsers would then send the sign-out form without `Origin`, and it would be refused.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
  })
}
