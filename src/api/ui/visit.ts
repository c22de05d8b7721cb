// Common checks of requests to pages: whether they come from our own pages, and who makes their changes.
import type { Work } from '#app.ts'
import { maxAnonymousBytes } from '#edge/body-bytes.ts'
import { nobody } from '#edge/caller.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { isForm, readBody } from '#edge/read-body.ts'
import type { Issuing } from '#issuer/exchange.ts'
import { permissionDenied } from '#lib/errors.ts'

/** Work for a request without a caller. Its changes are recorded with `actor`. */
export function workOf({ edge: { app }, source, userAgent, requestId }: HttpArrival, actor = ''): Work {
  const cause = { actor, now: app.clock().toISOString(), source, userAgent, requestId, version: undefined }
  return { app, caller: nobody, cause, log: app.log.with({ requestId, caller: actor }) }
}

export function issuingOf({ edge: { app, url }, source }: HttpArrival): Issuing {
  return { app, issuer: url, source }
}

/** Reads a form. Throws PERMISSION_DENIED if the form was not sent by one of our own pages. */
export async function readForm(arrival: HttpArrival): Promise<URLSearchParams> {
  if (!isOwn(arrival) || !isForm(arrival.req))
    throw permissionDenied('the request was refused because it does not come from a page of this server')
  return new URLSearchParams((await readBody(arrival, maxAnonymousBytes)).toString('utf8'))
}

/**
 * True if the request comes from one of our own pages. Browsers send the origin of the page, which pages cannot change. False
 * without an origin, since the client is then not a browser.
 */
export function isOwn({ req, edge: { url } }: HttpArrival): boolean {
  const site = req.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  return req.headers.origin === new URL(url).origin
}

/** True if the browser reports that the request does not come from one of our pages. Over http, most browsers report nothing. */
export function isNotFromOurPages({ req }: HttpArrival): boolean {
  const site = req.headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin'
}

/** True if another site has caused the request. False if the person has entered the address or a program has opened it. */
export function isCrossSite(arrival: HttpArrival): boolean {
  return isNotFromOurPages(arrival) && arrival.req.headers['sec-fetch-site'] !== 'none'
}

/** Path of one of our own pages. Returns `/ui/` for any other path or URL. */
export function ownPath(text: string | null): string {
  const base = 'http://pinfold.invalid'
  const url = text === null || text.length > 2048 ? null : URL.parse(text, base)
  if (!url || url.origin !== base || !url.pathname.startsWith('/ui/')) return '/ui/'
  return url.pathname.startsWith('/ui/signin') ? '/ui/' : url.pathname + url.search
}
