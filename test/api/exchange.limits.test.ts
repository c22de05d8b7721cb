// Rate limits of the exchange, for one client address and for the tokens of one issuer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { outside, type Scene, searchOf, startExchange, subject } from '../support/exchange.ts'
import { assertError, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Json, startPinfold } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { noMinutePasses } from '../support/times.ts'

const desc = SecurityTokenService.method.exchange

/** RESOURCE_EXHAUSTED, with the same delay in the details and in the header. */
function assertTooMany(answer: Answer, perMinute: number): void {
  const seconds = Math.ceil(60 / perMinute)
  assertError(answer, 429, 8, 'RATE_LIMITED', { type: 'RetryInfo', retryDelay: `${seconds}s` })
  assert.equal(answer.headers.get('retry-after'), String(seconds))
}

function from({ pinfold }: Scene, token: string, identity: string, address: string): Promise<Answer> {
  const search = searchOf({ aud: pinfold.url, identity })
  return pinfold.withToken(token).call('POST', `/sts/exchange?${search}`, undefined, { 'x-forwarded-for': address })
}

test('limits the requests of one network address, for any content and over each transport', async () => {
  await using scene = await startExchange({ ...noMinutePasses, exchangesPerSource: 4 })
  using grpc = openGrpc(scene.pinfold.port)
  const { uid: identity } = await scene.identity()
  const token = await scene.token()
  ok(await scene.exchange(token, { identity }))
  assert.equal((await scene.exchange('x.y.z', { identity })).status, 401)
  assert.equal((await scene.exchange(undefined, { identity: 'x' })).status, 400)
  assert.equal((await grpc.call(desc, create(desc.input), { token })).code, 3)

  assertTooMany(await scene.exchange(token, { identity }), 4)
  assertTooMany(await from(scene, token, identity, '192.0.2.1'), 4)
  const refused = await grpc.call(desc, create(desc.input, { aud: [scene.pinfold.url], identity }), { token })
  assert.equal(refused.code, 8)
  assert.deepEqual(refused.details[1], { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '15s' })
  const form = searchOf({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    identity,
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const oauth = await scene.pinfold.anonymous.call('POST', '/oauth/token', form.toString(), headers)
  assert.deepEqual([oauth.status, oauth.body.error], [429, 'slow_down'])
  assert.equal(oauth.headers.get('retry-after'), '15')
  // Callers with a token of this server are not subject to this limit.
  ok(await scene.pinfold.operator.get('/registry/v2/repos'))
})

test('takes the client address from a trusted proxy, and ignores further addresses that the client adds', async () => {
  await using scene = await startExchange({
    ...noMinutePasses,
    exchangesPerSource: 1,
    trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'],
  })
  using grpc = openGrpc(scene.pinfold.port)
  const { uid: identity } = await scene.identity()
  const token = await scene.token()
  const ask = (address: string) => from(scene, token, identity, address)
  ok(await ask('192.0.2.1'))
  ok(await ask('192.0.2.2'))
  assertTooMany(await ask('192.0.2.1'), 1)
  assertTooMany(await ask('198.51.100.7, 192.0.2.1'), 1)
  assertTooMany(await ask('192.0.2.1, 10.1.2.3'), 1)
  assertTooMany(await ask('192.0.2.1:4711'), 1)
  const metadata = { 'x-forwarded-for': '192.0.2.1' }
  assert.equal((await grpc.call(desc, create(desc.input), { token, metadata })).code, 8)
  // A client usually has a whole /64.
  ok(await ask('2001:db8::1'))
  assertTooMany(await ask('2001:db8::ffff'), 1)
  assertTooMany(await ask('[2001:0DB8:0:0:1::2]:4711'), 1)
  ok(await ask('2001:db8:0:1::1'))
})

test('ignores a client address from an untrusted proxy', async () => {
  await using scene = await startExchange({
    ...noMinutePasses,
    exchangesPerSource: 1,
    trustedProxies: ['192.0.2.0/24'],
  })
  const { uid: identity } = await scene.identity()
  const token = await scene.token()
  ok(await from(scene, token, identity, '192.0.2.1'))
  assertTooMany(await from(scene, token, identity, '198.51.100.1'), 1)
})

test('limits exchanges per issuer and organization, and does not count tokens that match no identity', async () => {
  await using scene = await startExchange({ ...noMinutePasses, exchangesPerIssuer: 2 })
  await using other = await startIssuer()
  const { uid: identity } = await scene.identity()
  const elsewhere = await scene.identity({ claimMatch: { issuer: other.url, subject } })
  const neighbour = await scene.pinfold.seed.group()
  const trust = { claimMatch: { issuer: scene.issuer.url, subject } }
  const { uid: theirs } = await scene.pinfold.seed.identity(neighbour.uid, trust)
  const forged = `${(await scene.token()).split('.').slice(0, 2).join('.')}.AAAA`
  for (let left = 5; left > 0; left--) {
    assert.equal((await scene.exchange(forged, { identity })).status, 401)
    assert.equal((await scene.exchange(await scene.token({ sub: 'somebody else' }), { identity })).status, 403)
    assert.equal((await scene.exchange(await scene.token({ aud: 'elsewhere' }), { identity })).status, 401)
  }
  const claims: Json = { sub: subject, aud: scene.pinfold.url }
  ok(await scene.exchange(await scene.token(), { identity }))
  ok(await scene.exchange(await scene.token(), { identity }))
  assertTooMany(await scene.exchange(await scene.token(), { identity }), 2)
  ok(await scene.exchange(await scene.token(), { identity: theirs }))
  ok(await scene.exchange(await other.token(claims), { identity: elsewhere.uid }))
})

test('counts refused tokens at each endpoint of the exchange, while valid tokens still work', async () => {
  await using scene = await startExchange({ ...noMinutePasses, refusalsPerSource: 2 })
  const { uid: identity } = await scene.identity()
  const wrong = await scene.token({ sub: 'somebody else' })
  assert.equal((await scene.exchange('x.y.z', { identity })).status, 401)
  assert.equal((await scene.exchange(wrong, { identity })).status, 403)
  assertTooMany(await scene.exchange(wrong, { identity }), 2)
  const oauth = async (token: string) => {
    const form = searchOf({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      identity,
    })
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return scene.pinfold.anonymous.call('POST', '/oauth/token', form.toString(), headers)
  }
  assert.equal((await oauth(wrong)).status, 429)
  ok(await oauth(await scene.token()))
  ok(await scene.exchange(await scene.token(), { identity }))
})

test('neither many registrations of one person nor a wrong token block the registration of others', async () => {
  await using issuer = await startIssuer()
  const oidcProviders = [{ issuer: issuer.url, audience: 'us' }]
  const limits = { ...noMinutePasses, exchangesPerIssuer: 1, exchangesPerIdentity: 2, refusalsPerSource: 2 }
  await using pinfold = await startPinfold({ ...outside, oidcProviders, allowSelfRegistration: true, ...limits })
  const register = async (sub: string, aud = 'us', body = {}) =>
    pinfold.withToken(await issuer.token({ sub, aud })).post('/auth/v1/register', body)
  assert.equal((await register('one', 'another client')).status, 401)
  assert.equal((await register('one', 'another client')).status, 401)
  assertTooMany(await register('one', 'another client'), 2)
  for (let i = 0; i < 2; i++) assert.equal((await register('one', 'us', { code: 'x' })).status, 400)
  assertTooMany(await register('one'), 2)
  for (const person of ['two', 'three']) ok(await register(person))
})
