// The console: one page for all of its paths, and its files. The content security policy of the page allows no other content of
// the same origin.
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { answer } from '#edge/answer.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { operator, type Session } from '#issuer/people/sessions.ts'
import { readAsset } from '#lib/files/assets.ts'
import { type Html, html, textOf } from './html.ts'
import { send } from './page.ts'

export const assetsPath = '/ui/assets/'

/** Files of the console by use, as `npm run gen` writes them. `first` has the scripts that each page loads, the entry point first. */
export type Manifest = {
  first: string[]
  styles: string
  icon: string
  fonts: string[]
  areas: Record<string, string[]>
}

type Asset = { type: string; plain: Buffer; zipped: Buffer | undefined }

/** Files of the console by path, read at the first request. */
export type Console = { assets: ReadonlyMap<string, Asset>; head: Html }

const folder = 'gen/console/'

const types: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}

export function openConsole(): () => Console {
  let known: Console | undefined
  return () => {
    known ??= readConsole()
    return known
  }
}

/**
 * Reads the files. Their folder in URLs is a hash of all contents, so that browsers keep them, and never mix the files of two
 * releases. Scripts load each other, and styles load fonts, by relative URLs.
 */
function readConsole(): Console {
  const manifest = JSON.parse(readAsset(`${folder}manifest.json`).toString()) as Manifest
  const { first, styles, icon, fonts, areas } = manifest
  const names = [...new Set([...first, styles, icon, ...fonts, ...Object.values(areas).flat()])]
  const contents = names.map((name): [string, Buffer] => [name, readAsset(folder + name)])
  const digest = createHash('sha256')
  for (const [name, plain] of contents) digest.update(`${name} ${plain.length}\n`).update(plain)
  const at = `${assetsPath}${digest.digest('hex').slice(0, 16)}/`
  const assets = contents.map(([name, plain]): [string, Asset] => {
    const ending = name.slice(name.lastIndexOf('.') + 1)
    // Fonts are compressed already.
    const zipped = ending === 'woff2' ? undefined : gzipSync(plain, { level: 9 })
    return [at + name, { type: types[ending]!, plain, zipped }]
  })
  const head = html`<link rel="icon" href="${at}${icon}">
${fonts.map((name) => html`<link rel="preload" as="font" type="font/woff2" href="${at}${name}" crossorigin>\n`)}
<link rel="stylesheet" href="${at}${styles}">
${first.slice(1).map((name) => html`<link rel="modulepreload" href="${at}${name}">\n`)}
<script type="module" src="${at}${first[0]!}"></script>`
  return { assets: new Map(assets), head }
}

const forever = 'public, max-age=31536000, immutable'

/**
 * Sends a file of the console. Responds 404 for a file of another release. Otherwise caches would store wrong content under its
 * name.
 */
export function sendAsset(arrival: HttpArrival, { assets }: Console): void {
  const asset = assets.get(arrival.path)
  if (!asset) {
    send(arrival, 404, 'text/plain', 'there is no such file\n')
    return
  }
  const { type, plain, zipped } = asset
  const isZipped = zipped !== undefined && /\bgzip\b/.test(String(arrival.req.headers['accept-encoding'] ?? ''))
  answer(arrival, 200, isZipped ? zipped : plain, {
    'content-type': type,
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
    `font-src ${assets}`,
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
export function sendConsole(arrival: HttpArrival, session: Session, { head }: Console): void {
  const { url, app } = arrival.edge
  const { identityUid, profile, organization, endTime } = session
  const isOperator = identityUid === operator
  const name = isOperator ? 'Operator' : profile.name || profile.email || identityUid
  const text = textOf(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Pinfold</title>
${head}
</head>
<body data-uid="${identityUid}" data-name="${name}" data-email="${profile.email}" data-organization="${organization}"
data-operator="${isOperator ? 'yes' : 'no'}" data-session-end="${endTime}" data-host="${new URL(url).host}" data-version="${app.version}"
data-has-sign-in="${isOperator && app.config.oidcProviders.length > 0 ? 'yes' : 'no'}">
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
