// Programs that people approve: with an independent OpenID Connect library, by code, by device and by refresh token.
import assert from 'node:assert/strict'
import type { webcrypto } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import { jwtVerify } from 'jose'
import * as oidc from 'openid-client'
import { sweepSessionsJob } from '#domains/iam/iam.job.ts'
import { type Browser, openBrowser, type Shown } from '../support/browser.ts'
import { claimsOf } from '../support/exchange.ts'
import { assertError, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { type Answer, type Json, roleUids } from '../support/pinfold.ts'
import { loopback, type SignInScene, startSignInScene } from '../support/sign-in.ts'

const second = 1000
let time = Date.now()
let scene: SignInScene
before(async () => {
  scene = await startSignInScene({ clock: () => new Date(time), exchangesPerSource: 1_000_000 })
})
after(() => scene[Symbol.asyncDispose]())
// The provider's clock is the real one.
beforeEach(() => {
  time = Date.now()
})

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
const post = (path: string, form: Json): Promise<Answer> =>
  scene.pinfold.anonymous.call('POST', path, new URLSearchParams(form).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
  })
const token = (form: Json) => post('/oauth/token', { client_id: 'pinfold', ...form })
const assertRefused = (answer: Answer, error: string, status = 400) =>
  assert.deepEqual([answer.status, answer.body.error], [status, error], answer.text)
const discover = () =>
  oidc.discovery(new URL(scene.pinfold.url), 'pinfold', undefined, oidc.None(), {
    execute: [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks],
  })
const verifier = 'a verifier that is long enough to be one, by the rules'
const challenge = await oidc.calculatePKCECodeChallenge(verifier)

/** The request of a program for a code, as a URL. */
function codeRequest(more: Json = {}): string {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'pinfold',
    redirect_uri: loopback,
    scope: 'openid offline_access',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    idp_id: scene.idp.uid,
    ...more,
  })
  return `${scene.pinfold.url}/oauth?${query}`
}

async function open(url: string, browser: Browser = openBrowser()): Promise<URL> {
  const shown = await browser.go(url, {}, (next) => next.startsWith('http://localhost:4711/'))
  assert.ok(shown.url.startsWith(loopback), shown.text)
  return new URL(shown.url)
}

const codeOf = async (more: Json = {}) => (await open(codeRequest(more))).searchParams.get('code')!
const redeem = (code: string, more: Json = {}) =>
  token({ grant_type: 'authorization_code', code, redirect_uri: loopback, code_verifier: verifier, ...more })

/** Signs a person in, types the code, and answers. */
async function answerDevice(code: string, answer: string, browser: Browser = openBrowser()): Promise<Shown> {
  const { url } = scene.pinfold
  await scene.enter(browser)
  const question = await browser.submit(`${url}/ui/device`, { code })
  if (question.status !== 200 || !question.text.includes('Authorize this program?')) return question
  return browser.submit(`${url}/ui/device/confirm`, { code, answer })
}

