// Budgets of main-thread time at each entry point, as clients see them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { assertError } from '../support/expect.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { registryClient } from '../support/registry.ts'
import { plantTag } from '../support/tags.ts'

const { getRepo } = ReposService.method
const { ping } = PingService.method

/** A debt as large as the burst. Paying it back takes longer than a test. */
const retrySeconds = 11
const tiny = { budgetCallerPercent: 1, budgetOrganizationPercent: 1, budgetBurstMs: 100 }

/**
 * A server with two organizations. While `isTicking`, each clock reading adds a millisecond, so each request uses time, on any
 * machine.
 */
async function startScene(settings: Json = {}) {
  const clock = { now: 0, isTicking: false }
  const monotonic = () => (clock.isTicking ? ++clock.now : clock.now)
  const pinfold = await startPinfold({ ...tiny, ...settings, monotonic })
  const [acme, globex] = [await pinfold.seed.group(), await pinfold.seed.group()]
  const [ci, other] = [
    await pinfold.seed.member(acme!.uid, roleUids.owner),
    await pinfold.seed.member(globex!.uid, roleUids.owner),
  ]
  const repo = await pinfold.seed.repo(acme!.uid)
  const scene = {
    pinfold,
    clock,
    ci: ci!,
    repo,
    acme,
    caller: await pinfold.as(ci!.uid),
    other: await pinfold.as(other!.uid),
  }
  await pause(scene)
  return scene
}

/** Advances the clock by one minute, and lets the event loop process requests, so that no earlier caller counts as waiting. */
async function pause({ pinfold, clock }: { pinfold: Pinfold; clock: { now: number } }): Promise<void> {
  clock.now += 60_000
  for (let i = 0; i < 25; i++) await pinfold.anonymous.get('/healthz')
}

/** Lists until the budget is exhausted and in debt. No other caller sends anything meanwhile. */
async function exhaust(clock: { isTicking: boolean }, client: Client, path = '/registry/v2/repos'): Promise<void> {
  clock.isTicking = true
  for (let i = 0; i < 60; i++) {
    const { status, text } = await client.get(path)
    assert.equal(status, 200, text)
  }
  clock.isTicking = false
}

async function refusals(pinfold: Pinfold, transport: string): Promise<number> {
  const text = await pinfold.app.metrics.registry.metrics()
  return Number(new RegExp(`pinfold_budget_refusals_total{transport="${transport}"} (\\d+)`).exec(text)?.[1] ?? 0)
}

test('REST refuses a caller over its budget only while other callers send requests', async () => {
  const { pinfold, clock, caller, other } = await startScene()
  await using _ = pinfold
  await exhaust(clock, caller)
  assert.equal((await other.get('/registry/v2/repos')).status, 200)
  const answer = await caller.get('/registry/v2/repos')
  assertError(answer, 429, 8, 'RATE_LIMITED', { type: 'RetryInfo', retryDelay: `${retrySeconds}s` })
  assert.equal(answer.headers.get('retry-after'), String(retrySeconds))
  assert.equal((await other.get('/registry/v2/repos')).status, 200, 'the other one goes on')
  assert.equal((await pinfold.operator.get('/registry/v2/repos')).status, 200, 'and so does the operator')
  assert.equal(await refusals(pinfold, 'rest'), 1)
  clock.now += 1500
  const later: number[] = []
  for (let i = 0; i < 25; i++) later.push((await caller.get('/registry/v2/repos')).status)
  assert.equal(later.at(-1), 200, 'nobody else has sent anything lately')
})

test('REST refuses a caller over its budget before it reads the body', async () => {
  const { pinfold, clock, caller, other, acme } = await startScene({ maxBodyBytes: 1024 })
  await using _ = pinfold
  await exhaust(clock, caller)
  await other.get('/registry/v2/repos')
  const answer = await caller.post(`/registry/v2/repos/${acme!.uid}`, { description: 'x'.repeat(5000) })
  assert.equal(answer.status, 429, answer.text)
})

test('delays a refusal, so that a client that retries at once sends few requests', async () => {
  const { pinfold, clock, caller, other } = await startScene()
  await using _ = pinfold
  await exhaust(clock, caller)
  await other.get('/registry/v2/repos')
  const events: string[] = []
  const refused = caller.get('/registry/v2/repos').then(({ status }) => events.push(`answer ${status}`))
  while ((await refusals(pinfold, 'rest')) === 0) await setImmediate()
  events.push('refused')
  await other.get('/registry/v2/repos')
  events.push('others go on')
  await refused
  assert.deepEqual(events, ['refused', 'others go on', 'answer 429'])
})

test('the registry refuses callers over their budget with TOOMANYREQUESTS and Retry-After', async () => {
  const { pinfold, clock, caller, other, ci } = await startScene()
  await using _ = pinfold
  const token = await pinfold.tokenFor(ci.uid, { audience: new URL(pinfold.url).host })
  const registry = registryClient(pinfold.url, token)
  await exhaust(clock, caller)
  assert.equal((await registry.call('GET', '')).status, 200)
  await other.get('/registry/v2/repos')
  const { status, headers, body } = await registry.call('GET', '')
  assert.deepEqual([status, headers['retry-after']], [429, String(retrySeconds)])
  assert.equal(body.errors[0].code, 'TOOMANYREQUESTS')
  assert.equal(await refusals(pinfold, 'registry'), 1)
})

