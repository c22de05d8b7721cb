// Starts a server with one organization, and an issuer whose tokens the organization's identities accept. Has functions for token
// exchanges.
import { type FakeIssuer, startIssuer } from './fake-issuer.ts'
import { type Answer, type Json, type Pinfold, startPinfold } from './pinfold.ts'

/** Settings that allow the server to connect to a fake issuer on loopback. */
export const outside = { allowInsecureIssuers: true, allowPrivateAddresses: true }
export const subject = 'repo:acme/web:ref:refs/heads/main'

export type Scene = {
  pinfold: Pinfold
  issuer: FakeIssuer
  org: Json
  /** Creates an identity in the organization. By default, it matches the issuer and the subject. */
  identity(body?: Json): Promise<Json>
  /** Signs a valid token of the issuer. `claims` changes its claims. */
  token(claims?: Json): Promise<string>
  exchange(token: string | undefined, parameters: Json): Promise<Answer>
  [Symbol.asyncDispose](): Promise<void>
}

export async function startExchange(overrides: Parameters<typeof startPinfold>[0] = {}): Promise<Scene> {
  const issuer = await startIssuer()
  const pinfold = await startPinfold({ ...outside, ...overrides })
  const org = await pinfold.seed.group()
  return {
    pinfold,
    issuer,
    org,
    identity: (body = {}) => pinfold.seed.identity(org.uid, { claimMatch: { issuer: issuer.url, subject }, ...body }),
    token: (claims = {}) => issuer.token({ sub: subject, aud: pinfold.url, ...claims }),
    exchange: (token, parameters) =>
      pinfold.withToken(token as string).call('POST', `/sts/exchange?${searchOf({ aud: pinfold.url, ...parameters })}`),
    async [Symbol.asyncDispose]() {
      await pinfold[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}

/** A list becomes a repeated parameter. */
export function searchOf(parameters: Json): URLSearchParams {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) search.append(name, String(one))
  }
  return search
}

/** Claims of a token. The signature is not verified. */
export function claimsOf(token: string): Json {
  return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Json
}