test('discovery describes the supported features, and a strict library accepts the document', async () => {
  const { pinfold } = scene
  const { url } = pinfold
  const document = ok(await pinfold.anonymous.get('/.well-known/openid-configuration'))
  assert.deepEqual(document, {
    issuer: url,
    jwks_uri: `${url}/.well-known/jwks.json`,
    authorization_endpoint: `${url}/oauth`,
    token_endpoint: `${url}/oauth/token`,
    device_authorization_endpoint: `${url}/oauth/device_authorization`,
    grant_types_supported: [
      'authorization_code',
      'refresh_token',
      deviceGrant,
      'urn:ietf:params:oauth:grant-type:token-exchange',
    ],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    scopes_supported: ['openid', 'profile', 'email', 'offline_access'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  })
  assert.equal((await discover()).serverMetadata().issuer, url)
})

test('an OpenID Connect library completes the code flow and a refresh', async () => {
  const { pinfold, org } = scene
  const { uid, email } = scene.somebody()
  const config = await discover()
  const [state, nonce] = [oidc.randomState(), oidc.randomNonce()]
  const pkceCodeVerifier = oidc.randomPKCECodeVerifier()
  const url = oidc.buildAuthorizationUrl(config, {
    redirect_uri: loopback,
    scope: 'openid email profile offline_access',
    state,
    nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    idp_id: scene.idp.uid,
  })
  const back = await open(url.href)
  const tokens = await oidc.authorizationCodeGrant(config, back, {
    pkceCodeVerifier,
    expectedState: state,
    expectedNonce: nonce,
    idTokenExpected: true,
  })
  assert.partialDeepStrictEqual(tokens.claims(), { sub: uid, aud: 'pinfold', email, email_verified: false })
  assert.equal(tokens.scope, 'openid profile email offline_access')
  assert.equal(ok(await pinfold.withToken(tokens.access_token).get('/auth/v1/ok')).subject, uid)
  assert.equal(claimsOf(tokens.access_token).org, org.uid)

  const next = await oidc.refreshTokenGrant(config, tokens.refresh_token!)
  ok(await pinfold.withToken(next.access_token).get('/auth/v1/ok'))
  assert.notEqual(next.refresh_token, tokens.refresh_token)
  time += 11 * second
  await assert.rejects(oidc.refreshTokenGrant(config, tokens.refresh_token!), { error: 'invalid_grant' })
  assert.equal((await pinfold.withToken(next.access_token).get('/auth/v1/ok')).status, 401)
})

test('an OpenID Connect library completes the device flow', async () => {
  const { pinfold } = scene
  const { uid } = scene.somebody()
  const config = await discover()
  const device = await oidc.initiateDeviceAuthorization(config, { scope: 'openid offline_access' })
  assert.equal(device.verification_uri, `${pinfold.url}/ui/device`)
  assert.match(device.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/)
  assert.deepEqual([device.expires_in, device.interval, device.verification_uri_complete], [900, 5, undefined])
  const said = await answerDevice(device.user_code.toLowerCase().replace(/^..../, '$& - '), 'approve')
  assert.match(said.text, /The program can act as you now/)
  const tokens = await oidc.pollDeviceAuthorizationGrant(config, { ...device, interval: 0 })
  assert.partialDeepStrictEqual(tokens.claims(), { sub: uid, aud: 'pinfold' })
  ok(await pinfold.withToken(tokens.access_token).get('/auth/v1/ok'))
  ok(
    await pinfold
      .withToken((await oidc.refreshTokenGrant(config, tokens.refresh_token!)).access_token)
      .get('/auth/v1/ok'),
  )
  const again = await token({ grant_type: deviceGrant, device_code: device.device_code })
  assertRefused(again, 'invalid_grant')
})

test('the ID token of a device is accepted only at the token exchange', async () => {
  const { pinfold, org } = scene
  const { uid } = scene.somebody()
  const { device_code, user_code } = ok(await post('/oauth/device_authorization', { client_id: 'pinfold' }))
  await answerDevice(user_code, 'approve')
  const { id_token: idToken, refresh_token } = ok(await token({ grant_type: deviceGrant, device_code }))
  assert.equal(refresh_token, undefined)
  const withIt = pinfold.withToken(idToken)
  const { host } = new URL(pinfold.url)
  const exchanged = ok(await withIt.post(`/sts/exchange?aud=${encodeURIComponent(pinfold.url)}`))
  assert.equal(ok(await pinfold.withToken(exchanged.token).get('/auth/v1/ok')).subject, uid)
  assert.partialDeepStrictEqual(claimsOf(exchanged.token), { org: org.uid, aud: pinfold.url })
  assert.equal(claimsOf(ok(await withIt.post(`/sts/exchange?aud=${host}&identity=${uid}`)).token).aud, host)
  const other = await pinfold.seed.identity(org.uid)
  assertError(await withIt.post(`/sts/exchange?aud=${host}&identity=${other.uid}`), 403, 7, 'PERMISSION_DENIED')

  for (const answer of [
    await withIt.get('/auth/v1/ok'),
    await withIt.get('/control/v1/sessions'),
    await withIt.post('/auth/v1/register', {}),
    await withIt.post(`/sts/exchange_refresh_token?aud=${host}`),
    await withIt.get('/v2/'),
    await pinfold.anonymous.call('GET', '/v2/', undefined, {
      authorization: `Basic ${Buffer.from(`${uid}:${idToken}`).toString('base64')}`,
    }),
  ]) {
    assert.ok([401, 403].includes(answer.status), answer.text)
  }
  // Another token of this server is not accepted as an ID token either.
  const own = pinfold.withToken(exchanged.token)
  assertError(await own.post(`/sts/exchange?aud=${host}`), 401, 16, 'UNAUTHENTICATED')

  const { sid } = claimsOf(idToken)
  ok(await own.delete(`/control/v1/sessions/${sid}`))
  assertError(await withIt.post(`/sts/exchange?aud=${host}`), 401, 16, 'UNAUTHENTICATED')
})

test('the device flow returns pending, slow_down, access_denied and expired_token', async () => {
  scene.somebody()
  const begin = async () => ok(await post('/oauth/device_authorization', { client_id: 'pinfold', scope: 'openid' }))
  const poll = (device_code: string) => token({ grant_type: deviceGrant, device_code })
  const first = await begin()
  assertRefused(await poll(first.device_code), 'authorization_pending')
  assertRefused(await poll(first.device_code), 'slow_down')
  time += 5 * second
  assertRefused(await poll(first.device_code), 'slow_down')
  time += 15 * second
  assertRefused(await poll(first.device_code), 'authorization_pending')
  assert.match((await answerDevice(first.user_code, 'refuse')).text, /The program has no access/)
  assertRefused(await poll(first.device_code), 'access_denied')
  assertRefused(await poll(first.device_code), 'invalid_grant')
  assert.match((await answerDevice(first.user_code, 'approve')).text, /This code is unknown or has expired/)

  const late = await begin()
  const browser = openBrowser()
  await scene.enter(browser)
  time += 900 * second - 1
  assertRefused(await poll(late.device_code), 'authorization_pending')
  time += 1
  assertRefused(await poll(late.device_code), 'expired_token')
  const tooLate = await browser.submit(`${scene.pinfold.url}/ui/device`, { code: late.user_code })
  assert.match(tooLate.text, /This code is unknown or has expired/)

  assertRefused(await poll('unknown'), 'invalid_grant')
  assertRefused(await token({ grant_type: deviceGrant }), 'invalid_request')
  assertRefused(await post('/oauth/device_authorization', {}), 'invalid_request')
  assertRefused(await post('/oauth/device_authorization', { client_id: 'sts.amazonaws.com' }), 'invalid_client')
  const of = (more: Json) => post('/oauth/device_authorization', { client_id: 'pinfold', ...more })
  assertRefused(await of({ scope: 'everything' }), 'invalid_scope')
  assertRefused(await of({ audience: 'https://elsewhere.example' }), 'invalid_target')
  assertRefused(await of({ cap: 'no.such' }), 'invalid_request')
})

test('refuses a device code, an authorization code and tokens of another client', async (t) => {
  await using two = await startSignInScene({ compatVendor: 'acme', compatVendorDomain: 'acme.example' })
  const own = scene
  t.after(() => {
    scene = own
  })
  scene = two
  scene.somebody()
  for (const [client_id, other] of [
    ['pinfold', 'acme'],
    ['acme', 'pinfold'],
  ] as const) {
    const { device_code, user_code } = ok(await post('/oauth/device_authorization', { client_id, scope: 'openid' }))
    const poll = (by: string) => token({ grant_type: deviceGrant, device_code, client_id: by })
    assertRefused(await poll(other), 'invalid_grant')
    assertRefused(await poll(client_id), 'authorization_pending')
    await answerDevice(user_code, 'approve')
    assertRefused(await poll(other), 'invalid_grant')
    assert.equal(claimsOf(ok(await poll(client_id)).id_token).aud, client_id)

    const code = await codeOf({ client_id })
    assertRefused(await redeem(code, { client_id: other }), 'invalid_grant')
    assert.equal(claimsOf(ok(await redeem(await codeOf({ client_id }), { client_id })).id_token).aud, client_id)
  }
})

test('an approval ends with its session if the program has not fetched a token yet', async () => {
  const { pinfold } = scene
  scene.somebody()
  const { device_code, user_code } = ok(await post('/oauth/device_authorization', { client_id: 'pinfold' }))
  const browser = openBrowser()
  await answerDevice(user_code, 'approve', browser)
  await browser.submit(`${pinfold.url}/ui/signout`, {})
  assertRefused(await token({ grant_type: deviceGrant, device_code }), 'access_denied')
})

test('the device page names the client, accepts only typed codes, and limits attempts', async () => {
  const { pinfold } = scene
  const { url } = pinfold
  scene.somebody()
  const asked = await fetch(`${url}/oauth/device_authorization`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: 'pinfold', scope: 'offline_access' }),
    headers: { 'user-agent': '<script>a tool</script>' },
  })
  const { user_code } = (await asked.json()) as Json
  const browser = openBrowser()
  assert.doesNotMatch((await browser.ask(`${url}/ui/device?user_code=${user_code}`)).text, new RegExp(user_code))
  assert.equal((await browser.submit(`${url}/ui/device`, { code: 'aeiouaei' })).status, 400)
  const waits = await browser.submit(`${url}/ui/device`, { code: user_code })
  assert.deepEqual([new URL(waits.url).pathname, waits.status], ['/ui/signin', 200])
  assert.doesNotMatch(waits.url + waits.text, new RegExp(user_code))
  const back = new URL(waits.url).searchParams.get('return')!
  const question = await scene.enter(browser, scene.idp.uid, back)
  for (const text of ['Authorize this program?', '127.0.0.1', '&lt;script&gt;a tool', `${user_code.slice(0, 4)}-`]) {
    assert.ok(question.text.includes(text), question.text)
  }
  assert.match(question.text, /<time datetime="[^"]+">[\d -:]+ UTC</)
  const forged = { method: 'POST', body: new URLSearchParams({ code: user_code, answer: 'approve' }) }
  assert.equal((await browser.ask(`${url}/ui/device/confirm`, forged)).status, 403)

  const statuses = []
  for (let i = 0; i < 12; i++) {
    statuses.push((await browser.submit(`${url}/ui/device`, { code: `BBBBBBB${'BCDFGHJKLMNP'[i]}` })).status)
  }
  assert.deepEqual([statuses[0], statuses.at(-1)], [400, 429])

  const { code } = ok(await pinfold.operator.post('/control/v1/consoleCodes'))
  const operator = openBrowser()
  await operator.submit(`${url}/ui/enter`, { code })
  assert.equal((await operator.submit(`${url}/ui/device`, { code: user_code })).status, 403)
  assert.equal((await operator.submit(`${url}/ui/device/confirm`, { code: user_code, answer: 'approve' })).status, 403)
})

