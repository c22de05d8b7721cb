// Limits of a session that an attacker obtained from a person, that has ended, or that was narrowed.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { request } from 'node:http'
import { after, before, beforeEach, test } from 'node:test'
import * as oidc from 'openid-client'
import { sql } from '#db/sql.ts'
import { type Browser, openBrowser } from '../support/browser.ts'
import { claimsOf } from '../support/exchange.ts'
import { assertError, eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { linkOf, loopback, type SignInScene, startSignInScene } from '../support/sign-in.ts'

let scene: SignInScene
let time = Date.now()
before(async () => {
  scene = await startSignInScene({
    clock: () => new Date(time),
    allowSelfRegistration: true,
    allowOrganizationCreation: true,
    exchangesPerSource: 1_000_000,
  })
})
beforeEach(() => {
  time = Date.now()
})
after(() => scene[Symbol.asyncDispose]())

const newCode = (): string => String(generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x)
const post = (path: string, form: Json) =>
  scene.pinfold.anonymous.call('POST', path, new URLSearchParams(form).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
  })
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
const verifier = 'a verifier that is long enough to be one, by the rules'
const challenge = await oidc.calculatePKCECodeChallenge(verifier)
const fromElsewhere = { headers: { 'sec-fetch-site': 'cross-site' } }

/** Tokens of a program whose code a person types into their browser. */
async function typed(browser: Browser, form: Json = {}): Promise<Json> {
  const { url } = scene.pinfold
  const { device_code, user_code } = ok(await post('/oauth/device_authorization', { client_id: 'pinfold', ...form }))
  await browser.submit(`${url}/ui/device`, { code: user_code })
  await browser.submit(`${url}/ui/device/confirm`, { code: user_code, answer: 'approve' })
  return ok(await post('/oauth/token', { client_id: 'pinfold', grant_type: deviceGrant, device_code }))
}

/** Sends half of the form that approves a program, and the rest after `between`. */
async function lettingIn(browser: Browser, code: string, between: () => Promise<unknown>): Promise<number> {
  const { url } = scene.pinfold
  const cookie = [...browser.cookies(url)].map(([name, value]) => `${name}=${value}`).join('; ')
  const body = new URLSearchParams({ code }).toString()
  const headers = {
    cookie,
    'sec-fetch-site': 'same-origin',
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': body.length,
    expect: '100-continue',
  }
  const answered = Promise.withResolvers<number>()
  const sending = request(`${url}/ui/headless`, { method: 'POST', headers })
  sending.on('error', answered.reject).on('response', (response) => {
    response.resume()
    answered.resolve(response.statusCode!)
  })
  const begun = Promise.withResolvers<void>()
  sending.on('continue', begun.resolve)
  sending.flushHeaders()
  await begun.promise
  sending.write(body.slice(0, 3))
  // The page has already found the session when the browser's other request is answered.
  for (let i = 0; i < 3; i++) await scene.pinfold.anonymous.get('/orgcheck?name=x')
  await between()
  sending.end(body.slice(3))
  return answered.promise
}

test('an ended session cannot approve a program, also if the approval page was opened before', async () => {
  const { pinfold } = scene
  const { uid } = scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const code = newCode()
  const status = await lettingIn(browser, code, () => browser.submit(`${pinfold.url}/ui/signout`, {}))
  assert.equal(status, 401)
  assert.equal((await pinfold.anonymous.get(`/sts/headless_sessions?code=${code}`)).status, 404)

  // The same is true for a person who has deleted their account meanwhile.
  await scene.enter(browser, 'company')
  const api = await scene.client({ connection: 'company' }, browser)
  assert.equal(await lettingIn(browser, newCode(), async () => ok(await api.delete(`/auth/v1/delete/${uid}`))), 401)
  const left = await pinfold.app.db.all(sql`SELECT uid FROM sessions WHERE identity_uid = ${uid}`)
  assert.deepEqual(left, [])
})

