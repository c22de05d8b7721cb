// Requests to pages: the actor of their changes, and a check that they come from our own pages.
import type { Work } from '#app.ts'
import { nobody } from '#edge/caller.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { isForm, maxAnonymousBytes, readBody } from '#edge/read-body.ts'
import type { Issuing } from '#issuer/exchange.ts'
import { permissionDenied } from '#lib/errors.ts'

/** Work of a request without a verified caller. Changes are recorded with `actor`. */
export function workOf({ edge: { app }, source, userAgent, requestId }: HttpArrival, actor = ''): Work {
  const cause = { actor, now: app.clock().toISOString(), source, userAgent, requestId, version: undefined }
  return { app, caller: nobody, cause, log: app.log.with({ requestId, caller: actor }) }
}

export function issuingOf({ edge: { app, url }, source }: HttpArrival): Issuing {
  return { app, issuer: url, source }
}

/** Reads the form of one of our own pages. Throws PERMISSION_DENIED for a form from elsewhere. */
export async function readForm(arrival: HttpArrival): Promise<URLSearchParams> {
  if (!isOwn(arrival) || !isForm(arrival.req))
    throw permissionDenied('the request was refused because it does not come from a page of this server')
  return new URLSearchParams((await readBody(arrival, maxAnonymousBytes)).toString('utf8'))
}

/**
 * True if the request comes from our own page. Browsers send its origin, and no page can change that. A client that sends none is
 * not a browser.
 */
export function isOwn({ req, edge: { url } }: HttpArrival): boolean {
  const site = req.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  return req.headers.origin === new URL(url).origin
}

/** True if the browser reports that no page of ours has led to this request. Over http, most browsers report nothing. */
export function isLedFromElsewhere({ req }: HttpArrival): boolean {
  const site = req.headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin'
}

/** True if a foreign page has led to this request. False if the person or a program has opened it. */
export function isLedByOthers(arrival: HttpArrival): boolean {
  return isLedFromElsewhere(arrival) && arrival.req.headers['sec-fetch-site'] !== 'none'
}

/** Path of one of our own pages. `/ui/` for anything else. */
export function ownPath(text: string | null): string {
  const base = 'http://pinfold.invalid'
  const url = text === null || text.length > 2048 ? null : URL.parse(text, base)
  if (!url || url.origin !== base || !url.pathname.startsWith('/ui/')) return '/ui/'
  return url.pathname.startsWith('/ui/signin') ? '/ui/' : url.pathname + url.search
}