test('limits the waiting programs of one network, and a setting turns off sign-in by device code', async () => {
  await using small = await startSignInScene({ deviceSignIn: false })
  const there = small.pinfold.anonymous
  const document = ok(await there.get('/.well-known/openid-configuration'))
  assert.equal(document.device_authorization_endpoint, undefined)
  assert.ok(!document.grant_types_supported.includes(deviceGrant))
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  assert.equal((await there.call('POST', '/oauth/device_authorization', 'client_id=pinfold', headers)).status, 404)
  assert.equal((await openBrowser().ask(`${small.pinfold.url}/ui/device`)).status, 404)

  time += 1000 * second
  const begin = () => post('/oauth/device_authorization', { client_id: 'pinfold' })
  for (let i = 0; i < 50; i++) ok(await begin())
  assertRefused(await begin(), 'slow_down', 429)
  time += 901 * second
  ok(await begin())
})

test('a code is valid once, for a minute, for its client, redirect URL and verifier', async () => {
  const { pinfold } = scene
  scene.somebody()
  assertRefused(await redeem(await codeOf(), { code_verifier: `${verifier}.` }), 'invalid_grant')
  assertRefused(await redeem(await codeOf(), { redirect_uri: `${loopback}/elsewhere` }), 'invalid_grant')
  assertRefused(await redeem(await codeOf(), { client_id: 'other' }), 'invalid_client')
  assertRefused(await redeem('unknown'), 'invalid_grant')
  assertRefused(await token({ grant_type: 'authorization_code' }), 'invalid_request')
  const [early, late] = [await codeOf(), await codeOf()]
  time += 60 * second - 1
  ok(await redeem(early))
  time += 1
  assertRefused(await redeem(late), 'invalid_grant')
  time = Date.now()

  const code = await codeOf()
  const { access_token, refresh_token } = ok(await redeem(code))
  ok(await pinfold.withToken(access_token).get('/auth/v1/ok'))
  assertRefused(await redeem(code), 'invalid_grant')
  assert.equal((await pinfold.withToken(access_token).get('/auth/v1/ok')).status, 401)
  assertRefused(await token({ grant_type: 'refresh_token', refresh_token }), 'invalid_grant')
})

