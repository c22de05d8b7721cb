import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newUid } from '#lib/uid.ts'
import { assertInvalid } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { noMinutePasses } from '../support/times.ts'

let issuer: FakeIssuer
let pinfold: Pinfold
let org: Json
before(async () => {
  issuer = await startIssuer('ES256')
  pinfold = await startPinfold({
    ...noMinutePasses,
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    exchangesPerIssuer: 2,
  })
  org = await pinfold.seed.group()
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const exchange = (token: string, query: string) => {
  return pinfold.withToken(token).call('POST', `/sts/exchange?aud=${encodeURIComponent(pinfold.url)}${query}`)
}

test('an exchange accepts at most a hundred scopes, capabilities and audiences', async () => {
  const token = await issuer.token({ sub: 'job', aud: pinfold.url })
  const many = (name: string, value: string) => `&${name}=${value}`.repeat(101)
  const scopes = Array.from({ length: 101 }, () => `&scopes=${newUid('/')}`)
  assertInvalid(await exchange(token, scopes.join('')), 'scopes')
  assertInvalid(await exchange(token, many('cap', 'repo.list')), 'cap')
  assertInvalid(await exchange(token, many('aud', encodeURIComponent(pinfold.url))), 'aud')
})

test('a set of static keys has at most ten keys', async () => {
  const [key] = issuer.jwks().keys
  const withKeys = (count: number) => {
    const issuerKeys = JSON.stringify({ keys: Array.from({ length: count }, () => key) })
    return pinfold.operator.post(`/iam/v2/identities/${org.uid}`, {
      name: 'static',
      staticKeys: { issuer: 'https://i.example', subject: 's', issuerKeys },
    })
  }
  assert.equal((await withKeys(10)).status, 200)
  assertInvalid(await withKeys(11), 'static_keys.issuer_keys')
})

test("an issuer's pattern is short enough to be matched before anything is verified", async () => {
  const withPattern = (issuerPattern: string) => {
    return pinfold.operator.post(`/iam/v2/identities/${org.uid}`, {
      name: 'pattern',
      claimMatch: { issuerPattern, subject: 's' },
    })
  }
  assert.equal(
    (await withPattern('https://oidc\\.(?:eks|gke)\\.[a-z0-9-]{1,30}\\.example\\.com/id/[A-F0-9]+')).status,
    200,
  )
  assertInvalid(await withPattern('https://.{0,1000}'), 'claim_match.issuer_pattern')
})

test('static keys for a well-known issuer do not use up the exchange limit of this issuer', async () => {
  const staticKeys = { issuer: issuer.url, subject: 'mine', issuerKeys: JSON.stringify(issuer.jwks()) }
  const mine = await pinfold.seed.identity(org.uid, { claimMatch: undefined, staticKeys })
  const theirs = await pinfold.seed.identity(org.uid, { claimMatch: { issuer: issuer.url, subject: 'theirs' } })
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) {
    const token = await issuer.token({ sub: 'mine', aud: pinfold.url })
    statuses.push((await exchange(token, `&identity=${mine.uid}`)).status)
  }
  assert.deepEqual(statuses, [200, 200, 429])
  const token = await issuer.token({ sub: 'theirs', aud: pinfold.url })
  assert.equal((await exchange(token, `&identity=${theirs.uid}`)).status, 200)
})

test('only a token with names above the length limit gets the error about their length', async () => {
  const made = await pinfold.operator.post(`/iam/v2/identities/${org.uid}`, {
    name: 'long',
    claimMatch: { issuer: issuer.url, subjectPattern: '.*', audiencePattern: '.*' },
  })
  const identity = `&identity=${made.body.uid}`
  const told = async (claims: Json): Promise<string> => {
    const answer = await exchange(await issuer.token({ sub: 'job', aud: pinfold.url, ...claims }), identity)
    return `${answer.status} ${answer.body.message}`
  }
  const tooLong = '401 the issuer, subject or audience of the token is too long'
  assert.equal(await told({ sub: 's'.repeat(2049) }), tooLong)
  assert.equal(await told({ iss: `https://i.example/${'s'.repeat(2048)}` }), tooLong)
  // Each character has three bytes, in our messages too.
  assert.equal(await told({ aud: '\u20ac'.repeat(3500) }), tooLong)
})
