// Sign-in pages: with a provider, with an invite, or as the operator with a code.
import type { HttpArrival } from '#edge/entry-points.ts'
import { findByIdpId, findSignInProvider, offered } from '#issuer/people/providers.ts'
import { enterAsOperator, signOutQuietly } from '#issuer/people/sessions.ts'
import { forPage } from '#issuer/people/sign-in.ts'
import { cookie, readCookie } from './cookies.ts'
import { type Html, html } from './html.ts'
import { sendOn, sendPage } from './page.ts'
import { required, sendToProvider } from './sign-in-entry-point.ts'
import { isNotFromOurPages, issuingOf, ownPath, readForm, workOf } from './visit.ts'

const unknownOrganization =
  'No organization with this name or provider ID has its own sign-in here. Check the spelling, or ask an owner of it.'

/** Providers are links and not a form, since the content security policy allows forms only to our own pages. */
export async function signInPage(arrival: HttpArrival): Promise<void> {
  const { app } = arrival.edge
  const query = new URLSearchParams(arrival.search)
  const back = ownPath(query.get('return'))
  const fresh = query.get('fresh') === 'true'
  const name = (query.get('org') ?? '').trim().toLowerCase()
  if (name !== '') app.limits.check('source', arrival.source)
  const found = name === '' ? undefined : await findByIdpId(app, name)
  const choices = offered({ config: app.config }).map(({ id, label }) => toProviderLink({ id, label, back, fresh }))
  const own = found && toProviderLink({ id: found.id, label: `${found.label} of ${name}`, back, fresh })
  const body = html`${name !== '' && !found && html`<p role="alert">${unknownOrganization}</p>`}
<ul class="choices">${own}${choices}</ul>
<form method="get" action="/ui/signin">
<p><label for="org">Name of your organization, or ID of its identity provider</label>
<input id="org" name="org" value="${name}" autocomplete="organization" spellcheck="false" required>
<input type="hidden" name="return" value="${back}">${fresh && html`<input type="hidden" name="fresh" value="true">`}</p>
<p><button>Continue</button></p>
</form>
<p><a href="/ui/invite">Use an invitation code</a></p>
<p><a href="/ui/enter">Sign in as the operator</a></p>`
  sendPage(arrival, { title: 'Sign in', body })
}

function toProviderLink({ id, label, back, fresh }: { id: string; label: string; back: string; fresh: boolean }): Html {
  const query = new URLSearchParams({ idp: id, return: back, ...(fresh && { fresh: 'true' }) })
  return html`<li><a class="button" href="/ui/signin/start?${query.toString()}">Sign in with ${label}</a></li>\n`
}

/** Redirects the person to the provider. The invite that the person has entered is kept for the time after the sign-in. */
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
  await sendToProvider(arrival, provider, asked, { invite: readCookie(arrival, 'pinfold-invite') ?? '', hint: '' })
}

export function invitePage(arrival: HttpArrival, problem = ''): void {
  const body = html`${problem !== '' && html`<p role="alert">${problem}</p>`}
<p>Enter the invitation code that you received. Then sign in.</p>
<form method="post" action="/ui/invite">
<p><label for="code">Invitation code</label> <input id="code" name="code" autocomplete="off" spellcheck="false" required></p>
<p><button>Continue</button></p>
</form>`
  sendPage(arrival, { title: 'Join with an invitation', body, status: problem === '' ? 200 : 400 })
}

const inviteSeconds = 10 * 60
const maxCode = 3000

/** Stores the code in a cookie, so that it is not part of any address. */
export async function takeInvite(arrival: HttpArrival): Promise<void> {
  const code = ((await readForm(arrival)).get('code') ?? '').trim()
  if (code.length > maxCode || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(code)) {
    return invitePage(
      arrival,
      'This is not an invitation code. Copy the whole code from your invitation, and enter it again.',
    )
  }
  sendOn(arrival, '/ui/signin', { 'set-cookie': cookie(arrival, 'pinfold-invite', code, inviteSeconds) })
}

/**
 * A link has the code after its #, which browsers do not send. The script removes the code from the address at once and sends it
 * in the form.
 */
const sendCode =
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
  sendPage(arrival, { title: 'Sign in as the operator', body, status, script: sendCode })
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