test('a link from another site with a provider in it signs nobody in for a program', async () => {
  const { url } = scene.pinfold
  scene.somebody()
  const code = newCode()
  const back = `/ui/headless?code=${code}`
  for (const [named, more] of [
    ['idp_id=acme.example', { org: 'acme.example' }],
    ['connection=company', {}],
  ] as const) {
    const link = `${url}/oauth?headless_code=${code}&${named}`
    const led = await openBrowser().ask(link, fromElsewhere)
    assert.equal(led.headers.get('location'), `/ui/signin?${new URLSearchParams({ ...more, return: back })}`)
    // A person who enters the URL is redirected to the page.
    assert.match((await openBrowser().go(link)).text, /Authorize this program\?/)
  }
})

test('a session of an approved program counts as no recent sign-in, and cannot grant the owner role', async () => {
  const { pinfold, org } = scene
  const { uid } = scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  ok(await pinfold.operator.post(`/iam/v2/roleBindings/${org.uid}`, { identityUid: uid, roleUid: roleUids.owner }))
  const bot = await pinfold.seed.identity(org.uid)
  const makeOwner = (client: Client) =>
    client.post(`/iam/v2/roleBindings/${org.uid}`, { identityUid: bot.uid, roleUid: roleUids.owner })
  const { access_token } = await typed(browser)
  assert.equal(claimsOf(access_token).auth_time ?? 0, 0)
  assertError(await makeOwner(pinfold.withToken(access_token)), 400, 9, 'REAUTHENTICATION_REQUIRED')
  ok(await makeOwner(await scene.client({}, browser)))
})

test('limits the approved programs of a person, not counting expired ones', async () => {
  const { url, app } = scene.pinfold
  const expired = new Date(time - 1000).toISOString()
  await app.db.tx((tx) =>
    tx.run(sql`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      INSERT INTO headless_sign_ins (code_hash, public_key, encrypted, expire_time)
      SELECT 'old-' || i, '', ${new Uint8Array()}, ${expired} FROM n`),
  )
  const browser = openBrowser()
  scene.somebody()
  await scene.enter(browser)
  const statuses: number[] = []
  for (let i = 0; i < 15; i++) statuses.push((await browser.submit(`${url}/ui/headless`, { code: newCode() })).status)
  assert.equal(statuses[0], 200)
  assert.equal(statuses.at(-1), 429)
  // The same limit applies to requests on several servers for one person.
  const crowded = scene.somebody()
  const soon = new Date(time + 60_000).toISOString()
  const hers = openBrowser()
  await scene.enter(hers)
  await app.db.tx((tx) =>
    tx.run(sql`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
      INSERT INTO headless_sign_ins (code_hash, public_key, encrypted, expire_time, identity_uid)
      SELECT 'of-' || i, '', ${new Uint8Array()}, ${soon}, ${crowded.uid} FROM n`),
  )
  assert.equal((await hers.submit(`${url}/ui/headless`, { code: newCode() })).status, 429)
  time += 61_000
  assert.equal((await hers.submit(`${url}/ui/headless`, { code: newCode() })).status, 200)
  // Other people can still approve programs.
  const another = openBrowser()
  scene.somebody()
  await scene.enter(another)
  assert.equal((await another.submit(`${url}/ui/headless`, { code: newCode() })).status, 200)
})

test('an ID token shows verified emails of server-wide providers, and the organization of other providers', async () => {
  const { org } = scene
  const { email } = scene.somebody()
  const [inside, outside] = [openBrowser(), openBrowser()]
  await scene.enter(inside)
  const says = claimsOf((await typed(inside)).id_token)
  assert.deepEqual([says.email, says.email_verified, says.org], [email, false, org.uid])
  await scene.enter(outside, 'company')
  const itself = claimsOf((await typed(outside)).id_token)
  assert.deepEqual([itself.email, itself.email_verified, itself.org], [email, true, undefined])
})

