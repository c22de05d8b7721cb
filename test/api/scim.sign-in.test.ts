// Provisioning over SCIM decides which users may sign in with the provider and keep their sessions.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { ok } from '../support/expect.ts'
import { clientId, clientSecret, startPeopleProvider } from '../support/people-provider.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { scimClient, userSchema } from '../support/scim.ts'

const company = await startPeopleProvider()
const { pinfold, member, ...scene } = await startScene({ allowInsecureIssuers: true, issuersPrivate: ['127.0.0.1'] })
const org: string = scene.org.uid
const owner = await member(roleUids.owner)
await member(roleUids.owner)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await company[Symbol.asyncDispose]()
})

/** Creates a provider of the organization whose SCIM endpoint is open. */
async function provider(name: string, correlationRule: string) {
  const oidc = { issuer: company.url, clientId, clientSecret, additionalScopes: ['email', 'profile'], correlationRule }
  const { uid } = await pinfold.seed.provider(org, company.url, { name, oidc })
  company.register([`${pinfold.url}/oauth/callback`, `${pinfold.url}/oauth/callback/${uid}`])
  const path = `/iam/v2/identityProviders/${uid}`
  const { token, etag, endpointUrl } = ok(await owner.post(`${path}:generateScimToken`, {}))
  ok(await owner.post(`${path}:setScimEnabled`, { enabled: true, etag }))
  return { uid, scim: scimClient(endpointUrl, token) }
}

const loopback = 'http://localhost:4711/callback?token=true&error=true&refresh=true'

async function signIn(idp: string): Promise<URLSearchParams> {
  const query = new URLSearchParams({
    exit: 'redirect',
    redirect: loopback,
    idp_id: idp,
    include_refresh: 'true',
    create_refresh_token: 'true',
  })
  const shown = await openBrowser().go(`${pinfold.url}/oauth?${query}`, {}, (next) =>
    next.startsWith('http://localhost:4711'),
  )
  assert.ok(shown.url.startsWith('http://localhost:4711/callback?'), shown.text)
  return new URL(shown.url).searchParams
}

const person = (externalId: string): Json => ({ schemas: [userSchema], userName: externalId, externalId, active: true })

for (const [rule, claim] of [
  ['CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID', 'sub'],
  ['CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID', 'oid'],
] as const) {
  test(`a deactivated person loses access at once, found by ${claim}`, async () => {
    const { uid, scim } = await provider(`by ${claim}`, rule)
    const external = claim === 'sub' ? `sub-of-${claim}` : '4f1c-oid'
    company.become(`sub-of-${claim}`, { email: 'p@acme.example', oid: '4f1c-oid' })
    // Users whom the provider never provisioned are not checked.
    const first = (await signIn(uid)).get('token')!
    ok(await pinfold.withToken(first).get('/auth/v1/ok'))

    const { id } = (await scim.post('/Users', person(external))).body
    const token = (await signIn(uid)).get('token')!
    ok(await pinfold.withToken(token).get('/auth/v1/ok'))
    const path = `/control/v1/pushTokens/${org}`
    const { pushToken, secret } = ok(await pinfold.withToken(token).post(path, { name: 'laptop' }))
    const credential = Buffer.from(`${pushToken.userName}:${secret}`).toString('base64')
    const pull = () => pinfold.anonymous.call('GET', '/token', undefined, { authorization: `Basic ${credential}` })
    assert.equal((await pull()).status, 200)
    await scim.patch(`/Users/${id}`, { op: 'replace', value: { active: false } })
    assert.equal((await pull()).status, 401)
    assert.equal((await pinfold.withToken(token).get('/auth/v1/ok')).status, 401)
    assert.equal((await signIn(uid)).get('token'), null)

    await scim.patch(`/Users/${id}`, { op: 'replace', value: { active: true } })
    const again = (await signIn(uid)).get('token')!
    ok(await pinfold.withToken(again).get('/auth/v1/ok'))
    await scim.delete(`/Users/${id}`)
    assert.equal((await pinfold.withToken(again).get('/auth/v1/ok')).status, 401)
    assert.equal((await signIn(uid)).get('token'), null)
  })
}

test('a user deactivated before the first sign-in gets no account', async () => {
  const { uid, scim } = await provider('early', 'CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID')
  await scim.post('/Users', { ...person('early-bird'), active: false })
  company.become('early-bird', {})
  assert.equal((await signIn(uid)).get('token'), null)
  company.become('somebody-else', { email: 'early-bird' })
  assert.ok((await signIn(uid)).get('token'))
})

test('ends sessions of users whom the provider deactivates or gives another external ID', async () => {
  const { uid, scim } = await provider('late', 'CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID')
  company.become('late-comer', {})
  const first = (await signIn(uid)).get('token')!
  const { id } = (await scim.post('/Users', { ...person('late-comer'), active: false })).body
  assert.equal((await pinfold.withToken(first).get('/auth/v1/ok')).status, 401)
  await scim.patch(`/Users/${id}`, { op: 'replace', value: { active: true } })
  const second = (await signIn(uid)).get('token')!
  await scim.patch(`/Users/${id}`, { op: 'replace', path: 'externalId', value: 'another' })
  assert.equal((await pinfold.withToken(second).get('/auth/v1/ok')).status, 401)
})

test('if a provider provisions users by SCIM, other users cannot sign in', async () => {
  const { uid, scim } = await provider('nameless', 'CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID')
  company.become('without-oid', {})
  assert.ok((await signIn(uid)).get('token'))
  await scim.post('/Users', person('somebody with an oid'))
  assert.equal((await signIn(uid)).get('token'), null)
})
