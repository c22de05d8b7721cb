// Cookies of our pages. They are read below `/ui/` and for a started sign-in; the API and the registry ignore them.
import type { HttpArrival } from '#edge/entry-points.ts'

/** The session, the browser of a started sign-in, and the codes of an invite and of a program during a sign-in. */
export type CookieName = 'pinfold' | 'pinfold-signin' | 'pinfold-invite' | 'pinfold-device'

/** Name with the prefix of https. Over http, browsers refuse cookies that only https may carry. */
function fullName({ edge: { url } }: HttpArrival, name: CookieName): string {
  return url.startsWith('https:') ? `__Host-${name}` : name
}

const maxLength = 4096

/** Value of a cookie. Undefined if there is none, or several, since one of them could be an attacker's. */
export function readCookie(arrival: HttpArrival, name: CookieName): string | undefined {
  const wanted = `${fullName(arrival, name)}=`
  const all = (arrival.req.headers.cookie ?? '').split(';').map((one) => one.trim())
  const found = all.filter((one) => one.startsWith(wanted)).map((one) => one.slice(wanted.length))
  const [value] = found
  return found.length === 1 && value !== '' && value!.length <= maxLength ? value : undefined
}

/** Header that sets a cookie until the browser closes, or for some seconds. 0 seconds delete it. */
export function cookie(arrival: HttpArrival, name: CookieName, value: string, seconds?: number): string {
  const secure = arrival.edge.url.startsWith('https:') ? '; Secure' : ''
  const age = seconds === undefined ? '' : `; Max-Age=${seconds}`
  return `${fullName(arrival, name)}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}${age}`
}

export function noCookie(arrival: HttpArrival, name: CookieName): string {
  return cookie(arrival, name, '', 0)
}
