// What pages need of a request: in whose name it does something, and whether it comes from our own pages.
import type { Work } from '#app.ts'
import { nobody } from '#edge/caller.ts'
import type { HttpArrival } from '#edge/doors.ts'
import { isForm, maxAnonymousBytes, readBody } from '#edge/read-body.ts'
import type { Issuing } from '#issuer/exchange.ts'
import { permissionDenied } from '#lib/errors.ts'

/** A request that nobody has proven to send; what it leaves is written in the name of `actor`. */
export function workOf({ edge: { app }, source, userAgent, requestId }: HttpArrival, actor = ''): Work {
  const cause = { actor, now: app.clock().toISOString(), source, userAgent, requestId, version: undefined }
  return { app, caller: nobody, cause, log: app.log.with({ requestId, caller: actor }) }
}

export function issuingOf({ edge: { app, url }, source }: HttpArrival): Issuing {
  return { app, issuer: url, source }
}

/** The form that one of our own pages has sent. Throws PERMISSION_DENIED for one that comes from elsewhere. */
export async function readForm(arrival: HttpArrival): Promise<URLSearchParams> {
  if (!isOwn(arrival) || !isForm(arrival.req))
    throw permissionDenied('the request does not come from a page of this server')
  return new URLSearchParams((await readBody(arrival, maxAnonymousBytes)).toString('utf8'))
}

/** Browsers say where a request comes from, and no page can say it for them. One that says nothing is no browser. */
export function isOwn({ req, edge: { url } }: HttpArrival): boolean {
  const site = req.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  return req.headers.origin === new URL(url).origin
}

/** Whether a browser says that no page of ours has led to this request. Over http most of them say nothing. */
export function isLedFromElsewhere({ req }: HttpArrival): boolean {
  const site = req.headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin'
}

/** Whether a page of somebody else has led to this request; what the person or a program has opened is not. */
export function isLedByOthers(arrival: HttpArrival): boolean {
  return isLedFromElsewhere(arrival) && arrival.req.headers['sec-fetch-site'] !== 'none'
}

/** A path of our own pages; the first of them for anything else. */
export function ownPath(text: string | null): string {
  const base = 'http://pinfold.invalid'
  const url = text === null || text.length > 2048 ? null : URL.parse(text, base)
  if (!url || url.origin !== base || !url.pathname.startsWith('/ui/')) return '/ui/'
  return url.pathname.startsWith('/ui/signin') ? '/ui/' : url.pathname + url.search
}