test('reports an invalid authorization request to the program, but not to an unknown redirect URL', async () => {
  const { url } = scene.pinfold
  scene.somebody()
  const refusal = async (more: Json) =>
    Object.fromEntries((await open(codeRequest({ state: 's', ...more }))).searchParams)
  for (const [more, error] of [
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_mode: 'fragment' }, 'invalid_request'],
    [{ client_id: 'other' }, 'invalid_client'],
    [{ scope: 'openid all' }, 'invalid_scope'],
    [{ prompt: 'none' }, 'login_required'],
    [{ request_uri: 'https://a.example' }, 'request_uri_not_supported'],
    [{ audience: 'https://a.example' }, 'invalid_request'],
  ] as [Json, string][]) {
    const { error_description, ...rest } = await refusal(more)
    assert.deepEqual(rest, { error, state: 's', iss: url }, JSON.stringify(more))
    assert.ok(error_description)
  }
  for (const redirect_uri of ['https://evil.example.com/', 'http://localhost.evil.example.com/', 'javascript:1', '']) {
    const shown = await openBrowser().ask(codeRequest({ redirect_uri }))
    assert.deepEqual([shown.status, shown.headers.get('location')], [400, null], redirect_uri)
  }
  const stranger = scene.somebody()
  const { error, state, iss } = await refusal({ idp_id: '', connection: 'company' })
  assert.deepEqual([error, state, iss], ['access_denied', 's', url], stranger.uid)
})

