// Twelve ways to tamper with a sign-in. Each is refused and creates no session. The same sign-in without the change succeeds.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { answerOf, assertRefused, begin, clientId, finish, loopback } from '../support/answered-sign-in.ts'
import { openBrowser, type Shown } from '../support/browser.ts'
import { claimsOf, searchOf } from '../support/exchange.ts'
import { assertDenied, assertError, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

type Site = { org: string; idp: string; issuer: FakeIssuer }

let pinfold: Pinfold
let [acme, mallory]: [Site, Site] = [] as never
let time = Date.now()
let made = 0

before(async () => {
  const [honest, evil] = [await startIssuer(), await startIssuer()]
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    clock: () => new Date(time),
    oidcProviders: [{ issuer: honest.url, audience: clientId, label: 'Everybody', name: 'everybody' }],
    allowSelfRegistration: true,
  })
  const site = async (issuer: FakeIssuer): Promise<Site> => {
    const org = (await pinfold.seed.group()).uid
    return { org, idp: (await pinfold.seed.provider(org, issuer.url)).uid, issuer }
  }
  ;[acme, mallory] = [await site(honest), await site(evil)]
})
beforeEach(() => {
  time = Date.now()
})
after(async () => {
  for (const one of [pinfold, acme.issuer, mallory.issuer]) await one[Symbol.asyncDispose]()
})

/** Person who has never signed in here. */
const somebody = (): string => `tampered-${made++}`

async function sessionsOf(sub: string, issuer = acme.issuer): Promise<number> {
  const uid = personUid(issuer.url, sub)
  const row = await pinfold.app.db.get<{ n: number }>(sql`
    SELECT count(*) AS n FROM sessions WHERE identity_uid = ${uid}`)
  return row!.n
}

/** Token of a sign-in without tampering. */
async function getsIn(sub: string, parameters: Json = {}): Promise<Json> {
  const answer = answerOf(await finish(await begin(pinfold, acme, parameters), { sub }))
  assert.equal(answer.error, undefined)
  assert.equal(claimsOf(answer.token).sub, personUid(acme.issuer.url, sub))
  return answer
}

/** Asserts that an ID token with these claims is refused, and that the program gets an error. */
async function assertClaims(changes: Record<string, Json>): Promise<void> {
  for (const [what, claims] of Object.entries(changes)) {
    const sub = somebody()
    assertRefused(await finish(await begin(pinfold, acme), { sub, ...claims }), '401', what)
    assert.equal(await sessionsOf(sub), 0, what)
    await getsIn(sub)
  }
}

/** Asserts that a browser that did not start the sign-in gets an error. */
function assertUnknown({ status, headers }: Shown, what: string): void {
  assert.deepEqual([status, headers.get('location')], [401, null], what)
}

test('1: refuses the state of another sign-in or browser, or a missing state', async () => {
  const sub = somebody()
  const begun = await begin(pinfold, acme)
  const other = await begin(pinfold, acme)
  assertUnknown(await finish({ ...begun, state: 'made-up' }, { sub }), 'made up')
  assertUnknown(await finish(begun, { sub }, { state: '' }), 'none')
  assertUnknown(await finish(begun, { sub }, { state: [begun.state, other.state] }), 'two')
  assertUnknown(await finish({ ...begun, browser: other.browser }, { sub }), 'another browser')
  assertUnknown(await finish({ ...begun, browser: openBrowser() }, { sub }), 'a browser that has begun nothing')
  // The nonce belongs to another sign-in than the state.
  assertRefused(await finish({ ...begun, state: other.state, browser: other.browser }, { sub }), '401', 'exchanged')
  assert.equal(await sessionsOf(sub), 0)
  assert.equal(answerOf(await finish(begun, { sub })).error, undefined)
})

test('2: refuses the nonce of another sign-in, or a missing nonce', async () => {
  const other = await begin(pinfold, acme)
  await assertClaims({ another: { nonce: other.nonce }, none: { nonce: undefined }, 'no text': { nonce: 1 } })
})

test('3: refuses an issuer other than the provider, in the ID token and in the response', async () => {
  await assertClaims({
    another: { iss: mallory.issuer.url },
    'spelled otherwise': { iss: `${acme.issuer.url}/` },
    none: { iss: undefined },
  })
  const sub = somebody()
  assertRefused(await finish(await begin(pinfold, acme), { sub }, { iss: mallory.issuer.url }), '401', 'of the answer')
  const begun = await begin(pinfold, acme)
  const signed = { iss: acme.issuer.url, sub, aud: clientId, nonce: begun.nonce }
  assertRefused(await finish(begun, {}, {}, await mallory.issuer.token(signed)), '401', 'signed by another')
  assert.equal(await sessionsOf(sub), 0)
})

