// GET /: page for people who open the address of the registry in a browser.
import type { HttpArrival } from '#edge/doors.ts'
import { sessionOfCookie } from '#issuer/people/sessions.ts'
import { readCookie } from './cookies.ts'
import { html } from './html.ts'
import { send, sendOn, sendPage, wantsPage } from './page.ts'

const what = 'This is Pinfold, a container registry that remembers every move of every tag.'

/** Redirects signed-in people to the console. Others see what the server is, and a link to the console. */
export async function homePage(arrival: HttpArrival): Promise<void> {
  const { url, app } = arrival.edge
  const { host } = new URL(url)
  if (!wantsPage(arrival)) {
    const lines = [what, `console    ${url}/ui/`, `reference  ${url}/docs`, `API        ${url}/openapi.json`]
    send(arrival, 200, 'text/plain; charset=utf-8', `${lines.join('\n')}\n`)
    return
  }
  const shown = readCookie(arrival, 'pinfold')
  if (shown !== undefined && (await sessionOfCookie(app, shown))) return sendOn(arrival, '/ui/')
  const body = html`<p>${what}</p>
<p><a class="button" href="/ui/">Console</a> <a class="button" href="/docs">Reference of the API</a></p>
<p>Images are pulled as <code>${host}/ORGANISATION/NAME</code>. Clients sign in with <code>docker login ${host}</code>, or by
themselves after <code>pinfold auth configure-docker --api ${url}</code>.</p>
<p>Programs read <a href="/openapi.json">/openapi.json</a>; the same methods are served over gRPC at this address.</p>`
  sendPage(arrival, { title: 'A container registry', body })
}
