// Cookies of our pages. Paths below `/ui/` and sign-ins in progress use them. The API and the registry ignore them.
import type { HttpArrival } from '#edge/entry-points.ts'

/**
 * Names of the cookies: for the session, for the browser of a sign-in in progress, and for the codes of an invite and of a
 * program during a sign-in.
 */
export type CookieName = 'pinfold' | 'pinfold-signin' | 'pinfold-invite' | 'pinfold-device'

/**
 * Name of a cookie, over https with the prefix that browsers accept only there. Over http, browsers would refuse such a cookie.
 */
function fullName({ edge: { url } }: HttpArrival, name: CookieName): string {
  return url.startsWith('https:') ? `__Host-${name}` : name
}

const maxLength = 4096

/**
 * Value of a cookie. Undefined if there is none. Also undefined if there are several, since an attacker may have set one of them.
 */
export function readCookie(arrival: HttpArrival, name: CookieName): string | undefined {
  const wanted = `${fullName(arrival, name)}=`
  const all = (arrival.req.headers.cookie ?? '').split(';').map((one) => one.trim())
  const found = all.filter((one) => one.startsWith(wanted)).map((one) => one.slice(wanted.length))
  const [value] = found
  return found.length === 1 && value !== '' && value!.length <= maxLength ? value : undefined
}

/** Header that sets a cookie until the browser closes, or for a number of seconds. 0 seconds delete the cookie. */
export function cookie(arrival: HttpArrival, name: CookieName, value: string, seconds?: number): string {
  const secure = arrival.edge.url.startsWith('https:') ? '; Secure' : ''
  const age = seconds === undefined ? '' : `; Max-Age=${seconds}`
  return `${fullName(arrival, name)}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}${age}`
}

export function noCookie(arrival: HttpArrival, name: CookieName): string {
  return cookie(arrival, name, '', 0)
}
