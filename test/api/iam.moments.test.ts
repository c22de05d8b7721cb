// Expiry in identity and access management: credentials are good until the last millisecond, and refused at their expiry.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { personUid } from '#domains/iam/identities/people.ts'
import { assertError, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { scimClient } from '../support/scim.ts'

const [second, hour, day] = [1000, 3_600_000, 86_400_000]
const audience = 'client of the settings'
const domain = 'acme.example'

let time = Date.parse('2026-03-01T08:00:00.000Z')
let issuer: FakeIssuer
let pinfold: Pinfold
let org: string
let ownerUid: string
before(async () => {
  issuer = await startIssuer()
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    issuersPrivate: ['127.0.0.1'],
    clock: () => new Date(time),
    allowSelfRegistration: true,
    oidcProviders: [{ issuer: issuer.url, audience, label: 'Everybody', name: 'everybody' }],
  })
  org = (await pinfold.seed.group('', { name: domain, verified: true, kind: 'ORG_KIND_CUSTOMER' })).uid
  ownerUid = (await pinfold.seed.member(org, roleUids.owner)).uid
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const iso = (ms: number): string => new Date(ms).toISOString()
/** Tokens are valid for an hour of the test clock. */
const owner = (): Promise<Client> => pinfold.as(ownerUid)

let made = 0
const newSubject = () => `person-${made++}`
function personToken(sub: string): Promise<string> {
  const iat = Math.floor(time / second)
  const email = `${sub}@${domain}`
  return issuer.token({ sub, aud: audience, name: 'Jo Doe', email, email_verified: true, iat, exp: iat + 300 })
}
async function person(sub: string): Promise<Client> {
  const token = await personToken(sub)
  await pinfold.withToken(token).post('/auth/v1/register', {})
  return pinfold.withToken(
    ok(await pinfold.withToken(token).call('POST', `/sts/exchange?aud=${pinfold.url}`)).token as string,
  )
}

async function startScimTokens() {
  const oidc = { issuer: issuer.url, clientId: 'c', clientSecret: 's' }
  const body = { name: `tokens ${made++}`, defaultRole: roleUids.viewer, oidc }
  const { uid } = ok(await (await owner()).post(`/iam/v2/identityProviders/${org}`, body))
  const call = async (method: string, request: Json): Promise<Answer> =>
    (await owner()).post(`/iam/v2/identityProviders/${uid}:${method}`, request)
  return {
    generate: (request: Json) => call('generateScimToken', request),
    regenerate: (request: Json) => call('regenerateScimToken', request),
    /** True if the SCIM endpoint accepts the token although SCIM is turned off. */
    isKnown: async (token: string): Promise<boolean> => {
      const { status } = await scimClient(`${pinfold.url}/scim/v2/${uid}`, token).get('/Users?count=0')
      assert.ok(status === 401 || status === 403, `${status}`)
      return status === 403
    },
  }
}

test('a SCIM token is valid until it expires; an expired token gets no overlap when it is replaced', async () => {
  const { generate, regenerate, isKnown } = await startScimTokens()
  const { token, etag, expireTime } = ok(await generate({ expireTime: iso(time + hour) }))
  assert.equal(expireTime, iso(time + hour))
  time += hour - 1
  assert.ok(await isKnown(token))
  time += 1
  assert.ok(!(await isKnown(token)))
  assert.equal(ok(await regenerate({ etag })).previousTokenExpireTime, undefined)
})

test('a replaced SCIM token is valid until the overlap ends', async () => {
  const { generate, regenerate, isKnown } = await startScimTokens()
  const { token, etag } = ok(await generate({}))
  ok(await regenerate({ etag, overlap: '60s' }))
  time += 60 * second - 1
  assert.ok(await isKnown(token))
  time += 1
  assert.ok(!(await isKnown(token)))
})

test('a SCIM token must expire after now and within two years', async () => {
  for (const [late, isGood] of [
    [0, false],
    [1, true],
    [2 * 365 * day, true],
    [2 * 365 * day + 1, false],
  ] as const) {
    const { generate } = await startScimTokens()
    const answer = await generate({ expireTime: iso(time + late) })
    if (isGood) ok(answer)
    else assertInvalid(answer, 'expire_time')
  }
})

const ask = async (sub: string): Promise<Answer> =>
  (await person(sub)).post(`/iam/v2/groups/${org}:requestGroupAccess`, {})
const requestOf = async (sub: string): Promise<Json> => {
  const { accessRequests } = ok(await (await owner()).get(`/control/v1/accessRequests/${org}`))
  return accessRequests.find((one: Json) => one.identityUid === personUid(issuer.url, sub))
}
const answerTo = async (uid: string, verb: string, body: Json = {}): Promise<Answer> =>
  (await owner()).post(`/control/v1/accessRequests/${uid}:${verb}`, body)
const assertTooSoon = (answer: Answer) => assert.equal(answer.status, 429, answer.text)

test('a person can request access again after a day, and after a rejection after seven days', async () => {
  const sub = newSubject()
  ok(await ask(sub))
  time += day - 1
  assertTooSoon(await ask(sub))
  time += 1
  ok(await ask(sub))
  ok(await answerTo((await requestOf(sub)).uid, 'refuse'))
  time += 7 * day - 1
  assertTooSoon(await ask(sub))
  time += 1
  ok(await ask(sub))
})

test('a request for access expires after thirty days', async () => {
  const subs = [newSubject(), newSubject()]
  for (const sub of subs) ok(await ask(sub))
  const requests = [(await requestOf(subs[0]!)).uid, (await requestOf(subs[1]!)).uid]
  const approve = (uid: string) => answerTo(uid, 'approve', { roleUid: roleUids.viewer })
  time += 30 * day - 1
  ok(await approve(requests[0]))
  time += 1
  assertNotFound(await approve(requests[1]), 'iam.pinfold.dev/AccessRequest', requests[1])
})

test('a push token is valid until it expires', async () => {
  const { pushToken, secret } = ok(
    await (await owner()).post(`/control/v1/pushTokens/${org}`, { name: 'laptop', ttl: '3600s' }),
  )
  const authorization = `Basic ${Buffer.from(`${pushToken.userName}:${secret}`).toString('base64')}`
  const status = async () => (await pinfold.anonymous.call('GET', '/token', undefined, { authorization })).status
  time += hour - 1
  assert.equal(await status(), 200)
  time += 1
  assert.equal(await status(), 401)
})

test('an invitation can be redeemed until it expires', async () => {
  const invite = async (): Promise<Json> =>
    ok(await (await owner()).post(`/iam/v2/groupInvites/${org}`, { roleUid: roleUids.viewer, ttl: '3600s' }))
  const accept = async ({ code }: Json): Promise<Answer> =>
    pinfold.withToken(await personToken(newSubject())).post('/auth/v1/register', { code })
  const invites = [await invite(), await invite()]
  time += hour - 1
  ok(await accept(invites[0]!))
  time += 1
  assertError(await accept(invites[1]!), 403, 7, 'INVITE_EXPIRED')
})
