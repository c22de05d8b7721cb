// Attacks by an owner of an organization with a provider that makes arbitrary claims. No entry point gives access outside of the
// organization.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { personUid } from '#domains/iam/identities/people.ts'
import { openBrowser } from '../support/browser.ts'
import { claimsOf, searchOf } from '../support/exchange.ts'
import { ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

const clientId = 'pinfold'
const loopback = 'http://localhost:4711/callback'

let [honest, evil]: [FakeIssuer, FakeIssuer] = [] as never
let pinfold: Pinfold
/** The organization of the victims, with a provider at the honest issuer, and the organization of the hostile owner. */
let [acme, mallory]: [Json, Json] = [] as never
let [acmeIdp, evilIdp, sharedIdp]: [string, string, string] = [] as never
/** Subject of a person of the provider in the settings, who owns the first organization. */
const victim = 'victim'
let victimUid: string

before(async () => {
  ;[honest, evil] = [await startIssuer(), await startIssuer()]
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    allowSelfRegistration: true,
    allowOrganizationCreation: true,
    oidcProviders: [{ issuer: honest.url, audience: 'of the settings', label: 'Everybody', name: 'everybody' }],
  })
  const { seed } = pinfold
  acme = await seed.group('', { name: 'acme.example', verified: true, kind: 'ORG_KIND_CUSTOMER' })
  mallory = await seed.group()
  acmeIdp = (await seed.provider(acme.uid, honest.url)).uid
  evilIdp = (
    await seed.provider(mallory.uid, evil.url, {
      oidc: { issuer: evil.url, clientId, clientSecret: 's', groupsClaim: 'groups' },
    })
  ).uid
  // The attacker's own client at the issuer that all people use.
  sharedIdp = (
    await seed.provider(mallory.uid, honest.url, {
      oidc: { issuer: honest.url, clientId, clientSecret: 's', groupsClaim: 'groups' },
    })
  ).uid
  for (const idp of [evilIdp, sharedIdp]) await seed.mapping(idp, roleUids.owner, 'owners')
  await seed.mapping(acmeIdp, roleUids.owner, 'owners')
  const token = await honest.token({
    sub: victim,
    aud: 'of the settings',
    email: 'ceo@acme.example',
    email_verified: true,
  })
  victimUid = ok(await pinfold.withToken(token).post('/auth/v1/register', {})).identity
  await seed.binding(acme.uid, victimUid, roleUids.owner)
  await seed.repo(acme.uid, { name: 'app' })
})
after(async () => {
  for (const one of [pinfold, honest, evil]) await one[Symbol.asyncDispose]()
})

/** Result of signing in with the browser and an ID token with these claims. */
async function throughBrowser(idp: string, issuer: FakeIssuer, claims: Json): Promise<Client | number> {
  const browser = openBrowser()
  const query = searchOf({ exit: 'redirect', redirect: loopback, idp_id: idp })
  const sent = new URL((await browser.ask(`${pinfold.url}/oauth?${query}`)).headers.get('location')!).searchParams
  const idToken = await issuer.token({ aud: clientId, nonce: sent.get('nonce'), ...claims })
  issuer.answer(async () => ({ access_token: 'a', token_type: 'bearer', id_token: idToken }))
  const back = await browser.ask(`${sent.get('redirect_uri')}?${searchOf({ code: 'c', state: sent.get('state')! })}`)
  const answer = URL.parse(back.headers.get('location') ?? '')?.searchParams
  const token = answer?.get('token')
  return token ? pinfold.withToken(token) : Number(answer?.get('status_code') ?? back.status)
}

/** The same sign-in by token exchange. */
async function throughExchange(
  idp: string,
  issuer: FakeIssuer,
  claims: Json,
  more: Json = {},
): Promise<Client | number> {
  const token = await issuer.token({ aud: clientId, ...claims })
  const query = searchOf({ aud: pinfold.url, ...(idp && { identity_provider: idp }), ...more })
  const answer = await pinfold.withToken(token).call('POST', `/sts/exchange?${query}`)
  return answer.status === 200 ? pinfold.withToken(answer.body.token) : answer.status
}