test('the session of a code that is never redeemed expires', async () => {
  const { pinfold } = scene
  scene.somebody()
  await codeOf()
  const client = await scene.client()
  assert.equal(ok(await client.get('/control/v1/sessions')).sessions.length, 2)
  time += 61 * second
  const { db } = pinfold.app
  const lease = { databaseTime: (now: Date) => now, inBatches: (work: never) => db.tx(work) }
  await sweepSessionsJob.run(pinfold.app, lease as never)
  assert.equal(ok(await client.get('/control/v1/sessions')).sessions.length, 1)
})

test('roles of external groups end with the sign-in that had the groups, also for approved programs', async () => {
  const { pinfold, org, idp } = scene
  ok(
    await pinfold.operator.post(`/iam/v2/externalGroupRoleMappings/${idp.uid}`, {
      externalGroupId: 'deployers',
      roleUid: roleUids.push,
      scope: org.uid,
    }),
  )
  scene.somebody({ groups: ['deployers'] })
  const browser = openBrowser()
  await scene.enter(browser)
  const form = { client_id: 'pinfold', scope: 'openid offline_access' }
  time += 3000 * second
  const { device_code, user_code } = ok(await post('/oauth/device_authorization', form))
  await browser.submit(`${pinfold.url}/ui/device`, { code: user_code })
  await browser.submit(`${pinfold.url}/ui/device/confirm`, { code: user_code, answer: 'approve' })
  const got = ok(await token({ grant_type: deviceGrant, device_code }))
  assert.equal(got.refresh_token, undefined)
  assert.equal(got.scope, 'openid')
  assert.ok(got.expires_in <= 600, String(got.expires_in))
  assert.ok(claimsOf(got.access_token).grp)
})

test('a program without a browser can fetch its token once, and only its key decrypts the token', async () => {
  const { pinfold } = scene
  const { url } = pinfold
  const { uid } = scene.somebody()
  const pair = await crypto.subtle.generateKey('X25519', true, ['deriveBits'])
  const { privateKey, publicKey } = pair as { privateKey: webcrypto.CryptoKey; publicKey: webcrypto.CryptoKey }
  const code = Buffer.from(await crypto.subtle.exportKey('raw', publicKey)).toString('base64url')
  const fetchIt = () => pinfold.anonymous.get(`/sts/headless_sessions?code=${code}`)
  assertError(await fetchIt(), 404, 5, 'NOT_FOUND')
  const browser = openBrowser()
  const question = await browser.go(`${url}/oauth?headless_code=${code}&idp_id=acme.example`)
  assert.match(question.text, /Authorize this program\?/)
  assertError(await fetchIt(), 404, 5, 'NOT_FOUND')
  assert.match((await browser.submit(`${url}/ui/headless`, { code })).text, /The program can act as you now/)
  const { ecdhPublicKey, encryptedIdtoken } = ok(await fetchIt())
  assertError(await fetchIt(), 404, 5, 'NOT_FOUND')

  const theirs = Buffer.from(Buffer.from(ecdhPublicKey, 'base64').toString('ascii'), 'base64url')
  const serverKey = await crypto.subtle.importKey('raw', theirs, 'X25519', false, [])
  const bits = await crypto.subtle.deriveBits({ name: 'X25519', public: serverKey }, privateKey, 256)
  const key = await crypto.subtle.importKey('raw', bits, 'AES-GCM', false, ['decrypt'])
  const sealed = Buffer.from(encryptedIdtoken, 'base64')
  const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: sealed.subarray(0, 12) }, key, sealed.subarray(12))
  const idToken = Buffer.from(opened).toString()
  const { token: access } = ok(await pinfold.withToken(idToken).post(`/sts/exchange?aud=${encodeURIComponent(url)}`))
  assert.equal(ok(await pinfold.withToken(access).get('/auth/v1/ok')).subject, uid)

  // Without a session, the page leads to the sign-in and keeps the link.
  const lost = await openBrowser().go(`${url}/oauth?headless_code=${code}`)
  assert.equal(new URL(lost.url).searchParams.get('return'), `/ui/headless?code=${code}`)
  for (const bad of ['', 'x', 'A'.repeat(43), `${code}=`]) {
    assert.equal((await openBrowser().ask(`${url}/oauth?headless_code=${encodeURIComponent(bad)}`)).status, 400, bad)
    assertInvalid(await pinfold.anonymous.get(`/sts/headless_sessions?code=${bad}`), 'code')
  }
})

