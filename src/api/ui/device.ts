// Pages on which a person approves a program. The person enters the code that the program shows, or opens the link that it
// prints. The code must be typed in both cases. So nobody can be made to approve another person's program by a link.
import type { Headers } from '#edge/answer.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { type DeviceCode, decide, findDevice, readUserCode, refuseOperator } from '#issuer/people/devices.ts'
import { readHeadlessCode, storeHeadlessToken } from '#issuer/people/headless.ts'
import type { Session } from '#issuer/people/sessions.ts'
import { cookie, noCookie, readCookie } from './cookies.ts'
import { html } from './html.ts'
import { sendOn, sendPage } from './page.ts'
import { issuingOf, readForm, workOf } from './visit.ts'

const confirmPath = '/ui/device/confirm'
const codeSeconds = 15 * 60
const unknownCode =
  'This code is unknown or has expired. Start the sign-in again in the program, and enter the new code here.'

export function devicePage(arrival: HttpArrival, problem = ''): void {
  const { deviceSignIn } = arrival.edge.app.config
  const body = deviceSignIn
    ? html`${problem !== '' && html`<p role="alert">${problem}</p>`}
<p>Enter the code that the program shows. Then sign in.</p>
<form method="post" action="/ui/device">
<p><label for="code">Code</label> <input id="code" name="code" autocomplete="off" autocapitalize="characters"
spellcheck="false" maxlength="20" required></p>
<p><button>Continue</button></p>
</form>`
    : html`<p role="alert">This server does not accept sign-in codes, because its operator has turned off
PINFOLD_DEVICE_SIGN_IN.</p>`
  const status = deviceSignIn ? (problem === '' ? 200 : 400) : 404
  sendPage(arrival, { title: 'Authorize a program', body, status })
}

/** Stores a typed code in a cookie. The code is checked only after the sign-in, so strangers cannot find valid codes. */
export async function takeDeviceCode(arrival: HttpArrival): Promise<void> {
  const code = readUserCode((await readForm(arrival)).get('code') ?? '')
  if (code === undefined)
    return devicePage(
      arrival,
      'This is not a sign-in code. A code has eight letters, without vowels. Check the code that the program shows.',
    )
  sendOn(arrival, confirmPath, { 'set-cookie': cookie(arrival, 'pinfold-device', code, codeSeconds) })
}

export async function confirmDevicePage(arrival: HttpArrival, session: Session): Promise<void> {
  const code = readUserCode(readCookie(arrival, 'pinfold-device') ?? '')
  if (code === undefined) return sendOn(arrival, '/ui/device')
  const found = await findDevice(workOf(arrival, session.identityUid), issuingOf(arrival), session, code)
  if (!found) return devicePage(arrival, unknownCode)
  sendPage(arrival, { title: 'Authorize this program?', body: toQuestion(found, code, session) })
}

function toQuestion({ clientId, source, userAgent, createTime, asked }: DeviceCode, code: string, session: Session) {
  const { profile, identityUid, organization } = session
  const name = profile.name || profile.email || identityUid
  const stays = (JSON.parse(asked) as { words: string[] }).words.includes('offline_access')
  const lasting =
    stays && session.granted.size === 0 ? 'until you end the session, or do not use it for 30 days' : 'for one hour'
  return html`<p>A program asks for permission to act as you,
<bdi>${name}</bdi>${organization !== '' && html`, in the organization <code>${organization}</code>`}.</p>
<dl>
<dt>Code</dt><dd><strong>${code.slice(0, 4)}-${code.slice(4)}</strong></dd>
<dt>Program</dt><dd><code>${clientId}</code></dd>
<dt>User agent</dt><dd><bdi>${userAgent || 'not stated'}</bdi></dd>
<dt>IP address</dt><dd><code>${source}</code></dd>
<dt>Time of the request</dt><dd><time datetime="${createTime}">${createTime.slice(0, 19).replace('T', ' ')} UTC</time></dd>
<dt>The program stays signed in</dt><dd>${lasting}</dd>
</dl>
<p>Authorize the program only if you have just started it yourself and it shows this code. If another person sent you the
code, deny the request: that person wants to act as you.</p>
<form method="post" action="${confirmPath}">
<input type="hidden" name="code" value="${code}">
<p><button name="answer" value="approve">Authorize</button> <button name="answer" value="refuse">Deny</button></p>
</form>`
}

export async function decideDevice(arrival: HttpArrival, session: Session): Promise<void> {
  const form = await readForm(arrival)
  const code = readUserCode(form.get('code') ?? '')
  const answer = form.get('answer')
  if (code === undefined || (answer !== 'approve' && answer !== 'refuse'))
    return devicePage(arrival, 'The program was not authorized, because the form was incomplete. Enter the code again.')
  const approve = answer === 'approve'
  const isAnswered = await decide(workOf(arrival, session.identityUid), session, { code, approve })
  if (!isAnswered) return devicePage(arrival, unknownCode)
  sendDecision(arrival, approve, { 'set-cookie': noCookie(arrival, 'pinfold-device') })
}

function sendDecision(arrival: HttpArrival, approved: boolean, headers: Headers = {}): void {
  const result = approved ? 'The program can act as you now. You can close this page.' : 'The program has no access.'
  const body = html`<p role="status">${result}</p>
<p><a href="/ui/account">Your account</a> lists your sessions. You can end them there.</p>`
  sendPage(arrival, { title: approved ? 'Program authorized' : 'Request denied', body, headers })
}

export const headlessPath = '/ui/headless'

export function headlessPage(arrival: HttpArrival, session: Session): void {
  refuseOperator(session)
  const code = readHeadlessCode(new URLSearchParams(arrival.search).get('code') ?? '', 'code')
  const { profile, identityUid } = session
  const body = html`<p>A program on another machine asks for permission to act as you,
<bdi>${profile.name || profile.email || identityUid}</bdi>,
for one hour.</p>
<dl><dt>First characters of its key</dt><dd><code>${code.slice(0, 8)}</code></dd></dl>
<p>Authorize the program only if you have just started it yourself and opened the link that it printed. If another person sent
you the link, cancel: that person wants to act as you.</p>
<form method="post" action="${headlessPath}">
<input type="hidden" name="code" value="${code}">
<p><button>Authorize</button> <a class="button" href="/ui/">Cancel</a></p>
</form>`
  sendPage(arrival, { title: 'Authorize this program?', body })
}

export async function authorizeHeadless(arrival: HttpArrival, session: Session): Promise<void> {
  refuseOperator(session)
  const code = readHeadlessCode((await readForm(arrival)).get('code') ?? '', 'code')
  await storeHeadlessToken(workOf(arrival, session.identityUid), issuingOf(arrival), session, code)
  sendDecision(arrival, true)
}
