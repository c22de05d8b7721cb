// Rate limits for clients without a valid token, at every entry point.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { outside } from '../support/exchange.ts'
import { assertError } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { captureLog } from '../support/log.ts'
import { type Answer, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { noMinutePasses } from '../support/times.ts'

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const hostOf = (pinfold: Pinfold) => new URL(pinfold.url).host
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const { getRepo } = ReposService.method
const { ping } = PingService.method

/** A server on which one network address has used up its limit, with a fixed clock. */
async function startExhausted() {
  const pinfold = await startPinfold({ ...noMinutePasses, requestsPerSource: 1, exchangesPerSource: 1000 })
  assert.equal((await pinfold.anonymous.get('/ping/v2/ping')).status, 200)
  return pinfold
}

function assertLater(answer: Answer, what: string): void {
  assert.equal(answer.status, 429, `${what}: ${answer.text}`)
  assert.equal(answer.headers.get('retry-after'), '60', what)
}

test('each open endpoint counts the requests of a network address, and refuses in its own format', async () => {
  await using pinfold = await startExhausted()
  const { anonymous } = pinfold
  const rest = await anonymous.get('/ping/v2/ping')
  assertError(rest, 429, 8, 'RATE_LIMITED', { type: 'RetryInfo', retryDelay: '60s' })
  assertLater(rest, 'an open method')
  assertLater(await anonymous.get('/registry/v2/repos'), 'a method that needs a token')
  assertLater(await anonymous.get('/nowhere'), 'no path')
  assertLater(await anonymous.post('/sts/exchange'), 'the exchange')
  assertLater(await anonymous.post('/auth/v1/register'), 'registration')
  for (const path of [
    '/.well-known/jwks.json',
    '/.well-known/openid-configuration',
    '/openapi.json',
    '/metrics',
    '/oauth',
  ]) {
    assertLater(await anonymous.get(path), path)
  }
  const oauth = await anonymous.call('POST', '/oauth/token', 'grant_type=x', form)
  assertLater(oauth, 'the token endpoint')
  assert.equal(oauth.body.error, 'slow_down')
  for (const path of ['/v2/', '/token?scope=repository:public/app:pull', '/v2/public/app/manifests/latest']) {
    const answer = await anonymous.get(path)
    assertLater(answer, path)
    assert.equal(answer.body.errors[0].code, 'TOOMANYREQUESTS')
  }
  // A request with an invalid credential counts like one without.
  for (const [path, authorization] of [
    ['/ping/v2/ping', 'Bearer x'],
    ['/openapi.json', 'Bearer x'],
    ['/oauth', 'Bearer x'],
    ['/oauth/token', 'Bearer x'],
    ['/nowhere', 'Bearer x'],
    ['/v2/', 'Bearer'],
    ['/token', 'Basic !!'],
  ] as const) {
    assertLater(await anonymous.call('GET', path, undefined, { authorization }), `${path} with ${authorization}`)
  }

  for (const path of ['/healthz', '/readyz']) assert.equal((await anonymous.get(path)).status, 200, path)
  assert.equal((await pinfold.operator.get('/registry/v2/repos')).status, 200, 'a token of ours')
})

test('a request with an invalid token counts like one without a token', async () => {
  await using pinfold = await startPinfold({ ...noMinutePasses, requestsPerSource: 2 })
  const token = await pinfold.tokenFor('', { audience: hostOf(pinfold) }).catch(() => '')
  const asked = []
  for (let i = 0; i < 3; i++) asked.push((await pinfold.withToken(token).get('/v2/public/app/manifests/latest')).status)
  assert.equal(asked.at(-1), 429, asked.join())
})

test('counts gRPC requests, including those that the library answers itself', async () => {
  await using pinfold = await startExhausted()
  using grpc = openGrpc(pinfold.port)
  const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '60s' }
  for (const desc of [ping, getRepo]) {
    const { code, details } = await grpc.call(desc, create(desc.input))
    assert.deepEqual([code, details[1]], [8, retry], desc.name)
  }
  for (const path of ['/nobody.Service/Do', '/grpc.health.v1.Health/Check']) {
    const { code, details } = await grpc.send(path, Buffer.alloc(0))
    assert.deepEqual([code, details[1]], [8, retry], path)
  }
  const { token } = pinfold.operator
  assert.equal((await grpc.call(getRepo, create(getRepo.input, { uid: 'x' }), { token })).code, 3)
})

