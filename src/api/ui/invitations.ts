// Invitation page. It opens a link of an invitation or takes a code, shows who invites the person to what, and leads to the sign-in.
import type { HttpArrival } from '#edge/entry-points.ts'
import { type Offered, offerOf } from '#issuer/people/invites.ts'
import { offered, providersOfOrganization } from '#issuer/people/providers.ts'
import { newSecret } from '#issuer/people/sign-in.ts'
import { cookie, readCookie } from './cookies.ts'
import { html } from './html.ts'
import { offerText, proofOf } from './invite-consent.ts'
import { sendPage } from './page.ts'
import { sendFragment, toProviderLink } from './sign-in-pages.ts'
import { readForm } from './visit.ts'

export function invitePage(arrival: HttpArrival, problem = ''): void {
  const body = html`${problem !== '' && html`<p role="alert">${problem}</p>`}
<p>Open the link of your invitation, or enter its code.</p>
<form method="post" action="/ui/invite">
<p><label for="code">Link or code of the invitation</label>
<input id="code" name="code" autocomplete="off" spellcheck="false" required></p>
<p><button>Continue</button></p>
</form>`
  const status = problem === '' ? 200 : 400
  sendPage(arrival, { title: 'Join with an invitation', body, status, script: sendFragment })
}

const seconds = 10 * 60
const maxCode = 3000

const problems: Record<Exclude<Offered['state'], 'open'>, string> = {
  withdrawn: 'This invitation was withdrawn. Ask for a new one.',
  expired: 'This invitation has expired. Ask for a new one.',
}

/**
 * Shows the invitation. Its code is stored in a cookie, so that it is not part of any address. The sign-in uses the cookie only with
 * the proof that is in the links of this page. So a link that another site opens is never accepted without a click here.
 */
export async function takeInvite(arrival: HttpArrival): Promise<void> {
  const { app } = arrival.edge
  const code = ((await readForm(arrival)).get('code') ?? '').trim().replace(/^.*#/, '')
  if (code.length > maxCode || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(code)) {
    return invitePage(
      arrival,
      'This is not an invitation. Copy the whole link or code from your invitation, and enter it again.',
    )
  }
  app.limits.check('source', arrival.source)
  const offer = await offerOf(app, code)
  if (!offer)
    return invitePage(arrival, 'This invitation does not exist, or it was used or deleted. Ask for a new one.')
  if (offer.state !== 'open') return invitePage(arrival, problems[offer.state])
  const browser = readCookie(arrival, 'pinfold-signin') ?? newSecret()
  const invite = proofOf(browser, code)
  const back = `/ui/g/${offer.path.map(encodeURIComponent).join('/')}`
  const own = await providersOfOrganization(app, offer.organizationUid)
  const links = [...own, ...offered({ config: app.config })].map(({ id, label }) =>
    toProviderLink({ id, label, back, invite }, 'Join: sign in with'),
  )
  const others = new URLSearchParams({ return: back, invite })
  const body = html`${offerText(offer)}
<ul class="choices">${links}</ul>
<p><a href="/ui/signin?${others.toString()}">Other ways to sign in</a></p>
<p><a href="/ui/">Cancel</a></p>`
  const cookies = [
    cookie(arrival, 'pinfold-invite', code, seconds),
    cookie(arrival, 'pinfold-signin', browser, seconds),
  ]
  sendPage(arrival, { title: `Join ${offer.path[0]}`, body, headers: { 'set-cookie': cookies } })
}