/** Asserts that the client of a session sees and changes only the hostile organization. */
async function assertInside(client: Client, what: string): Promise<void> {
  const claims = claimsOf(client.token!)
  assert.equal(claims.org, mallory.uid, what)
  const { groups } = ok(await client.get('/iam/v2/groups'))
  assert.ok(
    groups.every(({ uid }: Json) => uid.startsWith(mallory.uid)),
    what,
  )
  const { capabilities } = ok(await client.get('/auth/v1/ok'))
  assert.ok(
    capabilities.every(({ group }: Json) => group.id.startsWith(mallory.uid)),
    what,
  )
  const { host } = new URL(pinfold.url)
  const tried: [status: number, Promise<{ status: number }>][] = [
    [403, client.get(`/iam/v2/groups/${acme.uid}`)],
    [403, client.get(`/control/v1/accessRequests/${acme.uid}`)],
    [403, client.get(`/control/v1/organizationSessions/${acme.uid}`)],
    [403, client.post(`/iam/v2/groupInvites/${acme.uid}`, { roleUid: roleUids.viewer, ttl: '60s' })],
    [403, client.post(`/registry/v2/repos/${acme.uid}`, { name: 'planted' })],
    [403, client.post('/iam/v2/groups/', { name: 'an-organization-of-its-own' })],
    [404, client.get('/iam/v2/groups:lookupGroup')],
    [404, client.post(`/iam/v2/groups/${acme.uid}:requestGroupAccess`)],
    [
      403,
      fetch(`${pinfold.url}/v2/acme.example/app/tags/list`, { headers: { authorization: `Bearer ${client.token}` } }),
    ],
  ]
  for (const [i, [status, answer]] of tried.entries()) assert.equal((await answer).status, status, `${what}: ${i}`)
  const basic = Buffer.from(`_token:${client.token}`).toString('base64')
  const asked = await fetch(`${pinfold.url}/token?service=${host}&scope=repository:acme.example/app:pull`, {
    headers: { authorization: `Basic ${basic}` },
  })
  if (asked.status === 200) {
    const { access = [] } = claimsOf(((await asked.json()) as Json).token)
    assert.deepEqual(
      (access as Json[]).flatMap((one) => one.actions),
      [],
      what,
    )
  }
}

const said = (): [what: string, claims: Json][] => [
  ['the subject of a victim', { sub: victim }],
  ['their address too', { sub: victim, email: 'ceo@acme.example', email_verified: true, groups: ['owners'] }],
  ['groups of another', { sub: 'm-1', groups: ['owners', acmeIdp, roleUids.owner] }],
  [
    'our own claims',
    { sub: 'm-2', org: acme.uid, grp: { [acme.uid]: '_____' }, cap: { '/': '_____' }, sid: victimUid },
  ],
  ['a uid as its subject', { sub: victimUid }],
]

test('provider claims have effects only in its organization, by browser and by exchange', async () => {
  for (const [idp, issuer] of [
    [evilIdp, evil],
    [sharedIdp, honest],
  ] as const) {
    for (const [what, claims] of said()) {
      const context = `${what}, of ${issuer === evil ? 'its own issuer' : 'everybody’s issuer'}`
      const first = await throughBrowser(idp, issuer, claims)
      assert.ok(typeof first !== 'number', `${context}: ${first}`)
      await assertInside(first, context)
      const second = await throughExchange(idp, issuer, claims)
      assert.ok(typeof second !== 'number', `${context}: ${second}`)
      await assertInside(second, context)
    }
  }
  const { sessions } = ok(await pinfold.operator.get(`/control/v1/organizationSessions/${acme.uid}`))
  assert.deepEqual(sessions, [])
})