test('4: refuses an audience other than this server', async () => {
  await assertClaims({
    another: { aud: 'another' },
    none: { aud: undefined },
    'party of another': { aud: [clientId, 'another'], azp: 'another' },
  })
})

test('5: refuses a code that was used before', async () => {
  const sub = somebody()
  const begun = await begin(pinfold, acme)
  assert.equal(answerOf(await finish(begun, { sub })).error, undefined)
  assert.equal(await sessionsOf(sub), 1)
  assertUnknown(await finish(begun, { sub }), 'with its state')
  // With the state of a new sign-in, the code reaches the provider, which reports that the code was used before.
  const { browser, callback, state } = await begin(pinfold, acme)
  acme.issuer.answer(async () => ({ error: 'invalid_grant' }))
  assertRefused(await browser.ask(`${callback}?${searchOf({ code: 'c', state })}`), '401', 'with another state')
  assert.equal(await sessionsOf(sub), 1)
})

test('6: refuses an ID token that was used before', async () => {
  const sub = somebody()
  const first = await begin(pinfold, acme)
  const token = await acme.issuer.token({ sub, aud: clientId, nonce: first.nonce })
  assert.equal(answerOf(await finish(first, {}, {}, token)).error, undefined)
  assertRefused(await finish(await begin(pinfold, acme), {}, {}, token), '401', 'again')
  assert.equal(await sessionsOf(sub), 1)
})

test("7: one provider's answer at another provider's address", async () => {
  const sub = somebody()
  const begun = await begin(pinfold, mallory)
  const callback = begun.callback.replace(mallory.idp, acme.idp)
  assert.notEqual(callback, begun.callback)
  const asked = () => mallory.issuer.requests.filter((path) => path === '/token').length
  const before = asked()
  assertRefused(await finish({ ...begun, callback, issuer: acme.issuer }, { sub }), '401', 'mixed up')
  assert.equal(asked(), before, 'the other provider has been given the code')
  assert.equal(await sessionsOf(sub), 0)
  assert.equal(answerOf(await finish(await begin(pinfold, mallory), { sub })).error, undefined)
})

test('8: refuses a redirect to another machine', async () => {
  const ask = (redirect: string, parameters: Json) =>
    openBrowser().ask(`${pinfold.url}/oauth?${searchOf({ ...parameters, idp_id: acme.idp })}${redirect}`)
  const elsewhere = [
    'https://evil.example/',
    'http://localhost.evil.example/',
    'http://localhost@evil.example/',
    '//evil.example/',
  ]
  for (const url of elsewhere) {
    const to = encodeURIComponent(url)
    const program = await ask(`&redirect=${to}`, { exit: 'redirect' })
    const client = await ask(`&redirect_uri=${to}`, {
      response_type: 'code',
      client_id: clientId,
      code_challenge: 'a'.repeat(43),
      code_challenge_method: 'S256',
    })
    for (const { status, headers } of [program, client]) {
      assert.deepEqual([status, headers.get('location')], [400, null], url)
    }
    // The callback redirects to a page of this server.
    const browser = openBrowser()
    const start = await browser.ask(`${pinfold.url}/ui/signin/start?idp=${acme.idp}&return=${to}`)
    const sent = new URL(start.headers.get('location')!).searchParams
    const [state, nonce, callback] = ['state', 'nonce', 'redirect_uri'].map((name) => sent.get(name)!)
    const shown = await finish({ browser, state: state!, nonce: nonce!, callback: callback!, issuer: acme.issuer })
    assert.equal(new URL(shown.headers.get('location')!, pinfold.url).origin, pinfold.url, url)
  }
  assert.equal((await ask(`&redirect=${encodeURIComponent(loopback)}`, { exit: 'redirect' })).status, 302)
})

