// Sessions of people: pages and their cookie, refresh tokens, and the end of a session.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, beforeEach, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { sweepSessionsJob } from '#domains/iam/iam.job.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { openBrowser } from '../support/browser.ts'
import { claimsOf } from '../support/exchange.ts'
import { assertError, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Answer, type Json, roleUids } from '../support/pinfold.ts'
import { type SignInScene, startSignInScene } from '../support/sign-in.ts'

let scene: SignInScene
let time = Date.now()
const [second, day] = [1000, 24 * 60 * 60 * 1000]

before(async () => {
  scene = await startSignInScene({ clock: () => new Date(time), allowSelfRegistration: true })
})
beforeEach(() => {
  time = Date.now()
})
after(() => scene[Symbol.asyncDispose]())

const refreshWith = (token: string, query = ''): Promise<Answer> => {
  const { pinfold } = scene
  return pinfold.withToken(token).call('POST', `/sts/exchange_refresh_token?aud=${pinfold.url}${query}`)
}
const isLive = async (token: string): Promise<boolean> =>
  (await scene.pinfold.withToken(token).get('/auth/v1/ok')).status === 200

async function withRefresh(): Promise<{ token: string; refreshToken: string; uid: string }> {
  const { uid } = scene.somebody()
  const answer = await scene.open({ create_refresh_token: 'true' })
  return { uid, token: answer.get('token')!, refreshToken: answer.get('refresh_token')! }
}

test('a refresh token has an expiry, and returns a token of the same session with the next refresh token', async () => {
  const { pinfold, org } = scene
  const { token, refreshToken, uid } = await withRefresh()
  const said = JSON.parse(Buffer.from(refreshToken, 'base64').toString()) as Json
  assert.ok(Math.abs(said.exp * 1000 - (time + 30 * day)) < 10 * second)
  time += 2 * 60 * second
  const pair = ok(await refreshWith(refreshToken))
  const [before, now] = [claimsOf(token), claimsOf(pair.token.token)]
  for (const name of ['sub', 'sid', 'auth_time', 'email', 'org']) assert.equal(now[name], before[name], name)
  assert.deepEqual(now.act, before.act)
  assert.ok(await isLive(pair.token.token))
  assert.notEqual(pair.refreshToken.token, refreshToken)
  assert.equal(Date.parse(pair.refreshToken.expiry), time + 30 * day)

  const narrowed = ok(await refreshWith(pair.refreshToken.token, '&cap=groups.list'))
  assert.deepEqual(Object.keys(claimsOf(narrowed.token.token).cap), [org.uid])
  using grpc = grpcClientOf(pinfold, SecurityTokenService, narrowed.refreshToken.token)
  const over = await grpc.exchangeRefreshToken({ aud: [pinfold.url] })
  assert.equal(claimsOf(over.token!.token).sub, uid)
})

test('refuses malformed refresh tokens, and a request without an audience', async () => {
  const { pinfold } = scene
  const { refreshToken, token } = await withRefresh()
  const forged = { ...JSON.parse(Buffer.from(refreshToken, 'base64').toString()), fam: 'x' }
  for (const text of [
    'x',
    token,
    '{}',
    `${refreshToken}AAAA`,
    Buffer.from(JSON.stringify(forged)).toString('base64'),
  ]) {
    assertError(await refreshWith(text), 401, 16, 'UNAUTHENTICATED')
  }
  const none = await pinfold.withToken(refreshToken).call('POST', '/sts/exchange_refresh_token')
  assertInvalid(none, 'aud')
  assertError(
    await pinfold.anonymous.call('POST', `/sts/exchange_refresh_token?aud=${pinfold.url}`),
    401,
    16,
    'UNAUTHENTICATED',
  )
  assertError(await refreshWith(refreshToken, `&scopes=${'a'.repeat(40)}`), 403, 7, 'PERMISSION_DENIED')
  assertError(await pinfold.withToken(refreshToken).get('/auth/v1/ok'), 401, 16, 'UNAUTHENTICATED')
})

