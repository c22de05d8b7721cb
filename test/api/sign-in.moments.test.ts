// Expiry of codes and tokens of a sign-in: they are good until the last millisecond, and refused at their expiry.
import assert from 'node:assert/strict'
import type { webcrypto } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import * as oidc from 'openid-client'
import {
  attemptSeconds,
  deviceSeconds,
  headlessSeconds,
  predecessorSeconds,
  signInCodeSeconds,
} from '#domains/iam/sessions/sessions.model.ts'
import { openBrowser, type Shown } from '../support/browser.ts'
import { claimsOf } from '../support/exchange.ts'
import { assertError, ok } from '../support/expect.ts'
import { type Answer, type Client, type Json, roleUids } from '../support/pinfold.ts'
import { loopback, type SignInScene, startSignInScene } from '../support/sign-in.ts'

const second = 1000
let time = Date.now()
let scene: SignInScene
before(async () => {
  scene = await startSignInScene({ clock: () => new Date(time), exchangesPerSource: 1_000_000 })
})
after(() => scene[Symbol.asyncDispose]())
// The clock of the provider is the real one; tokens have times in seconds.
beforeEach(() => {
  time = Math.ceil(Date.now() / second) * second
})

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
const post = (path: string, form: Json): Promise<Answer> =>
  scene.pinfold.anonymous.call('POST', path, new URLSearchParams(form).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
  })
const token = (form: Json) => post('/oauth/token', { client_id: 'pinfold', ...form })
const verifier = 'a verifier that is long enough to be one, by the rules'
const challenge = await oidc.calculatePKCECodeChallenge(verifier)

const isAtLoopback = (next: string) => next.startsWith(loopback)

async function codeOf(): Promise<string> {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'pinfold',
    redirect_uri: loopback,
    scope: 'openid offline_access',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    idp_id: scene.idp.uid,
  })
  const shown = await openBrowser().go(`${scene.pinfold.url}/oauth?${query}`, {}, isAtLoopback)
  return new URL(shown.url).searchParams.get('code')!
}
const redeem = (code: string) =>
  token({ grant_type: 'authorization_code', code, redirect_uri: loopback, code_verifier: verifier })
const beginDevice = async () => ok(await post('/oauth/device_authorization', { client_id: 'pinfold', scope: 'openid' }))
const noProgram = /This code is unknown or has expired/
const question = /Authorize this program\?/

test('returns tokens for a device code once', async () => {
  scene.somebody()
  const { url } = scene.pinfold
  for (const [first, second] of [
    ['approve', 'refuse'],
    ['refuse', 'approve'],
  ] as const) {
    const { user_code: code, device_code } = await beginDevice()
    const browser = openBrowser()
    await scene.enter(browser)
    const answer = (word: string): Promise<Shown> => browser.submit(`${url}/ui/device/confirm`, { code, answer: word })
    assert.match((await browser.submit(`${url}/ui/device`, { code })).text, question)
    await answer(first)
    assert.match((await browser.submit(`${url}/ui/device`, { code })).text, noProgram)
    assert.match((await answer(second)).text, noProgram)
    const { status } = await token({ grant_type: deviceGrant, device_code })
    assert.equal(status, first === 'approve' ? 200 : 400)
  }
})

test(`the device page accepts a code for ${deviceSeconds} seconds`, async () => {
  scene.somebody()
  const { user_code: code } = await beginDevice()
  const browser = openBrowser()
  await scene.enter(browser)
  const type = async () => (await browser.submit(`${scene.pinfold.url}/ui/device`, { code })).text
  time += deviceSeconds * second - 1
  assert.match(await type(), question)
  time += 1
  assert.match(await type(), noProgram)
})

test(`an authorization code is valid for ${signInCodeSeconds} seconds`, async () => {
  scene.somebody()
  const codes = [await codeOf(), await codeOf()]
  time += signInCodeSeconds * second - 1
  ok(await redeem(codes[0]!))
  time += 1
  assert.equal((await redeem(codes[1]!)).body.error, 'invalid_grant')
})

test(`a program without a browser can fetch its token for ${headlessSeconds} seconds`, async () => {
  scene.somebody()
  const { url, anonymous } = scene.pinfold
  const fetches = await Promise.all(
    [1, 2].map(async () => {
      const pair = await crypto.subtle.generateKey('X25519', true, ['deriveBits'])
      const { publicKey } = pair as { publicKey: webcrypto.CryptoKey }
      const code = Buffer.from(await crypto.subtle.exportKey('raw', publicKey)).toString('base64url')
      const browser = openBrowser()
      await browser.go(`${url}/oauth?headless_code=${code}&idp_id=acme.example`)
      assert.match((await browser.submit(`${url}/ui/headless`, { code })).text, /The program can act as you now/)
      return () => anonymous.get(`/sts/headless_sessions?code=${code}`)
    }),
  )
  time += headlessSeconds * second - 1
  ok(await fetches[0]!())
  time += 1
  assertError(await fetches[1]!(), 404, 5, 'NOT_FOUND')
})

test(`accepts the previous refresh token for ${predecessorSeconds} seconds`, async () => {
  scene.somebody()
  for (const late of [0, 1]) {
    const { refresh_token } = ok(await redeem(await codeOf()))
    const refresh = () => token({ grant_type: 'refresh_token', refresh_token })
    const next = ok(await refresh()).refresh_token
    time += predecessorSeconds * second + late
    const again = await refresh()
    if (late === 0) assert.equal(ok(again).refresh_token, next)
    else assert.equal(again.body.error, 'invalid_grant')
    // A stolen token ends the session.
    assert.equal((await token({ grant_type: 'refresh_token', refresh_token: next })).status, late === 0 ? 200 : 400)
  }
})

test(`a sign-in must be completed within ${attemptSeconds} seconds`, async () => {
  scene.somebody()
  const { url } = scene.pinfold
  const query = new URLSearchParams({ idp: scene.idp.uid, return: '/ui/' })
  for (const late of [-1, 0]) {
    time = Math.ceil(Date.now() / second) * second
    const browser = openBrowser()
    const { url: callback } = await browser.go(`${url}/ui/signin/start?${query}`, {}, (next) =>
      next.startsWith(`${url}/oauth/callback`),
    )
    time += attemptSeconds * second + late
    await browser.go(callback)
    assert.equal((await browser.ask(`${url}/ui/`)).status === 200, late < 0)
  }
})

test('granting the owner role requires a sign-in within 600 seconds', async () => {
  const { pinfold, org } = scene
  const { uid } = scene.somebody()
  await pinfold.seed.binding(org.uid, uid, roleUids.owner)
  const client: Client = await scene.client({ max_age: '0' })
  const signedIn = (claimsOf(client.token!).auth_time as number) * second
  const make = async () => {
    const identity = await pinfold.seed.identity(org.uid)
    return client.post(`/iam/v2/roleBindings/${org.uid}`, { identityUid: identity.uid, roleUid: roleUids.owner })
  }
  time = signedIn + 600 * second
  ok(await make())
  time += 1
  assertError(await make(), 400, 9, 'REAUTHENTICATION_REQUIRED')
})