test('9: refuses a session ID chosen by the attacker (session fixation)', async () => {
  const browser = openBrowser()
  const jar = browser.cookies(pinfold.url)
  const theirs = openBrowser()
  const enter = async (of: typeof browser, sub: string): Promise<void> => {
    const start = await of.ask(`${pinfold.url}/ui/signin/start?${searchOf({ idp: acme.idp, return: '/ui/' })}`)
    const sent = new URL(start.headers.get('location')!).searchParams
    const [state, nonce, callback] = ['state', 'nonce', 'redirect_uri'].map((name) => sent.get(name)!)
    const begun = { browser: of, state: state!, nonce: nonce!, callback: callback!, issuer: acme.issuer }
    assert.equal((await finish(begun, { sub })).status, 303)
  }
  await enter(theirs, somebody())
  const planted = theirs.cookies(pinfold.url).get('pinfold')!
  jar.set('pinfold', planted)
  const victim = somebody()
  await enter(browser, victim)
  assert.notEqual(jar.get('pinfold'), planted)
  assert.equal(await sessionsOf(victim), 1)
  // The attacker whose session ID was set does not become the victim either.
  const page = await theirs.go(`${pinfold.url}/ui/`)
  assert.ok(!page.text.includes(victim), 'the planted session has become that of the victim')
})

test('10: refuses a refresh token that was used before', async () => {
  const { refresh_token: first, token } = await getsIn(somebody(), { create_refresh_token: 'true' })
  const refresh = (text: string) =>
    pinfold.withToken(text).post(`/sts/exchange_refresh_token?${searchOf({ aud: pinfold.url })}`)
  const second = ok(await refresh(first)).refreshToken.token
  const third = ok(await refresh(second)).refreshToken.token
  assertError(await refresh(first), 401, 16, 'UNAUTHENTICATED')
  // One of two users of a token must have stolen it, so the session ends for both.
  assertError(await refresh(third), 401, 16, 'UNAUTHENTICATED')
  assert.equal((await pinfold.withToken(token).get('/auth/v1/ok')).status, 401)
})

test('11: refuses expired values', async () => {
  const now = Math.floor(Date.now() / 1000)
  await assertClaims({
    'ID token': { iat: now - 7200, exp: now - 3600 },
    'ID token of tomorrow': { iat: now + 3600, nbf: now + 3600, exp: now + 7200 },
    'ID token without an end': { exp: undefined },
  })
  const sub = somebody()
  const late = await begin(pinfold, acme)
  time += 601_000
  assertUnknown(await finish(late, { sub }), 'a sign-in that took too long')
  assert.equal(await sessionsOf(sub), 0)
  time = Date.now()
  const { refresh_token } = await getsIn(sub, { create_refresh_token: 'true' })
  time += 31 * 24 * 60 * 60_000
  const path = `/sts/exchange_refresh_token?${searchOf({ aud: pinfold.url })}`
  assertError(await pinfold.withToken(refresh_token).post(path), 401, 16, 'UNAUTHENTICATED')
})

test('12: refuses another organization than that of the provider', async () => {
  const sub = somebody()
  const uid = personUid(mallory.issuer.url, sub)
  // The person is an owner elsewhere, and the attacker's provider can claim to have signed in any person.
  await pinfold.seed.binding(acme.org, uid, roleUids.owner)
  const identity = await pinfold.seed.identity(acme.org, {
    claimMatch: { issuer: mallory.issuer.url, subject: sub, audience: clientId },
  })
  const { code } = await pinfold.seed.invite(acme.org, roleUids.owner)
  const atMallory = (parameters: Json) => begin(pinfold, mallory, parameters)
  assertRefused(await finish(await atMallory({ identity: identity.uid }), { sub }), '403', 'an identity there')
  assertRefused(await finish(await atMallory({ invite: code }), { sub }), '403', 'an invite there')
  assertRefused(await finish(await atMallory({ scope: acme.org }), { sub }), '403', 'a scope there')
  const { token, error } = answerOf(await finish(await atMallory({}), { sub }))
  assert.equal(error, undefined)
  const client = pinfold.withToken(token)
  ok(await client.get('/auth/v1/ok'))
  assertDenied(await client.get(`/iam/v2/groups/${acme.org}`))
  assert.deepEqual(
    ok(await client.get('/iam/v2/groups')).groups.filter(({ uid: one }: Json) => one === acme.org),
    [],
  )
  // The organization in the token cannot be changed.
  const [head, body, signature] = token.split('.')
  const changed = JSON.parse(Buffer.from(body!, 'base64url').toString())
  const forged = Buffer.from(JSON.stringify({ ...changed, org: acme.org })).toString('base64url')
  assert.equal((await pinfold.withToken(`${head}.${forged}.${signature}`).get('/auth/v1/ok')).status, 401)
})