test('twenty concurrent refreshes keep the session, and all return a working token', async () => {
  const { refreshToken } = await withRefresh()
  const answers = await Promise.all(Array.from({ length: 20 }, () => refreshWith(refreshToken)))
  const next = new Set(
    answers.map((answer) => JSON.parse(Buffer.from(ok(answer).refreshToken.token, 'base64').toString()).tok),
  )
  assert.equal(next.size, 1)
  ok(await refreshWith(answers[7]!.body.refreshToken.token))
})

test('the previous refresh token works for ten seconds; later, or with an older one, the session ends', async () => {
  for (const late of [true, false]) {
    const { refreshToken, token } = await withRefresh()
    const second1 = ok(await refreshWith(refreshToken)).refreshToken.token
    time += 9 * second
    ok(await refreshWith(refreshToken))
    if (late) time += 2 * second
    const third = late ? second1 : ok(await refreshWith(second1)).refreshToken.token
    assert.ok(await isLive(token))
    const events = await eventsOf(scene.pinfold, async () => {
      assertError(await refreshWith(refreshToken), 401, 16, 'UNAUTHENTICATED')
    })
    assert.deepEqual(
      events.map(({ body }) => body.reason),
      ['reused'],
    )
    assertError(await refreshWith(third), 401, 16, 'UNAUTHENTICATED')
    assert.equal(await isLive(token), false)
  }
})

test('a session ends after thirty days without use, and after ninety days in any case', async () => {
  const unused = await withRefresh()
  time += 30 * day + second
  assertError(await refreshWith(unused.refreshToken), 401, 16, 'UNAUTHENTICATED')
  time = Date.now()
  let { refreshToken } = await withRefresh()
  const begun = time
  for (let days = 29; days < 90; days += 29) {
    time = begun + days * day
    refreshToken = ok(await refreshWith(refreshToken)).refreshToken.token
  }
  const { exp } = JSON.parse(Buffer.from(refreshToken, 'base64').toString()) as Json
  assert.ok(exp * 1000 <= begun + 90 * day + second)
  time = begun + 90 * day + second
  assertError(await refreshWith(refreshToken), 401, 16, 'UNAUTHENTICATED')
})

test('people can list and end their sessions, and owners those of their provider', async () => {
  const { pinfold, org } = scene
  const { uid } = scene.somebody()
  const first = await scene.client({ create_refresh_token: 'true' })
  const secondOne = await scene.client()
  const outside = await scene.client({ connection: 'company', skip_registration: 'false' })
  const { sessions, totalCount } = ok(await first.get('/control/v1/sessions'))
  assert.deepEqual([sessions.length, totalCount], [2, '2'])
  const own = sessions.find((one: Json) => one.current)
  const other = sessions.find((one: Json) => !one.current)
  assert.partialDeepStrictEqual(own, { kind: 'client', organization: org.uid, userAgent: 'a browser' })
  assert.ok(own.uid.startsWith(`${uid}/`))
  assert.equal(ok(await outside.get('/control/v1/sessions')).sessions.length, 3)

  ok(await first.delete(`/control/v1/sessions/${other.uid}`))
  assertError(await secondOne.get('/auth/v1/ok'), 401, 16, 'UNAUTHENTICATED')
  assertNotFound(await first.delete(`/control/v1/sessions/${other.uid}`), 'iam.pinfold.dev/Session', other.uid)
  const [beyond] = ok(await outside.get('/control/v1/sessions')).sessions.filter((one: Json) => one.organization === '')
  assertNotFound(await first.delete(`/control/v1/sessions/${beyond.uid}`), 'iam.pinfold.dev/Session', beyond.uid)

  const stranger = await pinfold.as((await pinfold.seed.person()).uid)
  assertNotFound(await stranger.delete(`/control/v1/sessions/${own.uid}`), 'iam.pinfold.dev/Session', own.uid)
  const owner = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
  const path = `/control/v1/organizationSessions/${org.uid}`
  assertError(await stranger.get(path), 403, 7, 'PERMISSION_DENIED')
  const listed = ok(await owner.get(`${path}?page_size=200`)).sessions as Json[]
  assert.ok(listed.some((one) => one.uid === own.uid) && listed.every((one) => one.organization === org.uid))
  const notTheirs = await owner.post(`${path}:end`, { sessionUid: beyond.uid })
  assertNotFound(notTheirs, 'iam.pinfold.dev/Session', beyond.uid)
  ok(await owner.post(`${path}:end`, { sessionUid: own.uid }))
  assertError(await first.get('/auth/v1/ok'), 401, 16, 'UNAUTHENTICATED')
  ok(await outside.get('/auth/v1/ok'))
})

