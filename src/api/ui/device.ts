// Pages on which a person approves a program: by the code that it shows, or by the link that it prints. The code must always be
// typed, so that an opened link cannot approve a program that the person does not see.
import type { Headers } from '#edge/answer.ts'
import type { HttpArrival } from '#edge/doors.ts'
import { type DeviceCode, decide, findDevice, readUserCode, refuseOperator } from '#issuer/people/devices.ts'
import { letProgramIn, readHeadlessCode } from '#issuer/people/headless.ts'
import type { Session } from '#issuer/people/sessions.ts'
import { cookie, noCookie, readCookie } from './cookies.ts'
import { html } from './html.ts'
import { sendOn, sendPage } from './page.ts'
import { issuingOf, readForm, workOf } from './visit.ts'

const confirmPath = '/ui/device/confirm'
const codeSeconds = 15 * 60

export function devicePage(arrival: HttpArrival, problem = ''): void {
  const { deviceSignIn } = arrival.edge.app.config
  const body = deviceSignIn
    ? html`${problem !== '' && html`<p role="alert">${problem}</p>`}
<p>A program that you have started elsewhere shows you a code. Type it here, and sign in then.</p>
<form method="post" action="/ui/device">
<p><label for="code">Code</label> <input id="code" name="code" autocomplete="off" autocapitalize="characters"
spellcheck="false" maxlength="20" required></p>
<p><button>Go on</button></p>
</form>`
    : html`<p role="alert">This server does not let programs in by a code.</p>`
  const status = deviceSignIn ? (problem === '' ? 200 : 400) : 404
  sendPage(arrival, { title: 'Let a program in', body, status })
}

/** Stores a typed code in a cookie. Only signed-in people learn if it is the code of a program. */
export async function takeDeviceCode(arrival: HttpArrival): Promise<void> {
  const code = readUserCode((await readForm(arrival)).get('code') ?? '')
  if (code === undefined) return devicePage(arrival, 'The code has eight letters, and none of them is a vowel.')
  sendOn(arrival, confirmPath, { 'set-cookie': cookie(arrival, 'pinfold-device', code, codeSeconds) })
}

export async function confirmDevicePage(arrival: HttpArrival, session: Session): Promise<void> {
  const code = readUserCode(readCookie(arrival, 'pinfold-device') ?? '')
  if (code === undefined) return sendOn(arrival, '/ui/device')
  const found = await findDevice(workOf(arrival, session.identityUid), issuingOf(arrival), session, code)
  if (!found) return devicePage(arrival, 'No program waits with this code, or not any more.')
  sendPage(arrival, { title: 'Let this program in?', body: question(found, code, session) })
}

function question({ clientId, source, userAgent, createTime, asked }: DeviceCode, code: string, session: Session) {
  const { profile, identityUid, organization } = session
  const name = profile.name || profile.email || identityUid
  const stays = (JSON.parse(asked) as { words: string[] }).words.includes('offline_access')
  return html`<p>A program asks to act as you, <bdi>${name}</bdi>${organization !== '' && html`, in the organisation <code>${organization}</code>`}.</p>
<dl>
<dt>Code</dt><dd><strong>${code.slice(0, 4)}-${code.slice(4)}</strong></dd>
<dt>Program</dt><dd><code>${clientId}</code></dd>
<dt>It calls itself</dt><dd><bdi>${userAgent || 'nothing'}</bdi></dd>
<dt>It asks from the address</dt><dd><code>${source}</code></dd>
<dt>It began</dt><dd><time datetime="${createTime}">${createTime.slice(0, 19).replace('T', ' ')} UTC</time></dd>
<dt>It stays signed in</dt><dd>${stays && session.granted.size === 0 ? 'until you end its session, or do not use it for 30 days' : 'for an hour'}</dd>
</dl>
<p>Go on only if you have started it yourself, just now, and it shows this code. Whoever has sent you a code to type here wants
to act in your name.</p>
<form method="post" action="${confirmPath}">
<input type="hidden" name="code" value="${code}">
<p><button name="answer" value="approve">Let it in</button> <button name="answer" value="refuse">Refuse</button></p>
</form>`
}

export async function decideDevice(arrival: HttpArrival, session: Session): Promise<void> {
  const form = await readForm(arrival)
  const code = readUserCode(form.get('code') ?? '')
  const answer = form.get('answer')
  if (code === undefined || (answer !== 'approve' && answer !== 'refuse'))
    return devicePage(arrival, 'Nothing was done.')
  const approve = answer === 'approve'
  const isAnswered = await decide(workOf(arrival, session.identityUid), session, { code, approve })
  if (!isAnswered) return devicePage(arrival, 'No program waits with this code, or not any more.')
  sendDecided(arrival, approve, { 'set-cookie': noCookie(arrival, 'pinfold-device') })
}

function sendDecided(arrival: HttpArrival, approved: boolean, headers: Headers = {}): void {
  const said = approved ? 'The program is let in. You can close this page.' : 'The program was refused.'
  const body = html`<p role="status">${said}</p>
<p><a href="/ui/account">Your account</a> lists what is signed in as you, and ends it.</p>`
  sendPage(arrival, { title: approved ? 'Done' : 'Refused', body, headers })
}

export const headlessPath = '/ui/headless'

export function headlessPage(arrival: HttpArrival, session: Session): void {
  refuseOperator(session)
  const code = readHeadlessCode(new URLSearchParams(arrival.search).get('code') ?? '', 'code')
  const { profile, identityUid } = session
  const body = html`<p>A program on another machine asks to act as you, <bdi>${profile.name || profile.email || identityUid}</bdi>,
for an hour.</p>
<dl><dt>Its key begins with</dt><dd><code>${code.slice(0, 8)}</code></dd></dl>
<p>Go on only if you have started it yourself, just now, and have opened its own link. Whoever has sent you the link wants to
act in your name.</p>
<form method="post" action="${headlessPath}">
<input type="hidden" name="code" value="${code}">
<p><button>Let it in</button> <a class="button" href="/ui/">Do not</a></p>
</form>`
  sendPage(arrival, { title: 'Let this program in?', body })
}

export async function letHeadlessIn(arrival: HttpArrival, session: Session): Promise<void> {
  refuseOperator(session)
  const code = readHeadlessCode((await readForm(arrival)).get('code') ?? '', 'code')
  await letProgramIn(workOf(arrival, session.identityUid), issuingOf(arrival), session, code)
  sendDecided(arrival, true)
}
