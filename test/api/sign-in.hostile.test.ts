// Refused sign-ins: answers that were tampered with, and owners whose provider makes arbitrary claims.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { answerOf, assertRefused, begin, clientId, finish, loopback } from '../support/answered-sign-in.ts'
import { type Browser, openBrowser, type Shown } from '../support/browser.ts'
import { claimsOf, searchOf } from '../support/exchange.ts'
import { assertError, assertNotFound, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { noMinutePasses } from '../support/times.ts'

let honest: FakeIssuer
let evil: FakeIssuer
let pinfold: Pinfold
let time = Date.now()
/** Each with a provider of its own. */
let [acme, mallory]: [Site, Site] = [] as never
type Site = { org: string; idp: string; issuer: FakeIssuer }

before(async () => {
  ;[honest, evil] = [await startIssuer(), await startIssuer()]
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    allowOrganizationCreation: true,
    clock: () => new Date(time),
    oidcProviders: [{ issuer: honest.url, audience: clientId, label: 'Everybody', name: 'everybody' }],
    allowSelfRegistration: true,
  })
  const site = async (issuer: FakeIssuer): Promise<Site> => {
    const org = await pinfold.seed.group()
    const idp = await pinfold.seed.provider(org.uid, issuer.url)
    return { org: org.uid, idp: idp.uid, issuer }
  }
  acme = await site(honest)
  mallory = await site(evil)
})
beforeEach(() => {
  time = Date.now()
})
after(async () => {
  for (const one of [pinfold, honest, evil]) await one[Symbol.asyncDispose]()
})

async function signIn(site: { idp: string; issuer: FakeIssuer }, claims: Json = {}, parameters: Json = {}) {
  const { token, error, refresh_token } = answerOf(await finish(await begin(pinfold, site, parameters), claims))
  assert.equal(error, undefined)
  return { token: token as string, refreshToken: refresh_token as string, client: pinfold.withToken(token) }
}

test('a valid provider response signs the person in', async () => {
  const { token } = await signIn(acme)
  assert.equal(claimsOf(token).sub, personUid(honest.url, 'somebody'))
})