test('counts a gRPC stream without a token, and refuses it when it opens, with or without a message', async () => {
  const logged = captureLog()
  await using pinfold = await startPinfold({ ...noMinutePasses, requestsPerSource: 3 })
  pinfold.app.log.info = logged.log.info
  const session = http2.connect(`http://127.0.0.1:${pinfold.port}`)
  const open = (path: string) => {
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
    return stream.on('error', () => {}).resume()
  }
  const path = `/${getRepo.parent.typeName}/${getRepo.name}`
  // No message follows, so these calls could not get an answer from the method.
  const silent = [path, path, `/${ping.parent.typeName}/${ping.name}`].map(open)
  const [head] = (await once(open(path), 'response')) as [http2.IncomingHttpHeaders]
  assert.deepEqual([head[':status'], head['grpc-status']], [200, '8'])
  const { method, code, transport } = await logged.until(({ message }) => message === 'request')
  assert.deepEqual(
    [method, code, transport],
    [`${getRepo.parent.typeName}/${getRepo.name}`, 'RESOURCE_EXHAUSTED', 'grpc'],
  )
  assert.equal((await pinfold.anonymous.get('/ping/v2/ping')).status, 429)
  for (const stream of silent) stream.close()
  session.destroy()
})

test('gRPC refuses and counts an invalid token before it reads a message', async () => {
  await using pinfold = await startPinfold({ ...noMinutePasses, refusalsPerSource: 2, maxBodyBytes: 1024 })
  using grpc = openGrpc(pinfold.port)
  const path = `/${getRepo.parent.typeName}/${getRepo.name}`
  const codes = []
  for (const bytes of [Buffer.alloc(5000), Buffer.from('\xff'), Buffer.alloc(0)]) {
    codes.push((await grpc.send(path, bytes, { token: 'x.y.z' })).code)
  }
  assert.deepEqual(codes, [16, 16, 8])
})

test('gRPC refuses an unreadable message with an error code, and writes a log line', async () => {
  const logged = captureLog()
  await using pinfold = await startPinfold()
  pinfold.app.log.info = logged.log.info
  using grpc = openGrpc(pinfold.port)
  for (const [desc, token] of [
    [getRepo, pinfold.operator.token],
    [ping, undefined],
  ] as const) {
    const path = `/${desc.parent.typeName}/${desc.name}`
    const { code, details } = await grpc.send(path, Buffer.from([0xff, 0xff, 0xff]), token ? { token } : {})
    assert.equal(code, 3)
    assert.equal(details.find(({ fieldViolations }) => fieldViolations)?.fieldViolations[0].field, 'message')
    const line = await logged.until(({ message, method }) => message === 'request' && method === path.slice(1))
    assert.deepEqual([line.code, line.transport], ['INVALID_ARGUMENT', 'grpc'])
  }
})

test('counts HTTP/2 requests at each entry point', async () => {
  await using pinfold = await startExhausted()
  const session = http2.connect(`http://127.0.0.1:${pinfold.port}`)
  try {
    for (const path of [
      '/ping/v2/ping',
      '/registry/v2/repos',
      '/nowhere',
      '/openapi.json',
      '/oauth/token',
      '/v2/',
      '/token',
    ]) {
      const [head] = (await once(session.request({ ':path': path }).resume(), 'response')) as [
        http2.IncomingHttpHeaders,
      ]
      assert.deepEqual([head[':status'], head['retry-after']], [429, '60'], path)
    }
  } finally {
    session.destroy()
  }
})

test('invalid tokens have a stricter limit, which does not block valid tokens', async () => {
  await using pinfold = await startPinfold({ ...noMinutePasses, refusalsPerSource: 3 })
  const { uid } = await pinfold.seed.group()
  const identity = await pinfold.seed.member(uid, roleUids.viewer)
  const ask = async (token: string) => (await pinfold.withToken(token).get('/iam/v2/identities')).status
  // If valid tokens were counted, the first invalid token would exceed the limit.
  for (let i = 0; i < 4; i++) assert.equal(await ask(await pinfold.tokenFor(identity.uid)), 200)
  assert.deepEqual([await ask('x.y.z'), await ask('x'), await ask('x.y.z'), await ask('x')], [401, 401, 401, 429])
  const again = await pinfold.withToken('x').get('/iam/v2/identities')
  assertError(again, 429, 8, 'RATE_LIMITED', { type: 'RetryInfo', retryDelay: '20s' })
  assert.equal(await ask(await pinfold.tokenFor(identity.uid)), 200, 'a token that was never seen before')
  assert.equal(await ask(await pinfold.tokenFor('ab'.repeat(20))), 429, 'a token whose identity is gone is a wrong one')
})