test('a deep link works after the sign-in, and the cookie is sent only below /ui/', async () => {
  const { pinfold } = scene
  const { email } = scene.somebody()
  const browser = openBrowser()
  const lost = await browser.go(`${pinfold.url}/ui/g/acme.example/~/people?page=2`)
  assert.equal(new URL(lost.url).searchParams.get('return'), '/ui/g/acme.example/~/people?page=2')
  const named = await browser.go(`${lost.url}&org=acme.example`)
  const href = /href="(\/ui\/signin\/start\?[^"]+)">Sign in with [^<]+ of acme\.example</.exec(named.text)![1]!
  const back = await browser.go(new URL(href.replaceAll('&amp;', '&'), named.url).href)
  assert.deepEqual([back.url, back.status], [`${pinfold.url}/ui/g/acme.example/~/people?page=2`, 200])

  const account = await browser.go(`${pinfold.url}/ui/`)
  assert.equal(account.status, 200)
  assert.match(account.text, new RegExp(email))
  assert.equal((await browser.ask(`${pinfold.url}/auth/v1/ok`)).status, 401)
  assert.equal((await browser.ask(`${pinfold.url}/control/v1/sessions`)).status, 401)
  for (const to of [
    'https://evil.example.com/',
    '//evil.example.com/',
    '/auth/v1/ok',
    '/ui/../auth',
    '\\\\evil',
    '/ui/signin/start',
  ]) {
    assert.equal((await scene.enter(openBrowser(), scene.idp.uid, to)).url, `${pinfold.url}/ui/`, to)
  }
})

test('over HTTPS the cookie is limited to this host, and is never sent unencrypted', async () => {
  await using secure = await startSignInScene({ url: 'https://registry.example.com' })
  const { operator, listenPort: port } = secure.pinfold
  const { code } = ok(await operator.post('/control/v1/consoleCodes'))
  const ask = (method: string, path: string, body = ''): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const headers = {
        host: 'registry.example.com',
        'sec-fetch-site': 'same-origin',
        'content-type': 'application/x-www-form-urlencoded',
      }
      request({ port, host: '127.0.0.1', method, path, headers }, (res) => {
        res.resume().on('end', () => resolve(res.headers['set-cookie'] ?? []))
      })
        .on('error', reject)
        .end(body)
    })
  const [bound] = await ask('GET', '/ui/signin/start?idp=company')
  assert.match(bound!, /^__Host-pinfold-signin=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/)
  const [cookie] = await ask('POST', '/ui/enter', `code=${code}`)
  assert.match(cookie!, /^__Host-pinfold=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
})

test('accepts forms from our own pages only', async () => {
  const { pinfold } = scene
  scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const url = `${pinfold.url}/ui/signout`
  const post = (headers: Record<string, string>) =>
    browser.ask(url, { method: 'POST', body: new URLSearchParams({ a: 'b' }), headers })
  for (const headers of [
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: pinfold.url },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
  ] as Record<string, string>[]) {
    assert.equal((await post(headers)).status, 403, JSON.stringify(headers))
  }
  assert.equal((await browser.ask(`${pinfold.url}/ui/`)).status, 200)
  assert.deepEqual([(await browser.ask(url)).status, (await browser.ask(url)).headers.get('allow')], [405, 'POST'])
  assert.equal((await post({ origin: pinfold.url })).status, 200)
  assert.equal((await browser.ask(`${pinfold.url}/ui/`)).status, 303)
})