test('refuses an ID token for another sign-in, issuer, audience or time', async () => {
  const now = Math.floor(Date.now() / 1000)
  for (const [what, claims] of [
    ['nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['issuer', { iss: evil.url }],
    ['audience', { aud: 'another' }],
    ['authorized party', { aud: [clientId, 'another'], azp: 'another' }],
    ['expired', { exp: now - 3600, iat: now - 7200 }],
    ['not yet', { nbf: now + 3600 }],
  ] as [string, Json][]) {
    assertRefused(await finish(await begin(pinfold, acme), claims), '401', what)
  }
})

test('refuses an ID token without a signature of the issuer, although it comes from the URL of the issuer', async () => {
  const begun = await begin(pinfold, acme)
  const forged = await evil.token({ iss: honest.url, sub: 'somebody', aud: clientId, nonce: begun.nonce })
  assertRefused(await finish(begun, {}, {}, forged), '401', 'another key')
})

test('refuses an ID token of an earlier sign-in', async () => {
  const first = await begin(pinfold, acme)
  const token = await honest.token({ sub: 'somebody', aud: clientId, nonce: first.nonce })
  assert.equal(answerOf(await finish(first, {}, {}, token)).error, undefined)
  assertRefused(await finish(await begin(pinfold, acme), {}, {}, token), '401', 'replayed')
})

test('a state is valid once, for ten minutes, in the browser that started the sign-in', async () => {
  const begun = await begin(pinfold, acme)
  const shownTo = async (browser: Browser, state = begun.state) => finish({ ...begun, browser, state })
  const { browser: another } = await begin(pinfold, acme)
  for (const [what, shown] of [
    ['a browser without a sign-in', await shownTo(openBrowser())],
    ['another browser', await shownTo(another)],
    ['another state', await shownTo(begun.browser, 'another')],
    ['no state', await finish(begun, {}, { state: '' })],
    ['two states', await finish(begun, {}, { state: [begun.state, 'x'] })],
  ] as [string, Shown][]) {
    assert.deepEqual([shown.status, shown.headers.get('location')], [401, null], what)
  }
  assert.equal(answerOf(await shownTo(begun.browser)).error, undefined)
  const again = await shownTo(begun.browser)
  assert.deepEqual([again.status, again.headers.get('location')], [401, null], 'replayed code')

  const late = await begin(pinfold, acme)
  time += 601_000
  assert.equal((await finish(late)).status, 401)
})

test("one provider's answer is not taken for another's", async () => {
  // The attacker sends the person to the honest provider. The code then arrives at the callback of the honest provider.
  const begun = await begin(pinfold, mallory)
  const elsewhere = { ...begun, callback: begun.callback.replace(mallory.idp, acme.idp), issuer: honest }
  assert.notEqual(elsewhere.callback, begun.callback)
  const asked = () => evil.requests.filter((path) => path === '/token').length
  const before = asked()
  assertRefused(await finish(elsewhere), '401', 'mixed up')
  assert.equal(asked(), before, "the honest provider's code has been handed to the other one")
  assertRefused(await finish(await begin(pinfold, acme), {}, { iss: evil.url }), '401', 'another iss')
})

test('providers that send the iss parameter share a callback, and must send it', async () => {
  await using named = await startIssuer()
  named.metadata.authorization_response_iss_parameter_supported = true
  const { uid } = await pinfold.seed.provider(acme.org, named.url)
  const site = { idp: uid, issuer: named }
  const begun = await begin(pinfold, site)
  assert.equal(begun.callback, `${pinfold.url}/oauth/callback`)
  assertRefused(await finish(begun), '401', 'no iss')
  assertRefused(await finish(await begin(pinfold, site), {}, { iss: honest.url }), '401', 'iss of another')
  assert.equal(answerOf(await finish(await begin(pinfold, site), {}, { iss: named.url })).error, undefined)
})

test('never redirects to another machine', async () => {
  for (const redirect of [
    'https://evil.example.com/',
    'http://evil.example.com/',
    'http://localhost.evil.example.com/',
    'http://localhost@evil.example.com/',
    'http://user@localhost/',
    'https://localhost/',
    'http://127.0.0.2/',
    'http://localhost/#a',
    'javascript:alert(1)',
    '//evil.example.com',
    '',
  ]) {
    const query = searchOf({ exit: 'redirect', redirect, idp_id: acme.idp })
    const shown = await openBrowser().ask(`${pinfold.url}/oauth?${query}`)
    assert.deepEqual([shown.status, shown.headers.get('location')], [400, null], redirect)
  }
  for (const good of ['http://localhost:1/', 'http://127.0.0.1:65535/x?token=true', 'http://[::1]:8080/']) {
    const query = searchOf({ exit: 'redirect', redirect: good, idp_id: acme.idp })
    assert.equal((await openBrowser().ask(`${pinfold.url}/oauth?${query}`)).status, 302, good)
  }
})

test('a sign-in does not continue the session of another person, and ignores session cookies set by others', async () => {
  const browser = openBrowser()
  const jar = browser.cookies(pinfold.url)
  jar.set('pinfold', 'fixed-by-somebody-else')
  const enter = async (sub: string) => {
    const start = await browser.ask(`${pinfold.url}/ui/signin/start?${searchOf({ idp: acme.idp, return: '/ui/' })}`)
    const sent = new URL(start.headers.get('location')!)
    const [state, nonce, callback] = ['state', 'nonce', 'redirect_uri'].map((name) => sent.searchParams.get(name)!)
    return finish({ browser, state: state!, nonce: nonce!, callback: callback!, issuer: honest }, { sub })
  }
  assert.equal((await enter('first')).status, 303)
  const first = jar.get('pinfold')!
  assert.notEqual(first, 'fixed-by-somebody-else')
  assert.equal((await enter('second')).status, 303)
  assert.notEqual(jar.get('pinfold'), first)
  // The previous session of the browser has ended.
  jar.set('pinfold', first)
  assert.equal((await browser.ask(`${pinfold.url}/ui/`)).headers.get('location'), '/ui/signin')
})

test("what an owner's provider says reaches nothing outside of the organization", async () => {
  // The attacker has a client at the same provider, and so has ID tokens of other people for that client.
  const shared = { ...mallory, idp: (await pinfold.seed.provider(mallory.org, honest.url)).uid, issuer: honest }
  const victim = await signIn({ idp: '', issuer: honest }, { sub: 'victim' }, { connection: 'everybody' })
  const { sub: uid } = claimsOf(victim.token)
  for (const organization of [acme.org, mallory.org]) await pinfold.seed.binding(organization, uid, roleUids.owner)
  const other = await pinfold.seed.group()
  const owner = await pinfold.as((await pinfold.seed.member(other.uid, roleUids.owner)).uid)
  const { uid: waiting } = ok(
    await owner.post(`/iam/v2/roleBindings/${other.uid}`, { identityUid: uid, roleUid: roleUids.viewer }),
  )
  const wide = await signIn({ idp: '', issuer: honest }, { sub: 'victim' }, { connection: 'everybody' })
  ok(await wide.client.get(`/iam/v2/groups/${acme.org}`))

  const { client, token, refreshToken } = await signIn(shared, { sub: 'victim' }, { create_refresh_token: 'true' })
  assert.equal(claimsOf(token).sub, uid)
  const refreshed = ok(await pinfold.withToken(refreshToken).post(`/sts/exchange_refresh_token?aud=${pinfold.url}`))
  for (const one of [client, pinfold.withToken(refreshed.token.token)]) {
    ok(await one.get(`/iam/v2/groups/${mallory.org}`))
    assertError(await one.get(`/iam/v2/groups/${acme.org}`), 403, 7, 'PERMISSION_DENIED')
    assert.deepEqual(
      ok(await one.get('/iam/v2/groups')).groups.map((group: Json) => group.uid),
      [mallory.org],
    )
    const me = ok(await one.get('/auth/v1/ok'))
    assert.deepEqual(
      me.capabilities.map(({ group }: Json) => group.id),
      [mallory.org],
    )
    assert.deepEqual(ok(await one.get('/control/v1/pendingBindings')).pendingBindings, [])
    const accept = await one.post(`/control/v1/pendingBindings/${waiting}:accept`)
    assertNotFound(accept, 'iam.pinfold.dev/RoleBinding', waiting)
    assertError(await one.post('/iam/v2/groups/', { name: 'mallorys-own' }), 403, 7, 'PERMISSION_DENIED')
    const { sessions } = ok(await one.get('/control/v1/sessions'))
    assert.ok(sessions.length > 0 && sessions.every((session: Json) => session.organization === mallory.org))
  }
  // The registry refuses the token too.
  const { host } = new URL(pinfold.url)
  const atRegistry = await signIn(shared, { sub: 'victim' }, { audience: host })
  const basic = Buffer.from(`_token:${atRegistry.token}`).toString('base64')
  const asked = await fetch(`${pinfold.url}/token?service=${host}&scope=repository:x/y:pull`, {
    headers: { authorization: `Basic ${basic}` },
  })
  const issued = claimsOf(((await asked.json()) as Json).token)
  assert.equal(issued.org, mallory.org)
})

test('does not redeem an invitation of another organization, and a verified email address counts nowhere else', async () => {
  const { code } = await pinfold.seed.invite(acme.org, roleUids.owner)
  const shown = await finish(await begin(pinfold, mallory, { invite: code }), { sub: 'thief', email_verified: true })
  assertRefused(shown, '403', 'invite')
  const uid = personUid(evil.url, 'thief')
  assert.equal((await pinfold.operator.get(`/iam/v2/identities/${uid}`)).status, 404)

  await signIn(mallory, { sub: 'thief', email: 'ceo@acme.example', email_verified: true })
  assert.partialDeepStrictEqual(ok(await pinfold.operator.get(`/iam/v2/identities/${uid}`)), {
    email: '',
    emailUnverified: 'ceo@acme.example',
  })
})

test('a provider can sign out only people whom it signed in', async () => {
  const shared = { idp: (await pinfold.seed.provider(mallory.org, honest.url)).uid, issuer: honest }
  const { client } = await signIn(acme, { sub: 'victim-2', sid: 'upstream' })
  const claims = {
    aud: clientId,
    sub: 'victim-2',
    jti: 'j-1',
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  }
  const logOut = async (idp: string, token: string) =>
    fetch(`${pinfold.url}/oauth/backchannel/${idp}`, {
      method: 'POST',
      body: new URLSearchParams({ logout_token: token }),
    })
  const token = await honest.token(claims, { typ: 'logout+jwt' })
  assert.equal((await logOut(shared.idp, token)).status, 200)
  ok(await client.get('/auth/v1/ok'))
  for (const [what, text] of [
    ['another key', await evil.token({ ...claims, iss: honest.url }, { typ: 'logout+jwt' })],
    ['another audience', await honest.token({ ...claims, aud: 'x' })],
    ['a nonce', await honest.token({ ...claims, nonce: 'n' })],
    ['no event', await honest.token({ ...claims, events: {} })],
    ['no jti', await honest.token({ ...claims, jti: undefined })],
    ['nobody', await honest.token({ ...claims, sub: undefined })],
    ['old', await honest.token({ ...claims, iat: Math.floor(Date.now() / 1000) - 3600 })],
    ['no token', 'x'],
  ] as [string, string][]) {
    assert.equal((await logOut(acme.idp, text)).status, 400, what)
  }
  ok(await client.get('/auth/v1/ok'))
  assert.equal((await logOut(acme.idp, token)).status, 200)
  assertError(await client.get('/auth/v1/ok'), 401, 16, 'UNAUTHENTICATED')
  assert.equal((await logOut(acme.idp, token)).status, 400, 'taken before')

  const bySid = await signIn(acme, { sub: 'victim-2', sid: 'upstream-2' })
  const another = await signIn(acme, { sub: 'victim-2', sid: 'upstream-3' })
  const sid = await honest.token({ ...claims, sub: undefined, sid: 'upstream-2', jti: 'j-2' })
  assert.equal((await logOut(acme.idp, sid)).status, 200)
  assert.equal((await bySid.client.get('/auth/v1/ok')).status, 401)
  ok(await another.client.get('/auth/v1/ok'))
})

test('a logout by a provider can be repeated until it succeeds', async () => {
  const { client } = await signIn(acme, { sub: 'victim-3', sid: 'upstream-4' })
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const claims = { aud: clientId, sub: 'victim-3', jti: 'j-3', events }
  const token = await honest.token(claims, { typ: 'logout+jwt' })
  const logOut = async () => {
    const body = new URLSearchParams({ logout_token: token })
    return (await fetch(`${pinfold.url}/oauth/backchannel/${acme.idp}`, { method: 'POST', body })).status
  }
  const rename = (from: string, to: string) => pinfold.app.db.tx((tx) => tx.run(renaming(from, to)))
  await rename('audit_log', 'audit_log_away')
  try {
    assert.ok((await logOut()) >= 500)
  } finally {
    await rename('audit_log_away', 'audit_log')
  }
  ok(await client.get('/auth/v1/ok'))
  assert.equal(await logOut(), 200)
  assert.equal((await client.get('/auth/v1/ok')).status, 401)
  assert.equal(await logOut(), 400)
})

function renaming(from: string, to: string) {
  return sql([`ALTER TABLE ${from} RENAME TO ${to}`] as unknown as TemplateStringsArray)
}

test('limits the sign-in endpoints for each network address', async () => {
  await using few = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    ...noMinutePasses,
    exchangesPerSource: 3,
    oidcProviders: [{ issuer: honest.url, audience: clientId, label: 'Everybody', name: 'everybody' }],
  })
  const query = searchOf({ exit: 'redirect', redirect: loopback })
  const doors = ['/orgcheck?name=a', `/oauth?${query}`, '/oauth/callback/everybody?state=x', '/ui/signin?org=a']
  for (const path of doors) assert.notEqual((await openBrowser().ask(few.url + path)).status, 500, path)
  for (const path of doors) {
    const shown = await openBrowser().ask(few.url + path)
    assert.deepEqual([shown.status, Number(shown.headers.get('retry-after')) > 0], [429, true], path)
  }
})