/** An identity that logs in at the registry with a password, on a server. */
async function seedPuller(pinfold: Pinfold, issuer: FakeIssuer) {
  const org = await pinfold.seed.group()
  const staticKeys = { issuer: issuer.url, subject: 'puller', issuerKeys: JSON.stringify(issuer.jwks()) }
  const { uid } = await pinfold.seed.identity(org.uid, { claimMatch: undefined, staticKeys })
  const password = await issuer.token({ sub: 'puller', aud: hostOf(pinfold) })
  const login = (secret: string) =>
    pinfold.anonymous.call('GET', '/token', undefined, { authorization: basic(uid, secret) })
  return { password, login }
}

test('a registry client can log in and pull, whatever other clients at its address send', async () => {
  await using pinfold = await startPinfold({ ...noMinutePasses, refusalsPerSource: 2 })
  await using issuer = await startIssuer()
  const { password, login } = await seedPuller(pinfold, issuer)
  const stale = await issuer.token({ sub: 'puller', aud: hostOf(pinfold), exp: 1 })
  // The same user name with an old password, as in a pull secret that was never replaced.
  assert.deepEqual([(await login('x')).status, (await login(stale)).status], [401, 401])
  const later = await login(stale)
  assert.deepEqual([later.status, later.body.errors[0].code], [429, 'TOOMANYREQUESTS'])
  assert.equal(later.headers.get('retry-after'), '30')
  assert.equal((await pinfold.withToken('x').get('/v2/')).status, 429)

  const answer = await login(password)
  assert.equal(answer.status, 200, answer.text)
  assert.equal((await pinfold.withToken(answer.body.token).get('/v2/')).status, 200)
  const token = await pinfold.tokenFor(operatorUid, { audience: hostOf(pinfold) })
  const asToken = { authorization: basic('_token', token) }
  assert.equal((await pinfold.anonymous.call('GET', '/token', undefined, asToken)).status, 200)
})

test('verifies no password for a network address above its limit, but accepts tokens of this server', async () => {
  await using pinfold = await startExhausted()
  await using issuer = await startIssuer()
  const { password, login } = await seedPuller(pinfold, issuer)
  assert.equal((await login(password)).status, 429)
  const token = await pinfold.tokenFor(operatorUid, { audience: hostOf(pinfold) })
  const asToken = { authorization: basic('_token', token) }
  assert.equal((await pinfold.anonymous.call('GET', '/token', undefined, asToken)).status, 200)
  assert.equal((await pinfold.withToken(token).get('/v2/')).status, 200)
})

test('limits successful exchanges and password logins per identity together; forged tokens do not count', async () => {
  await using issuer = await startIssuer()
  await using pinfold = await startPinfold({ ...noMinutePasses, ...outside, exchangesPerIdentity: 2 })
  const org = await pinfold.seed.group()
  const trust = { claimMatch: { issuer: issuer.url, subject: 'job' } }
  const [one, other] = [await pinfold.seed.identity(org.uid, trust), await pinfold.seed.identity(org.uid, trust)]
  const token = await issuer.token({ sub: 'job', aud: pinfold.url })
  const exchange = async (identity: string, credential = token) => {
    const query = new URLSearchParams({ aud: pinfold.url, identity })
    return pinfold.withToken(credential).call('POST', `/sts/exchange?${query}`)
  }
  const forged = `${token.split('.').slice(0, 2).join('.')}.AAAA`
  for (let i = 0; i < 3; i++) assert.equal((await exchange(one.uid, forged)).status, 401)
  assert.equal((await exchange(one.uid)).status, 200)
  const login = await pinfold.anonymous.call('GET', '/token', undefined, { authorization: basic(one.uid, token) })
  assert.equal(login.status, 200, login.text)
  const refused = await exchange(one.uid)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '30'])
  assert.equal((await exchange(other.uid)).status, 200)
})

test('readiness checks query the database at most once a second, and never concurrently', async () => {
  let time = Date.now()
  await using pinfold = await startPinfold({ clock: () => new Date(time) })
  const { db } = pinfold.app
  const ping = db.ping.bind(db)
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  let pings = 0
  db.ping = async () => {
    pings++
    asked.resolve()
    await answered.promise
    return ping()
  }
  const ready = async () => (await pinfold.anonymous.get('/readyz')).status
  const first = ready()
  await asked.promise
  // The query can take any time.
  time += 5000
  const others = [1, 2, 3].map(ready)
  answered.resolve()
  assert.deepEqual(await Promise.all([first, ...others]), [200, 200, 200, 200])
  assert.equal(await ready(), 200)
  assert.equal(pings, 1)
  time += 1000
  db.ping = () => Promise.reject(new Error('away'))
  assert.equal(await ready(), 503)
  db.ping = ping
  assert.equal(await ready(), 503)
  time += 1000
  assert.equal(await ready(), 200)
})