test('gRPC refuses callers over their budget with RESOURCE_EXHAUSTED and RetryInfo, before it reads the message', async () => {
  const { pinfold, clock, caller, other, repo } = await startScene()
  await using _ = pinfold
  using grpc = openGrpc(pinfold.port)
  const { token } = caller
  await exhaust(clock, caller)
  const request = create(getRepo.input, { uid: repo.uid })
  assert.equal((await grpc.call(getRepo, request, { token })).code, 0)
  await other.get('/registry/v2/repos')
  const path = `/${getRepo.parent.typeName}/${getRepo.name}`
  for (const answer of [
    await grpc.call(getRepo, request, { token }),
    await grpc.send(path, Buffer.from([0xff, 0xff]), { token: token! }),
  ]) {
    const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retrySeconds}s` }
    assert.deepEqual([answer.code, answer.details[1]], [8, retry])
  }
  assert.equal(await refusals(pinfold, 'grpc'), 2)
})

test('charges gRPC calls and the data that they read to their caller', async () => {
  const { pinfold, clock, caller, other, repo } = await startScene()
  await using _ = pinfold
  using grpc = openGrpc(pinfold.port)
  clock.isTicking = true
  for (let i = 0; i < 60; i++)
    await grpc.call(getRepo, create(getRepo.input, { uid: repo.uid }), { token: caller.token })
  clock.isTicking = false
  await other.get('/registry/v2/repos')
  assert.equal((await caller.get('/registry/v2/repos')).status, 429)
})

test('identities of one organization share its budget', async () => {
  const { pinfold, clock, caller, other, acme } = await startScene({ budgetCallerPercent: 100 })
  await using _ = pinfold
  const colleague = await pinfold.as((await pinfold.seed.member(acme!.uid, roleUids.viewer)).uid)
  await pause({ pinfold, clock })
  await exhaust(clock, caller)
  assert.equal((await colleague.get('/registry/v2/repos')).status, 200, 'nobody outside of the organization waits')
  await other.get('/registry/v2/repos')
  assert.equal((await colleague.get('/registry/v2/repos')).status, 429)
})

test('limits anonymous callers by their network address', async () => {
  const { pinfold, clock, other } = await startScene({ trustedProxies: ['127.0.0.1'] })
  await using _ = pinfold
  using grpc = openGrpc(pinfold.port)
  const from = (source: string) => ({ 'x-forwarded-for': source })
  const ask = (source: string) => pinfold.anonymous.call('GET', '/ping/v2/ping', undefined, from(source))
  clock.isTicking = true
  for (let i = 0; i < 60; i++) assert.equal((await ask('192.0.2.1')).status, 200)
  clock.isTicking = false
  await other.get('/registry/v2/repos')
  const refused = await ask('192.0.2.1')
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, String(retrySeconds)])
  assert.equal((await ask('192.0.2.2')).status, 200)
  const call = (source: string) => grpc.call(ping, create(ping.input), { metadata: from(source) })
  assert.deepEqual([(await call('192.0.2.1')).code, (await call('192.0.2.2')).code], [8, 0])
})

test('an anonymous request counts as waiting when it is served, not when it is answered with a challenge', async () => {
  const { pinfold, clock, caller } = await startScene({ trustedProxies: ['127.0.0.1'] })
  await using _ = pinfold
  const { uid } = await pinfold.seed.repo((await pinfold.seed.group('', { name: 'public' })).uid, { name: 'base' })
  await plantTag(pinfold, uid, 'latest')
  await pause({ pinfold, clock })
  const from = { 'x-forwarded-for': '192.0.2.1' }
  const status = async (path: string, client = pinfold.anonymous) => {
    return (await client.call('GET', path, undefined, from)).status
  }
  const granted = await pinfold.anonymous.get('/token?scope=repository:public/base:pull')
  const holder = pinfold.withToken(granted.body.token)
  await exhaust(clock, caller)
  for (const path of [
    '/v2/',
    '/v2/public/base/manifests/latest',
    '/token',
    '/registry/v2/repos',
    '/none',
    '/ledger/x',
  ]) {
    assert.ok([401, 404].includes(await status(path)), path)
  }
  assert.equal((await caller.get('/registry/v2/repos')).status, 200, 'a challenge is no other caller')
  assert.equal(await status('/v2/public/base/manifests/latest', holder), 200)
  assert.equal((await caller.get('/registry/v2/repos')).status, 429, 'an anonymous pull is one')
})

test('gRPC health checks have no budget, and do not delay other callers', async () => {
  const { pinfold, clock, caller, other } = await startScene({ trustedProxies: ['127.0.0.1'] })
  await using _ = pinfold
  using grpc = openGrpc(pinfold.port)
  const from = (source: string) => ({ metadata: { 'x-forwarded-for': source } })
  const check = (source: string) => grpc.send('/grpc.health.v1.Health/Check', Buffer.alloc(0), from(source))
  await exhaust(clock, caller)
  assert.equal((await check('192.0.2.1')).code, 0)
  assert.equal((await caller.get('/registry/v2/repos')).status, 200, 'a health check does not count as waiting')
  await pause({ pinfold, clock })
  clock.isTicking = true
  for (let i = 0; i < 60; i++) await grpc.call(ping, create(ping.input), from('192.0.2.1'))
  clock.isTicking = false
  await other.get('/registry/v2/repos')
  assert.equal((await grpc.call(ping, create(ping.input), from('192.0.2.1'))).code, 8)
  assert.equal((await check('192.0.2.1')).code, 0)
})

test('the metrics show how much time requests have used', async () => {
  const { pinfold, clock, caller } = await startScene()
  await using _ = pinfold
  const used = async () => {
    const text = await pinfold.app.metrics.registry.metrics()
    return Number(/^pinfold_request_thread_seconds_total (\S+)/m.exec(text)![1])
  }
  const before = await used()
  await exhaust(clock, caller)
  assert.ok((await used()) - before >= 0.2, 'every request has used some milliseconds')
})
