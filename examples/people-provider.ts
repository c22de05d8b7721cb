// An identity provider to try sign-in with: an OpenID provider on loopback whose sign-in page lists the people of a company.
// Not for anything else: everybody can sign in as everybody, and everything is kept in memory.
//
// `bin/pinfold-node examples/people-provider.ts [PORT] [URL OF PINFOLD]`; port 0 takes a free one.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
// @ts-expect-error The package comes without types.
import { Provider } from 'oidc-provider'

const [port = '9095', pinfold = 'http://127.0.0.1:8080'] = process.argv.slice(2)

/** People who can sign in, with their groups. */
const people: Record<string, { name: string; groups: string[] }> = {
  ada: { name: 'Ada Lovelace', groups: ['owners'] },
  grace: { name: 'Grace Hopper', groups: ['owners', 'developers'] },
  alan: { name: 'Alan Turing', groups: ['developers'] },
}

const server = createServer()
server.listen(Number(port), '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const { privateKey } = await generateKeyPair('RS256', { extractable: true })

const provider = new Provider(url, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'key-1' }] },
  clients: [
    {
      client_id: 'pinfold',
      client_secret: 'example-secret',
      redirect_uris: [`${pinfold}/oauth/callback`],
      post_logout_redirect_uris: [`${pinfold}/ui/signin`],
    },
  ],
  claims: {
    openid: ['sub', 'sid', 'auth_time'],
    email: ['email', 'email_verified'],
    profile: ['name'],
    groups: ['groups'],
  },
  scopes: ['openid', 'email', 'profile', 'groups'],
  // The ID token has all claims, so no request for them is necessary.
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  findAccount: (_: unknown, sub: string) => ({
    accountId: sub,
    claims: () => ({ sub, email: `${sub}@acme.example`, email_verified: true, ...people[sub] }),
  }),
  interactions: { url: (_: unknown, { uid }: { uid: string }) => `/sign-in/${uid}` },
  features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: true } },
  cookies: { keys: ['for-examples-only'] },
})
// Each identity provider of an organization has a callback URL of its own below this one.
provider.Client.prototype.redirectUriAllowed = (uri: string) =>
  uri === `${pinfold}/oauth/callback` || uri.startsWith(`${pinfold}/oauth/callback/`)

const callback = provider.callback()
server.on('request', (req: IncomingMessage, res: ServerResponse) => {
  if (!req.url?.startsWith('/sign-in/')) return callback(req, res)
  signIn(req, res).catch((error: unknown) =>
    res.writeHead(400, { 'content-type': 'text/plain' }).end(`${String(error)}\n`),
  )
})
process.stdout.write(`ready ${url}\n`)

/** Shows the people, and signs in the chosen one. Then gives consent without a question. */
async function signIn(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res)
  if (prompt.name === 'login') {
    const accountId = req.method === 'POST' ? await chosenPerson(req) : undefined
    if (accountId === undefined) return showPeople(res)
    return provider.interactionFinished(req, res, { login: { accountId } })
  }
  const known = grantId ? await provider.Grant.find(grantId) : undefined
  const grant = known ?? new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
  grant.addOIDCScope(params.scope)
  const consent = { grantId: await grant.save() }
  return provider.interactionFinished(req, res, { consent }, { mergeWithLastSubmission: true })
}

async function chosenPerson(req: IncomingMessage): Promise<string | undefined> {
  let body = ''
  for await (const chunk of req) if (body.length < 1024) body += String(chunk)
  const person = new URLSearchParams(body).get('person') ?? ''
  return Object.hasOwn(people, person) ? person : undefined
}

function showPeople(res: ServerResponse): void {
  const buttons = Object.entries(people).map(
    ([sub, { name }]) => `<p><button name="person" value="${sub}">Sign in as ${name}</button></p>`,
  )
  res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(`<!doctype html><html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Example company</title>
<h1>Example company</h1><form method="post">${buttons.join('')}</form></html>`)
}
