// Account page: the signed-in person, their other sessions, and signing out.
import type { HttpArrival } from '#edge/entry-points.ts'
import { endOther, operator, type Session, sessionsOfPerson, signOut } from '#issuer/people/sessions.ts'
import { notFound } from '#lib/errors.ts'
import { noCookie } from './cookies.ts'
import { type Html, html } from './html.ts'
import { sendOn, sendPage } from './page.ts'
import { issuingOf, readForm, workOf } from './visit.ts'

export async function accountPage(arrival: HttpArrival, session: Session): Promise<void> {
  const { identityUid, profile, organization, provider } = session
  const sessions = await sessionsOfPerson(arrival.edge.app, session)
  const name = identityUid === operator ? 'the operator' : profile.name || profile.email || identityUid
  const body = html`<p>You are signed in as <bdi>${name}</bdi>${profile.email !== '' && html` (<bdi>${profile.email}</bdi>)`}.</p>
<dl>
<dt>UID</dt><dd><code>${identityUid}</code></dd>
${provider !== '' && html`<dt>Identity provider</dt><dd><code>${provider}</code></dd>`}
${organization !== '' && html`<dt>Valid only in the organization</dt><dd><code>${organization}</code></dd>`}
</dl>
<form method="post" action="/ui/signout"><button>Sign out</button></form>
<h2 id="sessions">Sessions</h2>
<div class="scroll" role="region" aria-labelledby="sessions" tabindex="0">
<table>
<thead><tr><th scope="col">Started</th><th scope="col">Last used</th><th scope="col">IP address</th><th scope="col">Client</th>
<th scope="col">Actions</th></tr></thead>
<tbody>
${sessions.map((one) => toRow(one, session))}</tbody>
</table>
</div>`
  sendPage(arrival, { title: 'Your account', body })
}

function toRow(one: Session, { uid }: Session): Html {
  const started = toTime(one.createTime)
  const end = html`<form method="post" action="/ui/sessions/end"><input type="hidden" name="uid" value="${one.uid}">
<button aria-label="End session of ${shortTime(one.createTime)}">End session</button></form>`
  return html`<tr><td>${started}</td><td>${toTime(one.lastUsedTime)}</td><td>${one.source}</td>
<td><bdi>${one.userAgent}</bdi> (${one.kind})</td><td>${one.uid === uid ? 'this session' : end}</td></tr>\n`
}

function toTime(text: string): Html {
  return html`<time datetime="${text}">${shortTime(text)}</time>`
}

function shortTime(text: string): string {
  return `${text.slice(0, 16).replace('T', ' ')} UTC`
}

export async function endSession(arrival: HttpArrival, session: Session): Promise<void> {
  const uid = (await readForm(arrival)).get('uid') ?? ''
  if (uid === session.uid || !(await endOther(workOf(arrival, session.identityUid), session, uid))) {
    throw notFound('iam.pinfold.dev/Session', uid.slice(0, 100))
  }
  sendOn(arrival, '/ui/sessions')
}

/** Ends the session here at once. If the provider has an address for that, the browser then signs out there too. */
export async function signOutPage(arrival: HttpArrival, session: Session): Promise<void> {
  await readForm(arrival)
  const url = await signOut(workOf(arrival, session.identityUid), issuingOf(arrival), session)
  const headers = { 'set-cookie': noCookie(arrival, 'pinfold'), ...(url && { refresh: `1; url=${url}` }) }
  const body = html`<p role="status">You are signed out of this server.</p>
${
  url &&
  html`<p>Your browser continues to your identity provider, to sign out there too.</p>
<p><a class="button" href="${url}">Sign out at the provider</a></p>`
}
<p><a href="/ui/signin">Sign in again</a></p>`
  sendPage(arrival, { title: 'Signed out', body, headers })
}
