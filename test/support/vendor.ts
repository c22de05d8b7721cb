// With PINFOLD_TEST_VENDOR, tests are clients of another product. Each server has the compatibility profile. Requests have the
// names of that product, and so must answers. Tests see answers with our own names.
import assert from 'node:assert/strict'
import { buildEndpoints, type Endpoint } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { buildRoutes, type Routes } from '#api/transcoding/routes.ts'

export const vendor = process.env.PINFOLD_TEST_VENDOR ?? ''
const domain = `${vendor}.example`

/** Settings of a server with a compatibility profile. */
export const vendorSettings = vendor === '' ? {} : { compatVendor: vendor, compatVendorDomain: domain }

/** True for names that the profile does not change: our own packages, and paths that are not API methods. */
function isOurs(method: string, path: string): boolean {
  if (path.startsWith('/pinfold.')) return !path.startsWith('/pinfold.platform.')
  if (path.startsWith('/v2/')) return false
  routes ??= buildRoutes(buildEndpoints(services))
  const found = routes.match(method, path.split('?')[0]!)
  return found === undefined || 'allowed' in found || found.entry.method.version === undefined
}
let routes: Routes<Endpoint> | undefined

/** Path with the other product's names, for HTTP or gRPC. */
export function pathToVendor(method: string, path: string): string {
  if (vendor === '' || isOurs(method, path)) return path
  return path
    .replace(/^\/pinfold\.platform\./, `/${vendor}.platform.`)
    .replace('/_svc/history/', `/_${vendor}/history/`)
    .replace(/(?<=[?&](?:updateMask|update_mask)=[^&]*\b)pinfold\b/, vendor)
}

/** Body with the other product's names. */
export function bodyToVendor(text: string): string {
  return vendor === '' ? text : text.replaceAll('"pinfold":', `"${vendor}":`)
}

const names = [
  [/\bpinfold\.(platform|capabilities|registry)\./g, /\bVENDOR\.(platform|capabilities|registry)\./g, 'pinfold.$1.'],
  [/\bdev\.pinfold\.(api|registry)\./g, /\bdev\.VENDOR\.(api|registry)\./g, 'dev.pinfold.$1.'],
  [/"pinfold":/g, /"VENDOR":/g, '"pinfold":'],
  [/\.pinfold\.dev\//g, /\.VENDOR\.example\//g, '.pinfold.dev/'],
  [/"domain":"pinfold\.dev"/g, /"domain":"VENDOR\.example"/g, '"domain":"pinfold.dev"'],
  [/(?<=: |")pinfold\.service(_b|B)indings/g, /(?<=: |")VENDOR\.service(_b|B)indings/g, 'pinfold.service$1indings'],
] as const
const patterns = names.map(([ours, theirs, back]) => ({
  ours,
  theirs: new RegExp(theirs.source.replaceAll('VENDOR', vendor), 'g'),
  back,
}))

/** Translates an answer to our own names. Throws if the answer had our names already. */
export function answerOfVendor(text: string, method: string, path: string): string {
  return vendor === '' || isOurs(method, path) ? text : fromVendor(text)
}

/** Translates a text that the server sends without a request. */
export function fromVendor(text: string): string {
  if (vendor === '') return text
  for (const { ours } of patterns) assert.doesNotMatch(text, ours)
  return patterns.reduce((named, { theirs, back }) => named.replaceAll(theirs, back), text)
}
