// Claims of a sign-in that come in other shapes: from the userinfo endpoint, inside objects, and in logout tokens.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { answerOf, begin, clientId, finish } from '../support/answered-sign-in.ts'
import { claimsOf } from '../support/exchange.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

let issuer: FakeIssuer
let pinfold: Pinfold
let org: string
let idp: string
let people = 0

before(async () => {
  issuer = await startIssuer()
  issuer.answerUserInfo({})
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    allowOrganizationCreation: true,
  })
  org = (await pinfold.seed.group()).uid
  const oidc = { issuer: issuer.url, clientId, clientSecret: 's', groupsClaim: 'realm_access.roles' }
  idp = (await pinfold.seed.provider(org, issuer.url, { oidc })).uid
  await pinfold.seed.mapping(idp, roleUids.owner, 'owners')
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

/** Signs a new person in, and returns the token with its claims. */
async function signIn(idToken: Json, userInfo: Json = {}) {
  const sub = (idToken.sub as string | undefined) ?? `person-${people++}`
  issuer.answerUserInfo({ sub, ...userInfo })
  const { token, error } = answerOf(await finish(await begin(pinfold, { idp, issuer }), { sub, ...idToken }))
  assert.equal(error, undefined)
  return { sub, claims: claimsOf(token), client: pinfold.withToken(token) }
}

test('reads email_verified from the source of the email address: ID token or userinfo endpoint', async () => {
  const email = 'ada@acme.example'
  const cases: [idToken: Json, userInfo: Json, verified: boolean][] = [
    [{ email, name: 'Ada' }, { email, email_verified: true }, true],
    [{ name: 'Ada' }, { email, email_verified: true }, true],
    [{ name: 'Ada' }, { email, email_verified: 'true' }, true],
    [{ email, email_verified: false }, { email, email_verified: true }, false],
    [{ email, email_verified: true }, { email, email_verified: false }, true],
    [{ email }, { email: 'other@acme.example', email_verified: true }, false],
    [{ email }, { email_verified: true }, false],
    [{ email_verified: true }, { email }, false],
    [{ email }, {}, false],
  ]
  for (const [idToken, userInfo, verified] of cases) {
    const { claims } = await signIn(idToken, userInfo)
    assert.deepEqual([claims.email, claims.email_verified], [email, verified], JSON.stringify([idToken, userInfo]))
  }
})

const isOwner = async ({ client }: Awaited<ReturnType<typeof signIn>>): Promise<boolean> => {
  const { capabilities } = ok(await client.get('/auth/v1/ok'))
  return capabilities.some(({ role }: Json) => role?.name === 'owner')
}

test('groups in a nested claim grant roles, from the ID token or the userinfo endpoint', async () => {
  assert.equal(await isOwner(await signIn({ realm_access: { roles: ['owners'] } })), true)
  assert.equal(await isOwner(await signIn({ 'realm_access.roles': ['owners'] })), true)
  assert.equal(await isOwner(await signIn({}, { realm_access: { roles: ['owners'] } })), true)
  assert.equal(
    await isOwner(await signIn({ realm_access: { other: 1 } }, { realm_access: { roles: ['owners'] } })),
    true,
  )
  assert.equal(await isOwner(await signIn({ realm_access: { roles: ['others'] } })), false)
  assert.equal(await isOwner(await signIn({ realm_access: ['owners'], roles: ['owners'] })), false)
})

test('refuses a groupsClaim that can never match', async () => {
  const create = (groupsClaim: string) =>
    pinfold.operator.post(`/iam/v2/identityProviders/${org}`, {
      name: `claim ${people++}`,
      defaultRole: roleUids.viewer,
      oidc: { issuer: issuer.url, clientId, clientSecret: 's', groupsClaim },
    })
  const never = [
    '$.groups',
    '/realm_access/roles',
    'groups[*]',
    'groups[0]',
    '.groups',
    'groups.',
    'a..b',
    ' groups',
    'groups ',
  ]
  for (const one of [
    ...never,
    'gro\nups',
    '{groups}',
    'iss',
    'aud',
    'exp',
    'email_verified',
    '_claim_names',
    '@groups',
  ]) {
    assertInvalid(await create(one), 'oidc.groups_claim')
  }
  for (const one of [
    'groups',
    'realm_access.roles',
    'https://acme.example/groups',
    'urn:zitadel:iam:org:project:roles',
  ]) {
    ok(await create(one))
  }
  const provider = ok(await create('groups'))
  const path = `/iam/v2/identityProviders/${provider.uid}`
  assertInvalid(
    await pinfold.operator.patch(`${path}?updateMask=oidc.groups_claim`, { oidc: { groupsClaim: '$.a' } }),
    'oidc.groups_claim',
  )
})

test('a logout token with an unknown sid ends the sessions of the person without a recorded sid', async () => {
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const logOut = async (claims: Json, typ = 'logout+jwt') => {
    const logout_token = await issuer.token({ aud: clientId, jti: `jti-${people++}`, events, ...claims }, { typ })
    const body = new URLSearchParams({ logout_token })
    return (await fetch(`${pinfold.url}/oauth/backchannel/${idp}`, { method: 'POST', body })).status
  }
  const isIn = async ({ client }: Awaited<ReturnType<typeof signIn>>) =>
    (await client.get('/auth/v1/ok')).status === 200

  const without = await signIn({})
  const { sub } = without
  const recorded = await signIn({ sub, sid: 'known' })
  const another = await signIn({})
  const all = async () => Promise.all([without, recorded, another].map(isIn))
  assert.equal(await logOut({ sub: 'nobody', sid: 'unknown' }), 200)
  assert.deepEqual(await all(), [true, true, true])
  assert.equal(await logOut({ sub, sid: 'unknown' }), 200)
  assert.deepEqual(await all(), [false, true, true])
  assert.equal(await logOut({ sub, sid: 'unknown' }), 200)
  assert.deepEqual(await all(), [false, true, true])

  const again = await signIn({ sub })
  assert.equal(await logOut({ sub, sid: 'known' }, 'JOSE'), 200)
  assert.deepEqual(await all(), [false, false, true])
  assert.equal(await isIn(again), true, 'a sid that is found names one session')
  assert.equal(await logOut({ sid: 'unknown' }), 200)
  assert.equal(await logOut({ sub }), 200)
  assert.equal(await isIn(again), false)
})
