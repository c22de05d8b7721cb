// The page on which somebody lets a program in that has printed them a link.
import type { HttpArrival } from '#edge/doors.ts'
import { refuseOperator } from '#issuer/people/devices.ts'
import { letProgramIn, readHeadlessCode } from '#issuer/people/headless.ts'
import type { Session } from '#issuer/people/sessions.ts'
import { html } from './html.ts'
import { sendPage } from './page.ts'
import { issuingOf, readForm, workOf } from './visit.ts'

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
  const body = html`<p role="status">The program is let in. You can close this page.</p>
<p><a href="/ui/account">Your account</a> lists what is signed in as you, and ends it.</p>`
  sendPage(arrival, { title: 'Done', body })
}