test('people can delete their account with all its sessions, and register again as new users', async () => {
  const { pinfold } = scene
  const { uid } = scene.somebody()
  const { code: invite } = await pinfold.seed.invite(scene.org.uid, roleUids.viewer)
  const inside = await scene.client()
  const outside = await scene.client({ connection: 'company', invite })
  const stranger = await pinfold.as((await pinfold.seed.person()).uid)
  assertError(await stranger.delete(`/auth/v1/delete/${uid}`), 403, 7, 'PERMISSION_DENIED')
  assertInvalid(await stranger.delete('/auth/v1/delete/x'), 'id')
  // People other than members of the organization can delete their account, too.
  assertError(await inside.delete(`/auth/v1/delete/${uid}`), 403, 7, 'PERMISSION_DENIED')
  const events = await eventsOf(pinfold, async () => {
    ok(await outside.delete(`/auth/v1/delete/${uid}`))
  })
  assert.deepEqual(
    events.map(({ type, body }) => [type.replace(/^dev\.pinfold\.|\.v1$/g, ''), body.reason]),
    [
      ['api.iam.rolebindings.deleted', undefined],
      ['control.iam.session.ended', 'deleted'],
      ['control.iam.session.ended', 'deleted'],
      ['api.iam.identity.deleted', undefined],
    ],
  )
  for (const client of [inside, outside]) assert.equal((await client.get('/auth/v1/ok')).status, 401)
  assert.equal((await scene.open({ connection: 'company' })).get('status_code'), '404')

  // A deletion by the operator has the same effects.
  const other = scene.somebody()
  const gone = await scene.client()
  const told = await eventsOf(pinfold, async () => ok(await pinfold.operator.delete(`/iam/v2/identities/${other.uid}`)))
  assert.deepEqual(
    told.map(({ type }) => type.replace(/^dev\.pinfold\.|\.v1$/g, '')),
    ['api.iam.rolebindings.deleted', 'control.iam.session.ended', 'api.iam.identity.deleted'],
  )
  assert.equal((await gone.get('/auth/v1/ok')).status, 401)

  const own = scene.somebody()
  const alone = await scene.client()
  // This organization cannot revoke a role in another organization either.
  const elsewhere = await pinfold.seed.group()
  const binding = await pinfold.seed.binding(elsewhere.uid, own.uid, roleUids.viewer)
  assertError(await alone.delete(`/auth/v1/delete/${own.uid}`), 403, 7, 'PERMISSION_DENIED')
  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  ok(await alone.delete(`/auth/v1/delete/${own.uid}`))
  assert.equal((await alone.get('/auth/v1/ok')).status, 401)
})

test('published keys verify an ID token, and each change of the ID token makes it invalid', async () => {
  const { pinfold } = scene
  scene.somebody()
  const { id_token: idToken } = ok(await redeem(await codeOf({ nonce: 'n' })))
  const { keys } = ok(await pinfold.anonymous.get('/.well-known/jwks.json'))
  const { payload, protectedHeader } = await jwtVerify(idToken, keys[0], { issuer: pinfold.url, audience: 'pinfold' })
  assert.deepEqual([payload.nonce, protectedHeader.typ], ['n', 'JWT'])
  const [head, , signature] = idToken.split('.')
  const changed = Buffer.from(JSON.stringify({ ...payload, sub: 'a'.repeat(40) })).toString('base64url')
  const forged = pinfold.withToken(`${head}.${changed}.${signature}`)
  assertError(await forged.post(`/sts/exchange?aud=${encodeURIComponent(pinfold.url)}`), 401, 16, 'UNAUTHENTICATED')
  time += 21 * 60 * second
  const old = pinfold.withToken(idToken)
  assertError(await old.post(`/sts/exchange?aud=${encodeURIComponent(pinfold.url)}`), 401, 16, 'UNAUTHENTICATED')
})
