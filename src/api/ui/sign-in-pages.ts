// Sign-in pages: with a provider, or as the operator with a code.
import type { HttpArrival } from '#edge/entry-points.ts'
import { findOrganizationProviders, findSignInProvider, offered } from '#issuer/people/providers.ts'
import { enterAsOperator, signOutQuietly } from '#issuer/people/sessions.ts'
import { forPage } from '#issuer/people/sign-in.ts'
import { cookie, readCookie } from './cookies.ts'
import { type Html, html } from './html.ts'
import { proofOf } from './invite-consent.ts'
import { sendOn, sendPage } from './page.ts'
import { required, sendToProvider } from './sign-in-entry-point.ts'
import { isNotFromOurPages, issuingOf, ownPath, readForm, workOf } from './visit.ts'

const unknownOrganization =
  'No organization with this name or email domain has its own sign-in on this server. Check the spelling, or ask an owner of it.'

/**
 * Sign-in page with a link for each provider. Providers are links and not a form, since the content security policy allows forms only
 * to our own pages.
 */
export async function signInPage(arrival: HttpArrival): Promise<void> {
  const { app } = arrival.edge
  const query = new URLSearchParams(arrival.search)
  const [back, invite] = [ownPath(query.get('return')), query.get('invite') ?? '']
  const fresh = query.get('fresh') === 'true'
  const name = (query.get('org') ?? '').trim().toLowerCase()
  if (name !== '') app.limits.check('source', arrival.source)
  const own = name === '' ? [] : await findOrganizationProviders(app, name)
  const links = [
    ...own.map(({ id, label, organization }) => ({ id, label: `${label} of ${organization}` })),
    ...offered({ config: app.config }),
  ].map((one) => toProviderLink({ ...one, back, fresh, invite }))
  const hidden = { return: back, ...(fresh && { fresh: 'true' }), ...(invite !== '' && { invite }) }
  const body = html`${name !== '' && own.length === 0 && html`<p role="alert">${unknownOrganization}</p>`}
<ul class="choices">${links}</ul>
<form method="post" action="/ui/signin">
<p><label for="org">Your work email, or the name of your organization</label>
<input id="org" name="org" value="${name}" autocomplete="email" autocapitalize="none" spellcheck="false" required>
${Object.entries(hidden).map(([key, value]) => html`<input type="hidden" name="${key}" value="${value}">`)}</p>
<p><button>Continue</button></p>
</form>
<p><a href="/ui/invite">Use an invitation</a></p>
<p><a href="/ui/enter">Sign in as the operator</a></p>`
  sendPage(arrival, { title: 'Sign in', body })
}

/**
 * Continues with the organization that the person has entered. Only the `@` and the domain of an email address become part of the
 * URL. The `@` shows that the domain is not a name.
 */
export async function takeOrganization(arrival: HttpArrival): Promise<void> {
  const form = await readForm(arrival)
  const query = new URLSearchParams({ org: (form.get('org') ?? '').trim().replace(/^.*@/, '@').slice(0, 255) })
  for (const name of ['return', 'fresh', 'invite']) {
    const value = form.get(name)
    if (value !== null) query.set(name, value)
  }
  sendOn(arrival, `/ui/signin?${query}`)
}

type ProviderLink = {
  id: string
  label: string
  back: string
  fresh?: boolean
  /** Proof of an invitation (see `proofOf`). Empty for none. */
  invite: string
}

export function toProviderLink({ id, label, back, fresh, invite }: ProviderLink, action = 'Sign in with'): Html {
  const more = { ...(fresh && { fresh: 'true' }), ...(invite !== '' && { invite }) }
  const query = new URLSearchParams({ idp: id, return: back, ...more })
  return html`<li><a class="button" href="/ui/signin/start?${query.toString()}">${action} ${label}</a></li>\n`
}

/**
 * Redirects the person to the provider. Accepts an invitation after the sign-in if the link was on the page that showed it, to this
 * browser.
 */
export async function startPage(arrival: HttpArrival): Promise<void> {
  const query = new URLSearchParams(arrival.search)
  // If the browser does not come from one of our pages, lets the person choose the provider. Another site could otherwise choose
  // the account.
  if (isNotFromOurPages(arrival)) {
    query.delete('idp')
    return sendOn(arrival, `/ui/signin?${query}`)
  }
  const provider = required(await findSignInProvider(arrival.edge.app, query.get('idp') ?? ''), 'idp')
  const asked = { ...forPage, to: ownPath(query.get('return')), fresh: query.get('fresh') === 'true' }
  const [code, browser] = [readCookie(arrival, 'pinfold-invite'), readCookie(arrival, 'pinfold-signin')]
  const isAgreed = code !== undefined && browser !== undefined && query.get('invite') === proofOf(browser, code)
  await sendToProvider(arrival, provider, asked, { invite: isAgreed ? code : '', hint: '' })
}

/**
 * A link has the code after its #, which browsers do not send. The script removes the code from the address at once and sends it
 * in the form.
 */
export const sendFragment =
  `if(location.hash.length>1){const form=document.forms[0];form.elements.code.value=location.hash.slice(1);
history.replaceState(null,'',location.pathname);form.submit()}`.replaceAll('\n', '')

export function enterPage(arrival: HttpArrival, problem = ''): void {
  const body = html`${problem !== '' && html`<p role="alert">${problem}</p>`}
<p>On the machine of the server, run <code>pinfold server console</code>. It prints a link that works once, within five minutes. Open the
link, or enter its last part, after the <code>#</code>.</p>
<form method="post" action="/ui/enter">
<p><label for="code">Code</label> <input id="code" name="code" autocomplete="one-time-code" spellcheck="false" required></p>
<p><button>Sign in</button></p>
</form>`
  const status = problem === '' ? 200 : 403
  sendPage(arrival, { title: 'Sign in as the operator', body, status, script: sendFragment })
}

export async function enter(arrival: HttpArrival): Promise<void> {
  const code = ((await readForm(arrival)).get('code') ?? '').trim()
  const entered = await enterAsOperator(workOf(arrival), issuingOf(arrival), code)
  if (!entered)
    return enterPage(
      arrival,
      'This code is wrong, was used before, or has expired. Run pinfold server console again to get a new link.',
    )
  await signOutQuietly(workOf(arrival, entered.session.identityUid), readCookie(arrival, 'pinfold'))
  sendOn(arrival, '/ui/', { 'set-cookie': cookie(arrival, 'pinfold', entered.cookie) })
}
