// Invites in addresses. An invite is used only after the person has agreed, since another site may have led the browser to the
// address.
import { hash } from 'node:crypto'
import type { HttpArrival } from '#edge/entry-points.ts'
import { offerOf } from '#issuer/people/invites.ts'
import { newSecret } from '#issuer/people/sign-in.ts'
import { cookie, readCookie } from './cookies.ts'
import { html } from './html.ts'
import { sendPage } from './page.ts'

const seconds = 10 * 60

/**
 * Value that proves that the link was on the page below. Other sites cannot compute it, since it depends on a cookie that they
 * cannot read.
 */
function proofOf(browser: string, code: string): string {
  return hash('sha256', `join ${browser} ${code}`, 'base64url')
}

/**
 * True if the person has agreed to the invite in the request. Otherwise shows a page that asks the person, with a link that
 * repeats the request. For an invalid code, also returns true: it is refused after the sign-in.
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
