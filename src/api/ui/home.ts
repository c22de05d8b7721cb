// GET /: page for people who open the address of the registry in a browser.
import type { HttpArrival } from '#edge/entry-points.ts'
import { sessionOfCookie } from '#issuer/people/sessions.ts'
import { readCookie } from './cookies.ts'
import { html } from './html.ts'
import { acceptsHtml, send, sendOn, sendPage } from './page.ts'

const summary = 'Pinfold is a container registry that records every update of every tag.'

/** Redirects people with a session to the console. Shows others what this server is, with a link to the console. */
export async function homePage(arrival: HttpArrival): Promise<void> {
  const { url, app } = arrival.edge
  const { host } = new URL(url)
  if (!acceptsHtml(arrival)) {
    const lines = [summary, `console    ${url}/ui/`, `reference  ${url}/docs`, `API        ${url}/openapi.json`]
    send(arrival, 200, 'text/plain; charset=utf-8', `${lines.join('\n')}\n`)
    return
  }
  const shown = readCookie(arrival, 'pinfold')
  if (shown !== undefined && (await sessionOfCookie(app, shown))) return sendOn(arrival, '/ui/')
  const body = html`<p>${summary}</p>
<p><a class="button" href="/ui/">Open the console</a> <a class="button" href="/docs">API reference</a></p>
<p>The name of an image is <code>${host}/ORGANIZATION/NAME:TAG</code>. To sign in, run <code>docker login ${host}</code>. To let
Docker sign in automatically, run <code>pinfold docker configure --api ${url}</code> once.</p>
<p>The API is described in <a href="/openapi.json">/openapi.json</a>. The same methods are available over gRPC at this address.</p>`
  sendPage(arrival, { title: 'Container registry', body })
}
