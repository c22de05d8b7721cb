// Identity provider for sign-ins of users: oidc-provider on loopback. It signs in every visitor at once, as the account that a
// test has set, and asks for no consent.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
// @ts-expect-error The package comes without types.
import { Provider } from 'oidc-provider'
import type { Json } from './pinfold.ts'

export type PeopleProvider = Awaited<ReturnType<typeof startPeopleProvider>>

export const clientId = 'pinfold'
export const clientSecret = 'known to the two of them only'

export async function startPeopleProvider() {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const jwk = { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'key-1' }
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const accounts = new Map<string, Json>()
  const client: Json = {
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: ['http://127.0.0.1:1/unused'],
    post_logout_redirect_uris: [],
    backchannel_logout_session_required: true,
  }
  let account = ''
  let handle: (req: IncomingMessage, res: ServerResponse) => void = () => {}
  const start = () => {
    const provider = providerOf(url, jwk, client, accounts)
    const callback = provider.callback()
    handle = (req, res) => {
      if (req.url!.startsWith('/interaction/')) void agree(provider, req, res, account)
      else callback(req, res)
    }
  }
  start()
  server.on('request', (req, res) => handle(req, res))

  return {
    url,
    privateKey,
    /** Sets the callback URLs and other fields of the client. Restarts the provider without sessions. */
    register(callbacks: readonly string[], more: Json = {}): void {
      Object.assign(client, { redirect_uris: callbacks }, more)
      start()
    },
    /** Sets the account of all later visitors. */
    become(sub: string, claims: Json = {}): void {
      account = sub
      accounts.set(sub, { sub, ...claims })
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function providerOf(url: string, jwk: Json, client: Json, accounts: Map<string, Json>) {
  const provider = new Provider(url, {
    jwks: { keys: [jwk] },
    clients: [client],
    claims: {
      openid: ['oid', 'sub', 'sid', 'auth_time'],
      email: ['email', 'email_verified'],
      profile: ['name'],
      groups: ['groups'],
    },
    scopes: ['openid', 'email', 'profile', 'groups'],
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: () => accounts.get(sub) ?? { sub } }),
    interactions: { url: (_: unknown, { uid }: Json) => `/interaction/${uid}` },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    cookies: { keys: ['of the tests'] },
    // The library refuses requests to loopback, where the provider listens, so this check is replaced.
    fetch: (url: string, { dispatcher: _, ...options }: Json) => fetch(url, options),
    ttl: { Interaction: 600, Session: 3600, Grant: 3600, IdToken: 600, AccessToken: 600, AuthorizationCode: 60 },
  })
  return provider
}

async function agree(provider: any, req: IncomingMessage, res: ServerResponse, accountId: string): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res)
  if (prompt.name === 'login') return provider.interactionFinished(req, res, { login: { accountId } })
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
  grant.addOIDCScope(params.scope)
  return provider.interactionFinished(
    req,
    res,
    { consent: { grantId: await grant.save() } },
    { mergeWithLastSubmission: true },
  )
}