test('a narrowed token cannot change the profile, and can only see and end its own session', async () => {
  const { org } = scene
  const { uid } = scene.somebody()
  const whole = await scene.client({ connection: 'company' })
  ok(
    await scene.pinfold.operator.post(`/iam/v2/roleBindings/${org.uid}`, {
      identityUid: uid,
      roleUid: roleUids.viewer,
    }),
  )
  const [pending] = ok(await whole.get('/control/v1/pendingBindings')).pendingBindings ?? []
  if (pending) ok(await whole.post(`/control/v1/pendingBindings/${pending.uid}:accept`))
  const narrowed = await scene.client({ connection: 'company', scope: org.uid })
  const { sessions } = ok(await whole.get('/control/v1/sessions'))
  const own = sessions.find((one: Json) => one.current).uid
  const theirs = sessions.find((one: Json) => !one.current).uid
  for (const answer of [
    await narrowed.patch('/iam/v2/identities:updateIdentityMetadata', { identityMetadata: { company: 'x' } }),
    await narrowed.get('/control/v1/sessions'),
    await narrowed.delete(`/control/v1/sessions/${own}`),
  ]) {
    assertError(answer, 403, 7, 'NARROWED_TOKEN')
  }
  ok(await narrowed.delete(`/control/v1/sessions/${theirs}`))
  ok(await whole.get('/auth/v1/ok'))
})

test('each organization gets the events about its part of a deleted account; a pending invitation does not block deletion', async () => {
  const { pinfold, org } = scene
  const { uid } = scene.somebody()
  const client = await scene.client()
  const bind = async (by: Client, group: string) =>
    ok(await by.post(`/iam/v2/roleBindings/${group}`, { identityUid: uid, roleUid: roleUids.editor })).uid
  const elsewhere = await pinfold.seed.group()
  const owner = await pinfold.as((await pinfold.seed.member(elsewhere.uid, roleUids.owner)).uid)
  const made = [await bind(pinfold.operator, org.uid), await bind(owner, elsewhere.uid)]
  const events = await eventsOf(pinfold, async () => {
    ok(await client.delete(`/auth/v1/delete/${uid}`))
  })
  const deleted = events.filter(({ type }) => type === 'dev.pinfold.api.iam.rolebindings.deleted.v1')
  const told = deleted.map(({ subject, group, actor }) => [subject, group, actor])
  for (const [i, group] of [org.uid, elsewhere.uid].entries()) {
    assert.ok(
      told.some((one) => one.join() === [made[i], group, uid].join()),
      JSON.stringify(told),
    )
  }
  for (const subject of made) {
    const rows = await pinfold.app.db.all(sql`
      SELECT actor, remote_address AS "from", user_agent AS "with" FROM audit_log
       WHERE subject = ${subject} AND type LIKE '%rolebindings.deleted%'`)
    assert.deepEqual(
      rows.map((row) => ({ ...(row as object) })),
      [{ actor: uid, from: '', with: '' }],
    )
  }
})

const loopbackCode = (more: Json) => {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'pinfold',
    redirect_uri: loopback,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    idp_id: scene.idp.uid,
    ...more,
  })
  return `${scene.pinfold.url}/oauth?${query}`
}
const isOver = (next: string) => next.startsWith(loopback)

test('the limits in the approval of a program apply to all tokens of its session', async () => {
  const { pinfold, org } = scene
  const folder = await pinfold.seed.group(org.uid)
  const token = (form: Json) => post('/oauth/token', { client_id: 'pinfold', ...form })
  const trade = (subject_token: string, more: Json = {}) =>
    token({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      ...more,
    })
  scene.somebody()
  const asked = { scope: `openid offline_access ${folder.uid}`, cap: 'repo.list' }
  const back = await openBrowser().go(loopbackCode(asked), {}, isOver)
  const code = new URL(back.url).searchParams.get('code')!
  const byCode = { grant_type: 'authorization_code', code, redirect_uri: loopback, code_verifier: verifier }
  const browser = openBrowser()
  await scene.enter(browser)
  for (const tokens of [ok(await token(byCode)), await typed(browser, asked)]) {
    const { narrowed, cap } = claimsOf(tokens.access_token)
    assert.deepEqual([narrowed, Object.keys(cap)], [true, [folder.uid]])
    const traded = claimsOf(ok(await trade(tokens.id_token)).access_token)
    assert.deepEqual([traded.narrowed, traded.cap], [true, cap])
    const beyond = await trade(tokens.id_token, { scope: org.uid })
    assert.ok([400, 403].includes(beyond.status), beyond.text)
    const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }
    assert.ok([400, 403].includes((await token({ ...refresh, scope: org.uid })).status))
    const next = ok(await token({ ...refresh, cap: 'tag.list' }))
    assert.deepEqual([claimsOf(next.access_token).narrowed, claimsOf(next.access_token).cap], [true, {}])
    const again = ok(await token({ ...refresh, refresh_token: next.refresh_token }))
    assert.deepEqual(claimsOf(again.access_token).cap, cap)
  }
})