test('each entry point refuses a token of another issuer, and an invalid token', async () => {
  for (const [what, issuer, claims] of [
    ['signed by itself in the name of the other', evil, { iss: honest.url, sub: victim }],
    ['for the settings', evil, { iss: honest.url, sub: victim, aud: 'of the settings' }],
    ['of us', evil, { iss: pinfold.url, sub: victimUid }],
    ['for ever', evil, { sub: 'm-3', exp: 9e12 }],
    ['of the future', evil, { sub: 'm-3', iat: 9e9 }],
    ['huge', evil, { sub: 'm-3', name: 'x'.repeat(40_000) }],
    ['with a subject that cannot be', evil, { sub: 'a\u0000b' }],
    ['without a subject', evil, { sub: undefined }],
  ] as [string, FakeIssuer, Json][]) {
    // No server reads a header of this length.
    const inHeader = what === 'huge' ? 431 : 401
    for (const idp of ['', evilIdp, acmeIdp, 'everybody']) {
      assert.equal(await throughExchange(idp, issuer, claims), inHeader, `${what} at ${idp}`)
    }
    assert.equal(await throughBrowser(evilIdp, issuer, claims), 401, what)
    const register = pinfold.withToken(await issuer.token({ aud: clientId, ...claims }))
    assert.equal((await register.post('/auth/v1/register', {})).status, inHeader, what)
    const password = Buffer.from(`${victimUid}:${register.token}`).toString('base64')
    const { status } = await fetch(`${pinfold.url}/token`, { headers: { authorization: `Basic ${password}` } })
    assert.equal(status, inHeader, what)
  }
})

test('a valid token of the provider is refused server-wide, for another organization, and for its identities', async () => {
  const { uid: identity } = await pinfold.seed.identity(acme.uid, {
    claimMatch: { issuer: evil.url, subject: 'm-4', audience: clientId },
  })
  for (const [what, got] of [
    ['the settings', await throughExchange('everybody', evil, { sub: 'm-4' })],
    ['another organization', await throughExchange(acmeIdp, evil, { sub: 'm-4' })],
    ['another organization at the same issuer', await throughExchange('everybody', honest, { sub: victim })],
  ] as const) {
    assert.equal(got, 401, what)
  }
  assert.equal(await throughExchange(evilIdp, evil, { sub: 'm-4' }, { identity }), 403)
  assert.equal(await throughExchange(evilIdp, evil, { sub: 'm-4' }, { identity: victimUid }), 403)
  assert.equal(await throughExchange('', evil, { sub: 'm-4' }), 401)
})

test('the provider can neither sign out people whom others signed in, nor change their data', async () => {
  const good = await honest.token({ sub: victim, aud: 'of the settings' })
  const signedIn = ok(await pinfold.withToken(good).call('POST', `/sts/exchange?aud=${pinfold.url}`))
  const inside = await throughBrowser(acmeIdp, honest, { sub: victim, sid: 'upstream' })
  assert.ok(typeof inside !== 'number')
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const word = { aud: clientId, sub: victim, sid: 'upstream', events }
  for (const [i, [idp, issuer, claims]] of (
    [
      [evilIdp, evil, word],
      [sharedIdp, honest, word],
      [acmeIdp, evil, { ...word, iss: honest.url }],
      ['everybody', evil, { ...word, iss: honest.url }],
    ] as [string, FakeIssuer, Json][]
  ).entries()) {
    const logout_token = await issuer.token({ ...claims, jti: `j-${i}` }, { typ: 'logout+jwt' })
    await fetch(`${pinfold.url}/oauth/backchannel/${idp}`, {
      method: 'POST',
      body: new URLSearchParams({ logout_token }),
    })
  }
  ok(await inside.get('/auth/v1/ok'))
  ok(await pinfold.withToken(signedIn.token).get('/auth/v1/ok'))

  const hostile = await throughExchange(sharedIdp, honest, { sub: victim, groups: ['owners'] })
  assert.ok(typeof hostile !== 'number')
  const changed = await hostile.patch('/iam/v2/identities:updateIdentityMetadata', {
    identityMetadata: { company: 'Mallory' },
  })
  assert.equal(changed.status, 403)
  assert.ok((await hostile.delete(`/auth/v1/delete/${victimUid}`)).status >= 400)
  assert.equal(ok(await pinfold.operator.get(`/iam/v2/identities/${victimUid}`)).company, '')
  const { sessions } = ok(await hostile.get('/control/v1/sessions'))
  assert.ok(sessions.every((one: Json) => one.organization === mallory.uid))
  assert.equal(victimUid, personUid(honest.url, victim))
})
