// Sign-in for which a test sets the answer of the identity provider. It ends with a redirect to a program on loopback.
import assert from 'node:assert/strict'
import { type Browser, openBrowser, type Shown } from './browser.ts'
import { searchOf } from './exchange.ts'
import type { FakeIssuer } from './fake-issuer.ts'
import type { Json, Pinfold } from './pinfold.ts'
import { linkOf } from './sign-in.ts'

export const loopback = 'http://localhost:4711/callback'
export const clientId = 'pinfold'

/** A sign-in that waits for the answer of its identity provider. */
export type Begun = { browser: Browser; state: string; nonce: string; callback: string; issuer: FakeIssuer }

export async function begin(
  pinfold: Pinfold,
  { idp, issuer }: { idp: string; issuer: FakeIssuer },
  parameters: Json = {},
): Promise<Begun> {
  const browser = openBrowser()
  const named = idp === '' ? {} : { idp_id: idp }
  const query = searchOf({ exit: 'redirect', redirect: loopback, ...named, ...parameters })
  const first = await browser.ask(`${pinfold.url}/oauth?${query}`)
  const isAsked = 'invite' in parameters
  const { headers, text } = isAsked ? await browser.ask(pinfold.url + linkOf(first, 'Join')) : first
  const sent = URL.parse(headers.get('location') ?? '')
  assert.ok(sent, text)
  assert.equal(sent.searchParams.get('code_challenge_method'), 'S256')
  const [state, nonce, callback] = ['state', 'nonce', 'redirect_uri'].map((name) => sent.searchParams.get(name)!)
  return { browser, state: state!, nonce: nonce!, callback: callback!, issuer }
}

/** The provider issues an ID token and redirects the browser back. */
export async function finish(begun: Begun, claims: Json = {}, query: Json = {}, idToken?: string): Promise<Shown> {
  const { browser, state, nonce, callback, issuer } = begun
  const token = idToken ?? (await issuer.token({ sub: 'somebody', aud: clientId, nonce, ...claims }))
  issuer.answer(async () => ({ access_token: 'a', token_type: 'bearer', id_token: token }))
  return browser.ask(`${callback}?${searchOf({ code: 'c', state, ...query })}`)
}

export function answerOf({ headers, text }: Shown): Json {
  const location = headers.get('location') ?? ''
  assert.ok(location.startsWith(loopback), text)
  return Object.fromEntries(new URL(location).searchParams)
}

/** Asserts that the sign-in is refused, the program gets the error, and no session exists. */
export function assertRefused(shown: Shown, status: string, context: string): void {
  const answer = answerOf(shown)
  assert.deepEqual([Object.keys(answer), answer.status_code], [['error', 'status_code'], status], context)
}
