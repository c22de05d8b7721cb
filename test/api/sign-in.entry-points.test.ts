// Other entry points for the sign-in of a person: token exchange, registry passwords, registration and invitations.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { endUntrustedSessions } from '#domains/iam/iam.job.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { busy } from '#lib/errors.ts'
import { refusalOf } from '../support/answers.ts'
import { runJob } from '../support/background-jobs.ts'
import { openBrowser } from '../support/browser.ts'
import { claimsOf, searchOf } from '../support/exchange.ts'
import { assertBlocked, assertError, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Answer, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { linkOf } from '../support/sign-in.ts'

const [atSettings, atOrg] = ['client of the settings', 'client of the organization']
const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'
const loopback = 'http://localhost:4711/callback'

let issuer: FakeIssuer
let pinfold: Pinfold
let org: string
let idp: string
let made = 0
let time = Date.now()

before(async () => {
  issuer = await startIssuer()
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    clock: () => new Date(time),
    oidcProviders: [{ issuer: issuer.url, audience: atSettings, label: 'Everybody', name: 'everybody' }],
  })
  org = (await pinfold.seed.group('', { name: 'doors.example', verified: true, kind: 'ORG_KIND_CUSTOMER' })).uid
  const oidc = { issuer: issuer.url, clientId: atOrg, clientSecret: 's', groupsClaim: 'groups' }
  idp = (await pinfold.seed.provider(org, issuer.url, { oidc })).uid
})
beforeEach(() => {
  time = Date.now()
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

type Person = { sub: string; uid: string }
const somebody = (): Person => {
  const sub = `door-${made++}`
  return { sub, uid: personUid(issuer.url, sub) }
}

/** Signs in for a program, and returns the parameters of the redirect from the provider. */
async function signIn(named: Json, claims: Json): Promise<URLSearchParams> {
  const shown = await signInPage(named, claims)
  const location = shown.headers.get('location') ?? ''
  assert.ok(location.startsWith(loopback), shown.text)
  return new URL(location).searchParams
}

async function signInPage(named: Json, claims: Json, browser = openBrowser()) {
  const query = searchOf({ exit: 'redirect', redirect: loopback, ...named })
  let first = await browser.ask(`${pinfold.url}/oauth?${query}`)
  if ('invite' in named) first = await browser.ask(pinfold.url + linkOf(first, 'Join'))
  return comeBack(browser, first.headers.get('location')!, claims)
}

/** The provider redirects the browser back at once. `meanwhile` runs while the server requests the token. */
async function comeBack(browser: ReturnType<typeof openBrowser>, sentTo: string, claims: Json, meanwhile = () => {}) {
  const sent = new URL(sentTo).searchParams
  const [state, nonce, callback, aud] = ['state', 'nonce', 'redirect_uri', 'client_id'].map((name) => sent.get(name)!)
  const idToken = await issuer.token({ aud, nonce, ...claims })
  issuer.answer(async () => {
    meanwhile()
    return { access_token: 'a', token_type: 'bearer', id_token: idToken }
  })
  return browser.ask(`${callback}?${searchOf({ code: 'c', state: state! })}`)
}

const tokenOf = async (claims: Json): Promise<string> =>
  (await signIn({ idp_id: idp }, claims)).get('token') ?? assert.fail('no token')

async function exchange(claims: Json, parameters: Json = {}): Promise<Answer> {
  const token = await issuer.token({ aud: atSettings, ...claims })
  return pinfold.withToken(token).call('POST', `/sts/exchange?${searchOf({ aud: pinfold.url, ...parameters })}`)
}
const register = async (claims: Json, body: Json = {}): Promise<Answer> =>
  pinfold.withToken(await issuer.token({ aud: atSettings, ...claims })).post('/auth/v1/register', body)

/** Registers a person at a server-wide provider, with an invitation for the role. */
async function member(roleUid = roleUids.viewer): Promise<Person> {
  const person = somebody()
  ok(await register({ sub: person.sub }, { code: (await pinfold.seed.invite(org, roleUid)).code }))
  return person
}

test('an exchanged token has only the sign-in claims that the provider made', async () => {
  const { sub } = await member()
  const now = Math.floor(time / 1000)
  for (const [auth_time, said] of [
    [undefined, 0],
    [now - 60, now - 60],
    [now + 3600, now],
    ['soon', 0],
    [-5, 0],
  ]) {
    assert.equal(claimsOf(ok(await exchange({ sub, auth_time })).token).auth_time, said, String(auth_time))
  }
  // Advances the clock, so that the sign-in is more than ten minutes old.
  const owner = await member(roleUids.owner)
  const make = async (more: Json) => {
    const { token } = ok(await exchange({ sub: owner.sub, ...more }))
    const body = { roleUid: roleUids.owner, ttl: '60s' }
    return pinfold.withToken(token).post(`/iam/v2/groupInvites/${org}`, body)
  }
  assertError(await make({}), 400, 9, 'REAUTHENTICATION_REQUIRED')
  ok(await make({ auth_time: now }))
})

test('exchange, registry and registration refuse a person known only to an organization’s provider', async () => {
  const { sub, uid } = somebody()
  await tokenOf({ sub })
  await pinfold.seed.binding((await pinfold.seed.group()).uid, uid, roleUids.owner)
  const refused = await exchange({ sub })
  assert.deepEqual([refused.status, refusalOf(refused).code], [404, 5], refused.text)
  assert.equal((await exchange({ sub }, { identity: uid })).status, 403)
  const password = await issuer.token({ sub, aud: atSettings })
  const asked = await fetch(`${pinfold.url}/token?service=${new URL(pinfold.url).host}`, {
    headers: { authorization: `Basic ${Buffer.from(`${uid}:${password}`).toString('base64')}` },
  })
  assert.equal(asked.status, 401)
  assertError(await register({ sub }), 403, 7, 'INVITE_REQUIRED')

  const events = await eventsOf(pinfold, async () => {
    ok(await register({ sub }, { code: (await pinfold.seed.invite(org, roleUids.viewer)).code }))
  })
  assert.ok(events.some(({ type }) => type.includes('registered')))
  assert.equal(claimsOf(ok(await exchange({ sub })).token).sub, uid)
})

test('exchanges a token of an organization’s provider for a session of this organization, if the request names the provider', async () => {
  const { sub, uid } = somebody()
  const other = (await pinfold.seed.group()).uid
  const named = { identity_provider: idp }
  assertError(await exchange({ sub, aud: atOrg }, named), 404, 5, 'REGISTRATION_REQUIRED')
  await tokenOf({ sub })
  await pinfold.seed.binding(other, uid, roleUids.owner)
  await pinfold.seed.mapping(idp, roleUids.editor, 'door-builders')

  const events = await eventsOf(pinfold, async () => {
    const { token, expiry } = ok(await exchange({ sub, aud: atOrg, groups: ['door-builders'] }, named))
    assert.partialDeepStrictEqual(claimsOf(token), { sub: uid, org, auth_time: 0 })
    assert.ok(Date.parse(expiry) <= time + 3_600_000 + 1000)
    const client = pinfold.withToken(token)
    ok(await client.post(`/registry/v2/repos/${org}`, { name: 'by-group' }))
    assertError(await client.get(`/iam/v2/groups/${other}`), 403, 7, 'PERMISSION_DENIED')
    const { sessions } = ok(await client.get('/control/v1/sessions'))
    const { uid: session } = sessions.find((one: Json) => one.current)
    ok(await pinfold.operator.post(`/control/v1/organizationSessions/${org}:end`, { sessionUid: session }))
    assert.equal((await client.get('/auth/v1/ok')).status, 401)
  })
  assert.ok(events.some(({ type, group }) => type.includes('session.started') && group === org))

  const form = (more: Json) =>
    searchOf({ grant_type: tokenExchange, subject_token_type: idTokenType, ...more }).toString()
  const overOAuth = async (more: Json): Promise<Answer> => {
    const subject_token = await issuer.token({ sub, aud: atOrg })
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    return pinfold.anonymous.call('POST', '/oauth/token', form({ subject_token, ...more }), type)
  }
  assert.equal(claimsOf(ok(await overOAuth(named)).access_token).org, org)
  const unknown = await overOAuth({ identity_provider: 'nobody' })
  assert.deepEqual([unknown.status, unknown.body.error], [400, 'invalid_request'])
  assert.equal((await overOAuth({})).status, 400)

  using grpc = grpcClientOf(pinfold, SecurityTokenService, await issuer.token({ sub, aud: atOrg }))
  const over = await grpc.exchange({ aud: [pinfold.url], identityProvider: idp })
  assert.equal(claimsOf(over.token).org, org)
})

test('the provider in the request must have issued the token, for this server', async () => {
  const { sub } = await member()
  await using stranger = await startIssuer()
  const named = { identity_provider: idp }
  for (const [what, claims] of [
    ['audience of another', { sub, aud: atSettings }],
    ['party of another', { sub, aud: [atOrg, 'x'], azp: 'x' }],
    ['issuer', { sub, aud: atOrg, iss: stranger.url }],
    ['expired', { sub, aud: atOrg, exp: 1 }],
  ] as const) {
    assert.equal((await exchange(claims, named)).status, 401, what)
  }
  const forged = await stranger.token({ iss: issuer.url, sub, aud: atOrg })
  const path = `/sts/exchange?${searchOf({ aud: pinfold.url, ...named })}`
  assert.equal((await pinfold.withToken(forged).call('POST', path)).status, 401)
  for (const identity_provider of ['nobody', org, 'x'.repeat(3000), `${org}/${'0'.repeat(16)}`]) {
    assertInvalid(await exchange({ sub }, { identity_provider }), 'identity_provider')
  }
  assert.equal((await pinfold.anonymous.call('POST', path)).status, 401)
  assert.equal(claimsOf(ok(await exchange({ sub }, { identity_provider: 'everybody' })).token).org, undefined)
})

test('exchanges a token of an organization’s provider only for identities of this organization', async () => {
  const other = (await pinfold.seed.group()).uid
  const { sub } = somebody()
  const identity = async (group: string) =>
    (await pinfold.seed.identity(group, { claimMatch: { issuer: issuer.url, subject: sub, audience: atOrg } })).uid
  const [own, foreign] = [await identity(org), await identity(other)]
  assert.equal(
    claimsOf(ok(await exchange({ sub, aud: atOrg }, { identity: own, identity_provider: idp })).token).sub,
    own,
  )
  assert.equal((await exchange({ sub, aud: atOrg }, { identity: foreign, identity_provider: idp })).status, 403)
})

test('sessions of a provider end when the settings no longer name it, or name another', async () => {
  const { sub } = await member()
  const parameters = { connection: 'everybody', create_refresh_token: 'true' }
  const answer = await signIn(parameters, { sub })
  const client = pinfold.withToken(answer.get('token')!)
  const browser = openBrowser()
  const start = await browser.ask(`${pinfold.url}/ui/signin/start?idp=everybody`)
  await comeBack(browser, start.headers.get('location')!, { sub })
  const isIn = async () => (await browser.ask(`${pinfold.url}/ui/`)).status === 200
  ok(await client.get('/auth/v1/ok'))
  assert.ok(await isIn())
  const inside = pinfold.withToken(await tokenOf({ sub }))
  // Sessions from both providers. The two providers do not affect each other.
  const apart = pinfold.withToken(ok(await exchange({ sub })).token)
  const listed = async () =>
    ok(await apart.get('/control/v1/sessions'))
      .sessions.map((one: Json) => one.provider)
      .sort()
  assert.deepEqual(await listed(), [idp, 'everybody', 'everybody'].sort())
  const ends = () => eventsOf(pinfold, async () => void (await runJob(pinfold.app, endUntrustedSessions)))

  const { config } = pinfold.app
  const trusted = config.oidcProviders
  try {
    for (const now of [[], [{ ...trusted[0]!, name: 'another' }], [{ ...trusted[0]!, issuer: 'https://x.example' }]]) {
      config.oidcProviders = now
      assert.equal((await client.get('/auth/v1/ok')).status, 401)
      assert.ok(!(await isIn()))
      const refresh = pinfold.withToken(answer.get('refresh_token')!)
      assert.equal((await refresh.post(`/sts/exchange_refresh_token?aud=${pinfold.url}`)).status, 401)
      // A session by an organization's provider does not depend on the providers of the settings.
      ok(await inside.get('/auth/v1/ok'))
    }
    config.oidcProviders = []
    // Another server of the same database may know the provider already, or still.
    assert.deepEqual(await ends(), [])
  } finally {
    config.oidcProviders = trusted
  }
  ok(await client.get('/auth/v1/ok'))
  time += 61 * 60_000
  assert.deepEqual(await ends(), [])
  try {
    config.oidcProviders = [{ ...trusted[0]!, issuer: 'https://x.example' }]
    const ended = await ends()
    assert.ok(ended.length >= 2)
    for (const { type, body } of ended) {
      assert.deepEqual([type.includes('session.ended'), body.reason], [true, 'provider-removed'])
    }
  } finally {
    config.oidcProviders = trusted
  }
  assert.equal((await client.get('/auth/v1/ok')).status, 401)
})

test('shows an invitation from a URL with its group and role before redeeming it', async () => {
  const { sub, uid } = somebody()
  const folder = await pinfold.seed.group(org, { name: 'inner' })
  const { code } = await pinfold.seed.invite(folder.uid, roleUids.editor)
  const browser = openBrowser()
  const query = searchOf({ exit: 'redirect', redirect: loopback, connection: 'everybody', invite: code })
  const shown = await browser.ask(`${pinfold.url}/oauth?${query}`)
  assert.deepEqual([shown.status, shown.headers.get('location')], [200, null])
  for (const word of ['doors.example', 'inner', 'editor']) assert.match(shown.text, new RegExp(word))
  // The link works only in this browser and for this invitation.
  const link = new URL(pinfold.url + linkOf(shown, 'Join'))
  assert.equal((await openBrowser().ask(link.href)).status, 200)
  const another = new URL(link)
  another.searchParams.set('invite', (await pinfold.seed.invite(org, roleUids.owner)).code)
  assert.equal((await browser.ask(another.href)).status, 200)

  const agreed = await browser.ask(link.href)
  assert.equal(agreed.status, 302)
  await comeBack(browser, agreed.headers.get('location')!, { sub })
  const { roleBindings } = ok(await pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`))
  assert.deepEqual(
    roleBindings.map((one: Json) => one.group.uid),
    [folder.uid],
  )
})

test('a page of another site cannot choose the user of a browser session', async () => {
  const start = `${pinfold.url}/ui/signin/start?idp=${idp}&return=/ui/x`
  for (const site of ['cross-site', 'same-site', 'none']) {
    const led = await openBrowser().ask(start, { headers: { 'sec-fetch-site': site } })
    assert.deepEqual([led.status, led.headers.get('location')], [303, '/ui/signin?return=%2Fui%2Fx'], site)
  }
  const own = await openBrowser().ask(start, { headers: { 'sec-fetch-site': 'same-origin' } })
  assert.ok(own.headers.get('location')!.startsWith(issuer.url))
})

test('a role of an external group does not allow invitations, because they outlast the session', async () => {
  const { sub } = somebody()
  await pinfold.seed.mapping(idp, roleUids.owner, 'door-owners')
  const now = Math.floor(time / 1000)
  const client = pinfold.withToken(await tokenOf({ sub, groups: ['door-owners'], auth_time: now }))
  const body = { roleUid: roleUids.viewer, ttl: '60s' }
  assertBlocked(await client.post(`/iam/v2/groupInvites/${org}`, body), org, 'SESSION_RIGHTS')
  assert.deepEqual(
    ok(await pinfold.operator.get(`/iam/v2/groupInvites?uidp.childrenOf=${org}`)).groupInvites.filter(
      (one: Json) => one.createdBy === personUid(issuer.url, sub),
    ),
    [],
  )
  const owner = await member(roleUids.owner)
  const { token } = ok(await exchange({ sub: owner.sub, auth_time: now }))
  ok(await pinfold.withToken(token).post(`/iam/v2/groupInvites/${org}`, body))
})

test('a token is issued for any number of groups with session roles', async () => {
  const { sub } = somebody()
  await pinfold.seed.mapping(idp, roleUids.editor, 'door-many')
  const refreshed = await signIn({ idp_id: idp, create_refresh_token: 'true' }, { sub })
  const scopes = Array.from({ length: 500 }, (_, i) => `${org}/${i.toString(16).padStart(16, '0')}`)
  const mask = Object.values(claimsOf(ok(await exchangeGroups(sub)).token).grp as Json)[0]
  const granted = JSON.stringify(Object.fromEntries([org, ...scopes].map((scope) => [scope, mask])))
  const { sid } = claimsOf(refreshed.get('token')!)
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE sessions SET granted = ${granted} WHERE uid = ${sid}`))
  // The server never changes what a session was granted, so no commit clears its cache.
  pinfold.app.sessions.clear()

  const pair = ok(
    await pinfold.withToken(refreshed.get('refresh_token')!).post(`/sts/exchange_refresh_token?aud=${pinfold.url}`),
  )
  const { token } = pair.token
  assert.ok(token.length < 12 * 1024, `${token.length}`)
  ok(await pinfold.withToken(token).post(`/registry/v2/repos/${org}`, { name: 'by-many-groups' }))
})

const exchangeGroups = (sub: string) => exchange({ sub, aud: atOrg, groups: ['door-many'] }, { identity_provider: idp })

test('signing out succeeds if the provider is unavailable', async () => {
  const { sub } = await member()
  const browser = openBrowser()
  const start = await browser.ask(`${pinfold.url}/ui/signin/start?idp=everybody`)
  await comeBack(browser, start.headers.get('location')!, { sub })
  const { config } = pinfold.app
  const trusted = config.oidcProviders
  try {
    config.oidcProviders = [{ ...trusted[0]!, secretFile: '/nowhere/secret' }]
    const shown = await browser.submit(`${pinfold.url}/ui/signout`, {})
    assert.deepEqual([shown.status, shown.headers.get('refresh')], [200, null], shown.text)
  } finally {
    config.oidcProviders = trusted
  }
})

test('a person whose provider omits their groups gets an error, which is logged', async () => {
  const { sub } = somebody()
  const parameters = { idp_id: idp, create_refresh_token: 'true' }
  for (const claims of [
    { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph.example/' } } },
    { hasgroups: true },
    { groups: Array.from({ length: 1001 }, (_, i) => `g-${i}`) },
  ]) {
    const events = await eventsOf(pinfold, async () => {
      const shown = await signInPage(parameters, { sub, ...claims })
      assert.equal(shown.status, 200, shown.text)
      assert.match(shown.text, /did not send your groups/)
      const on = new URL(linkOf(shown, 'Continue'))
      ok(await pinfold.withToken(on.searchParams.get('token')!).get('/auth/v1/ok'))
      assert.equal(shown.headers.get('refresh'), `15; url=${on.href}`)
    })
    assert.equal(events.find(({ type }) => type.includes('session.started'))!.body.groups_left_out, true)
  }
  const browser = openBrowser()
  const start = await browser.ask(`${pinfold.url}/ui/signin/start?idp=${idp}&return=/ui/`)
  const shown = await comeBack(browser, start.headers.get('location')!, { sub, hasgroups: true })
  assert.equal(linkOf(shown, 'Continue'), '/ui/')
  assert.equal((await browser.ask(`${pinfold.url}/ui/`)).status, 200)
  const none = await signInPage(parameters, { sub, groups: [] })
  assert.equal(none.status, 302)
})

test('a sign-in while the database is overloaded returns a retry time, and logs no error', async () => {
  const { db, log } = pinfold.app
  const tooMuch = () => Promise.reject(busy('all connections to the database are in use'))
  const kept = { db: { ...db }, log: { ...log } }
  const told: string[] = []
  // Background jobs find the database overloaded too, and log it at any time.
  const note = (level: string) => (text: string) => void (text === 'sign-in failed' && told.push(`${level} ${text}`))
  Object.assign(log, { warn: note('warn'), error: note('error') })
  try {
    const browser = openBrowser()
    const query = searchOf({ exit: 'redirect', redirect: loopback, idp_id: idp })
    const begun = await browser.ask(`${pinfold.url}/oauth?${query}`)
    const broken = () => void Object.assign(db, { all: tooMuch, get: tooMuch, tx: tooMuch })
    const back = await comeBack(browser, begun.headers.get('location')!, { sub: 'crowd' }, broken)
    assert.equal(new URL(back.headers.get('location')!).searchParams.get('status_code'), '503')
  } finally {
    Object.assign(db, kept.db)
    Object.assign(log, kept.log)
  }
  assert.deepEqual(told, ['warn sign-in failed'])
})
