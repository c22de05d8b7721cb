// Invites in addresses. They count only after the person has agreed, since a foreign page may have led the browser there.
import { hash } from 'node:crypto'
import type { HttpArrival } from '#edge/entry-points.ts'
import { offerOf } from '#issuer/people/invites.ts'
import { newSecret } from '#issuer/people/sign-in.ts'
import { cookie, readCookie } from './cookies.ts'
import { html } from './html.ts'
import { sendPage } from './page.ts'

const seconds = 10 * 60

/** Proof for the link of the page below. Only that page can make it, since it depends on a cookie that nobody else can read. */
function proofOf(browser: string, code: string): string {
  return hash('sha256', `join ${browser} ${code}`, 'base64url')
}

/**
 * True if the person has agreed to the invite of the request. Otherwise shows a page with the question, whose link repeats the
 * request. A code without a valid offer is not asked about: it is refused after the sign-in.
 */
export async function isAgreed(arrival: HttpArrival, code: string): Promise<boolean> {
  const { app } = arrival.edge
  const query = new URLSearchParams(arrival.search)
  const shown = readCookie(arrival, 'pinfold-signin')
  if (shown !== undefined && query.get('confirm') === proofOf(shown, code)) return true
  app.limits.check('source', arrival.source)
  const offer = await offerOf(app, code)
  if (!offer) return true

  const browser = shown ?? newSecret()
  query.set('confirm', proofOf(browser, code))
  const { organization, group, role } = offer
  const body = html`<p>With this invitation, you join the organization <bdi>${organization}</bdi>${group !== organization && html`, in its folder <bdi>${group}</bdi>`}${role !== '' && html`, with the role <bdi>${role}</bdi>`}.</p>
<p>The organization will see your name and your email address. Join only if you expected this invitation.</p>
<p><a class="button" href="/oauth?${query.toString()}">Join</a></p>
<p><a href="/ui/">Cancel</a></p>`
  const headers = { 'set-cookie': cookie(arrival, 'pinfold-signin', browser, seconds) }
  sendPage(arrival, { title: 'Join with an invitation', body, headers })
  return false
}