test('signing out ends the session here, and redirects to the sign-out page of the provider', async () => {
  const { pinfold, company } = scene
  scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const cookie = browser.cookies(pinfold.url).get('pinfold')!
  const shown = await browser.submit(`${pinfold.url}/ui/signout`, {})
  assert.equal(browser.cookies(pinfold.url).has('pinfold'), false)
  const there = new URL(/url=(.*)$/.exec(shown.headers.get('refresh')!)![1]!)
  assert.equal(there.origin, company.url)
  assert.ok(there.searchParams.get('id_token_hint'))
  const asked = await browser.go(there.href)
  assert.equal(asked.status, 200, asked.text)
  browser.cookies(pinfold.url).set('pinfold', cookie)
  assert.equal((await browser.ask(`${pinfold.url}/ui/`)).status, 303)
})

test('a person can end other sessions on the account page', async () => {
  const { pinfold } = scene
  scene.somebody()
  const client = await scene.client()
  const browser = openBrowser()
  await scene.enter(browser)
  const page = await browser.ask(`${pinfold.url}/ui/sessions`)
  const [uid, ...more] = [...page.text.matchAll(/name="uid" value="([^"]+)"/g)].map(([, one]) => one!)
  assert.equal(more.length, 0)
  await browser.submit(`${pinfold.url}/ui/sessions/end`, { uid: uid! })
  assert.equal((await client.get('/auth/v1/ok')).status, 401)
  assert.equal((await browser.submit(`${pinfold.url}/ui/sessions/end`, { uid: uid! })).status, 404)
})

test('a browser session lasts eight hours without use, and at most a day', async () => {
  const { pinfold } = scene
  scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const begun = time
  const ask = async (hours: number) => {
    time = begun + hours * 60 * 60 * second
    return (await browser.ask(`${pinfold.url}/ui/`)).status
  }
  assert.deepEqual([await ask(7.9), await ask(15.8), await ask(23.7), await ask(24.1)], [200, 200, 200, 303])
  time = begun
  scene.somebody()
  await scene.enter(browser)
  assert.equal(await ask(8.1), 303)
})