test('a page of another site gets no session for a program at a local port without a click', async () => {
  scene.somebody()
  const old = new URLSearchParams({ exit: 'redirect', redirect: loopback, idp_id: scene.idp.uid })
  const links = [
    loopbackCode({ scope: 'openid offline_access' }),
    `${scene.pinfold.url}/oauth?${old}&create_refresh_token=true`,
  ]
  for (const link of links) {
    for (const site of ['cross-site', 'same-site']) {
      const led = await openBrowser().ask(link, { headers: { 'sec-fetch-site': site } })
      assert.match(led.text, /Authorize the program on this machine\?/)
      assert.match(led.text, /localhost:4711/)
      const clicked = new URL(linkOf(led, 'Authorize'), scene.pinfold.url).href
      const done = await openBrowser().go(clicked, { headers: { 'sec-fetch-site': 'same-origin' } }, isOver)
      assert.ok(isOver(done.url), done.text)
    }
    // A page that a program opens has the value `none` for Sec-Fetch-Site.
    const opened = await openBrowser().ask(link, { headers: { 'sec-fetch-site': 'none' } })
    assert.equal(opened.status, 302, opened.text)
  }
})

test('signing in as the operator ends the session of the person in the same browser', async () => {
  const { url, app } = scene.pinfold
  const { uid } = scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const { code } = ok(await scene.pinfold.operator.post('/control/v1/consoleCodes', {}))
  await browser.submit(`${url}/ui/enter`, { code })
  assert.deepEqual(await app.db.all(sql`SELECT uid FROM sessions WHERE identity_uid = ${uid}`), [])
})

test('limits waiting programs per network and size, and drops the least recently polled when full', async () => {
  await using few = await startSignInScene({ trustedProxies: ['127.0.0.1'], exchangesPerSource: 1_000_000 })
  const { pinfold } = few
  const begin = (address: string, scope = '') =>
    pinfold.anonymous.call('POST', '/oauth/device_authorization', `client_id=pinfold&scope=${scope}`, {
      'content-type': 'application/x-www-form-urlencoded',
      'x-forwarded-for': address,
    })
  const long = 'a'.repeat(40) + `/${'b'.repeat(16)}`.repeat(300)
  assert.equal((await begin('203.0.113.1', long)).status, 400)
  for (let i = 0; i < 200; i++) ok(await begin(`2001:db8:1:${i.toString(16)}::1`))
  assert.equal((await begin('2001:db8:1:ffff::1')).status, 429)
  const { device_code: waits } = ok(await begin('2001:db8:2::1'))
  const poll = () =>
    pinfold.anonymous.call(
      'POST',
      '/oauth/token',
      new URLSearchParams({ client_id: 'pinfold', grant_type: deviceGrant, device_code: waits }).toString(),
      { 'content-type': 'application/x-www-form-urlencoded' },
    )
  assert.equal((await poll()).body.error, 'authorization_pending')
  const [now, later] = [new Date(time - 1000).toISOString(), new Date(time + 600_000).toISOString()]
  await pinfold.app.db.tx((tx) =>
    tx.run(sql`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9900)
      INSERT INTO device_codes (device_hash, user_hash, client_id, asked, network, source, user_agent, answer, session_uid,
                                poll_seconds, polled_time, create_time, expire_time)
      SELECT 'd-' || i, 'u-' || i, 'pinfold', '{}', 'n-' || i, '', '', '', '', 5, '', ${now}, ${later} FROM n`),
  )
  ok(await begin('203.0.113.2'))
  assert.equal((await poll()).body.error, 'slow_down')
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE device_codes SET polled_time = ${now}`))
  assert.equal((await begin('203.0.113.3')).status, 429)
})
