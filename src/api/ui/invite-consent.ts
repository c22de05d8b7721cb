// Invitations in addresses. An invitation is used only after the person has agreed, since another site may have led the browser to
// the address.
import { hash } from 'node:crypto'
import type { HttpArrival } from '#edge/entry-points.ts'
import { type Offered, offerOf } from '#issuer/people/invites.ts'
import { newSecret } from '#issuer/people/sign-in.ts'
import { cookie, readCookie } from './cookies.ts'
import { type Html, html } from './html.ts'
import { sendPage } from './page.ts'

const seconds = 10 * 60

/**
 * Value that proves that the link was on one of the pages that show an invitation. Other sites cannot compute it, since it depends
 * on a cookie that they cannot read.
 */
export function proofOf(browser: string, code: string): string {
  return hash('sha256', `join ${browser} ${code}`, 'base64url')
}

/** Explains who invites the person to what, and what the organization will see. */
export function offerText({ inviter, path, role, email, expirationTime, isOnce }: Offered): Html {
  const [organization = '', ...folders] = path
  const target = html`the organization <bdi>${organization}</bdi>${folders.length > 0 && html`, in its folder <bdi>${folders.join('/')}</bdi>`}`
  const as = role !== '' && html`, with the role <bdi>${role}</bdi>`
  return html`<p>${inviter === '' ? html`With this invitation, you join` : html`<bdi>${inviter}</bdi> invites you to join`} ${target}${as}.</p>
${email !== '' && html`<p>The invitation is only for <bdi>${email}</bdi>. Sign in with an account that has this verified email address.</p>\n`}<p>It expires on <time datetime="${expirationTime}">${expirationTime.slice(0, 16).replace('T', ' ')} UTC</time>${isOnce && ', and only one person can use it'}.</p>
<p>The organization will see your name and your email address. Join only if you expected this invitation.</p>`
}

/**
 * True if the person has agreed to the invitation in the request. Otherwise shows a page that asks the person, with a link that
 * repeats the request. For an invitation that nobody can accept, also returns true: it is refused after the sign-in.
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
  const body = html`${offerText(offer)}
<p><a class="button" href="/oauth?${query.toString()}">Join</a></p>
<p><a href="/ui/">Cancel</a></p>`
  const headers = { 'set-cookie': cookie(arrival, 'pinfold-signin', browser, seconds) }
  sendPage(arrival, { title: 'Join with an invitation', body, headers })
  return false
}