test('a sign-in sends the code of an invitation outside of the URL', async () => {
  const { pinfold, org } = scene
  const { uid } = scene.somebody()
  const { code } = await pinfold.seed.invite(org.uid, roleUids.editor)
  const browser = openBrowser()
  assert.equal((await browser.ask(`${pinfold.url}/ui/invite`)).status, 200)
  assert.equal((await browser.submit(`${pinfold.url}/ui/invite`, { code: 'no code!' })).status, 400)
  const next = await browser.submit(`${pinfold.url}/ui/invite`, { code })
  assert.doesNotMatch(next.url + next.text, new RegExp(code.slice(0, 40)))
  assert.equal((await scene.accept(browser, code)).status, 200)
  const { roleBindings } = ok(await pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`))
  assert.deepEqual(roleBindings.map((one: Json) => one.role.name).sort(), ['editor', 'viewer'])
  assert.equal(browser.cookies(pinfold.url).has('pinfold-invite'), false)
})

test("the operator's browser gets in once with a code, for an hour", async () => {
  const { pinfold } = scene
  const make = async () => ok(await pinfold.operator.post('/control/v1/consoleCodes')).code as string
  const code = await make()
  const browser = openBrowser()
  assert.equal((await browser.submit(`${pinfold.url}/ui/enter`, { code: 'x' })).status, 403)
  const entered = await browser.submit(`${pinfold.url}/ui/enter`, { code })
  assert.deepEqual([entered.status, entered.url], [200, `${pinfold.url}/ui/`])
  assert.match(entered.text, /data-name="Operator"/)
  assert.equal((await openBrowser().submit(`${pinfold.url}/ui/enter`, { code })).status, 403)
  const late = await make()
  const begun = time
  time = begun + 301 * second
  assert.equal((await openBrowser().submit(`${pinfold.url}/ui/enter`, { code: late })).status, 403)
  time = begun + 61 * 60 * second
  assert.equal((await browser.ask(`${pinfold.url}/ui/`)).status, 303)
  const person = await pinfold.as((await pinfold.seed.person()).uid)
  assertError(await person.post('/control/v1/consoleCodes'), 403, 7, 'PERMISSION_DENIED')
})

test('the owner role and provider changes require a recent sign-in of a person, but not of workloads or the operator', async () => {
  const { pinfold, org, idp } = scene
  const { uid } = scene.somebody()
  await pinfold.seed.binding(org.uid, uid, roleUids.owner)
  const old = await scene.client({ create_refresh_token: 'true', max_age: '0' })
  const friend = await pinfold.seed.identity(org.uid)
  const binding = { identityUid: friend.uid, roleUid: roleUids.owner }
  const body = { name: 'renamed' }
  time += 601 * second
  for (const answer of [
    await old.post(`/iam/v2/roleBindings/${org.uid}`, binding),
    await old.post(`/iam/v2/groupInvites/${org.uid}`, { roleUid: roleUids.owner, ttl: '60s' }),
    await old.patch(`/iam/v2/identityProviders/${idp.uid}`, body),
    await old.delete(`/iam/v2/identityProviders/${idp.uid}`),
    await old.post(`/iam/v2/identityProviders/${idp.uid}:generateScimToken`, {}),
  ]) {
    assertError(answer, 400, 9, 'REAUTHENTICATION_REQUIRED')
  }
  ok(await old.post(`/iam/v2/roleBindings/${org.uid}`, { ...binding, roleUid: roleUids.viewer }))
  time = Date.now()
  const fresh = await scene.client({ max_age: '0' })
  assert.ok(claimsOf(fresh.token!).auth_time * 1000 > time - 60 * second)
  ok(await fresh.post(`/iam/v2/roleBindings/${org.uid}`, binding))
  const owner = await pinfold.seed.member(org.uid, roleUids.owner)
  const another = await pinfold.seed.identity(org.uid)
  time += 601 * second
  ok(
    await (await pinfold.as(owner.uid)).post(`/iam/v2/roleBindings/${org.uid}`, {
      ...binding,
      identityUid: another.uid,
    }),
  )
})

test('deleting a provider ends its sessions', async () => {
  const { pinfold, company, org, oidc } = scene
  const { uid } = await pinfold.seed.provider(org.uid, company.url, { oidc })
  company.register([`${pinfold.url}/oauth/callback`, `${pinfold.url}/oauth/callback/${uid}`])
  scene.somebody()
  const client = await scene.client({ idp_id: uid })
  ok(await pinfold.operator.delete(`/iam/v2/identityProviders/${uid}`))
  assertError(await client.get('/auth/v1/ok'), 401, 16, 'UNAUTHENTICATED')
})

test('starting a new session ends the oldest of a hundred sessions', async () => {
  const { pinfold } = scene
  const enter = async () => {
    const { code } = ok(await pinfold.operator.post('/control/v1/consoleCodes'))
    const browser = openBrowser()
    await browser.submit(`${pinfold.url}/ui/enter`, { code })
    time += 1
    return browser
  }
  const browsers = []
  for (let i = 0; i < 101; i++) browsers.push(await enter())
  const statuses = await Promise.all(browsers.slice(0, 2).map((one) => one.ask(`${pinfold.url}/ui/`)))
  assert.deepEqual(
    statuses.map(({ status }) => status),
    [303, 200],
  )
})

test('deletes expired sessions and sign-in attempts', async () => {
  const { pinfold } = scene
  const { db } = pinfold.app
  const count = async (table: 'sessions' | 'sign_in_attempts') => {
    const query =
      table === 'sessions' ? sql`SELECT count(*) AS n FROM sessions` : sql`SELECT count(*) AS n FROM sign_in_attempts`
    return (await db.get<{ n: number }>(query))!.n
  }
  const lease = { databaseTime: (now: Date) => now, inBatches: (work: never) => db.tx(work) }
  await openBrowser().ask(`${pinfold.url}/ui/signin/start?idp=company`)
  assert.ok((await count('sessions')) > 0 && (await count('sign_in_attempts')) > 0)
  time += 91 * day
  for (let i = 0; i < 3; i++) await sweepSessionsJob.run(pinfold.app, lease as never)
  assert.deepEqual([await count('sessions'), await count('sign_in_attempts')], [0, 0])
})
