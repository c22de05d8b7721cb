// The service of version 1 that registers an issuer, a subject and keys without naming a group.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { personUid } from '#domains/iam/identities/people.ts'
import { assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const { pinfold, member, operator, stranger, ...scene } = await startScene({
  allowInsecureIssuers: true,
  allowPrivateAddresses: true,
})
const org: string = scene.org.uid
// Requests contain the keys of the issuer, so the server never requests them from the issuer.
const issuer = await startIssuer()
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const path = '/iam/v1/identities'
const body = (more: Json = {}): Json => ({
  subject: 'robot',
  issuer: issuer.url,
  issuerKeys: JSON.stringify(issuer.jwks()),
  ...more,
})
function assertRefused(answer: Answer, status: number, reason: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.details[0].reason, reason)
}

test('creates an identity with static keys in the only group of the caller, which tokens can use by uid', async () => {
  const owner = await member(roleUids.owner)
  let made: Json = {}
  const events = await eventsOf(pinfold, async () => {
    made = ok(await owner.post(path, body({ id: 'ignored' })))
  })
  const { id, expiration, ...rest } = made
  assert.deepEqual(rest, body())
  assert.equal(id.slice(0, 40), org)
  const days = (Date.parse(expiration) - Date.now()) / 86_400_000
  assert.ok(days > 29 && days <= 30, expiration)
  assert.deepEqual(
    events.map(({ type, subject, group }) => [type, subject, group]),
    [['dev.pinfold.api.iam.identity.created.v1', id, org]],
  )
  const found = ok(await owner.get(`/iam/v2/identities/${id}`))
  assert.equal(found.name, 'robot')
  assert.equal(found.staticKeys.issuer, issuer.url)

  const exchange = async (identity: string) => {
    const token = await issuer.token({ sub: 'robot', aud: pinfold.url })
    return pinfold.withToken(token).call('POST', `/sts/exchange?aud=${encodeURIComponent(pinfold.url)}${identity}`)
  }
  const { token } = ok(await exchange(`&identity=${encodeURIComponent(id)}`))
  // The identity has no role yet.
  const answer = await pinfold.withToken(token).post(`/iam/v2/groups/${org}`, { name: 'x' })
  assertRefused(answer, 403, 'PERMISSION_DENIED')
})

test('the keys of an identity are valid for no other identity, nor for the person with the same issuer and subject', async () => {
  const owner = await member(roleUids.owner)
  const attacker = await startIssuer()
  const { id } = ok(await owner.post(path, body({ subject: 'ada', issuerKeys: JSON.stringify(attacker.jwks()) })))
  const token = await attacker.token({ iss: issuer.url, sub: 'ada', aud: pinfold.url })
  await attacker[Symbol.asyncDispose]()
  const exchange = (identity: string) =>
    pinfold.withToken(token).call('POST', `/sts/exchange?aud=${encodeURIComponent(pinfold.url)}${identity}`)
  ok(await exchange(`&identity=${encodeURIComponent(id)}`))
  await pinfold.seed.person({ uid: personUid(issuer.url, 'ada') })
  assert.notEqual((await exchange('')).status, 200)
  const other = ok(await owner.post(path, body({ subject: 'ada' })))
  assert.notEqual((await exchange(`&identity=${encodeURIComponent(other.id)}`)).status, 200)
})

test('a caller who can create identities in several groups must name one', async () => {
  const owner = await member(roleUids.owner)
  const second = (await pinfold.seed.group()).uid
  const { uid } = await pinfold.seed.person()
  await pinfold.seed.binding(org, uid, roleUids.owner)
  await pinfold.seed.binding(second, uid, roleUids.owner)
  for (const client of [await pinfold.as(uid), operator]) {
    const answer = await client.post(path, body())
    assertRefused(answer, 400, 'FAILED_PRECONDITION')
    assert.match(answer.text, /PARENT_NOT_UNIQUE/)
  }
  ok(await owner.post(path, body()))
})

test('refuses a caller without the capability, and missing or unusable fields', async () => {
  assertRefused(await pinfold.anonymous.post(path, body()), 401, 'UNAUTHENTICATED')
  for (const client of [await stranger(), await member(roleUids.viewer)]) {
    assertRefused(await client.post(path, body()), 403, 'PERMISSION_DENIED')
  }
  const owner = await member(roleUids.owner)
  const late = new Date(Date.now() + 31 * 86_400_000).toISOString()
  assertInvalid(await owner.post(path, body({ issuer: '' })), 'issuer')
  assertInvalid(await owner.post(path, body({ subject: '' })), 'subject')
  assertInvalid(await owner.post(path, body({ issuerKeys: 'keys' })), 'issuer_keys')
  assertInvalid(await owner.post(path, body({ expiration: late })), 'expiration')
  assert.equal((await owner.post(path, body({ issuerKey: 'x' }))).status, 400)
})
