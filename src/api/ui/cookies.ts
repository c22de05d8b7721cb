// The cookies of our pages. They count below `/ui/` and for a sign-in that has begun; the API and the registry never look.
import type { HttpArrival } from '#edge/doors.ts'

/** The session, the browser that a sign-in was begun in, and the codes of an invite and of a program on their way to one. */
export type CookieName = 'pinfold' | 'pinfold-signin' | 'pinfold-invite' | 'pinfold-device'

/** Over http no browser takes a cookie that only https may carry. */
function fullName({ edge: { url } }: HttpArrival, name: CookieName): string {
  return url.startsWith('https:') ? `__Host-${name}` : name
}

const maxLength = 4096

/** The value; nothing when there is none, or several, of which one would be somebody else's. */
export function readCookie(arrival: HttpArrival, name: CookieName): string | undefined {
  const wanted = `${fullName(arrival, name)}=`
  const all = (arrival.req.headers.cookie ?? '').split(';').map((one) => one.trim())
  const found = all.filter((one) => one.startsWith(wanted)).map((one) => one.slice(wanted.length))
  const [value] = found
  return found.length === 1 && value !== '' && value!.length <= maxLength ? value : undefined
}

/** The header that sets it, for as long as the browser runs or for some seconds; none takes it away. */
export function cookie(arrival: HttpArrival, name: CookieName, value: string, seconds?: number): string {
  const secure = arrival.edge.url.startsWith('https:') ? '; Secure' : ''
  const age = seconds === undefined ? '' : `; Max-Age=${seconds}`
  return `${fullName(arrival, name)}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}${age}`
}

export function noCookie(arrival: HttpArrival, name: CookieName): string {
  return cookie(arrival, name, '', 0)
}
