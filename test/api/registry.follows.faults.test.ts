// Faults of upstreams: no fault changes a tag, reaches a private address, or has effects for long.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { createFollowJob } from '#domains/mirrors/follows/follows.job.ts'
import { createOutgoingStreams } from '#lib/net/outgoing-streams.ts'
import { privateAddresses } from '#lib/net/private-addresses.ts'
import { createHostRateLimits } from '#lib/registries/host-rate-limits.ts'
import { accountOf, createRegistryClient } from '#lib/registries/registry-client.ts'
import { createRegistryTokens } from '#lib/registries/registry-tokens.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'
import { answering, type Fault, localUpstreams, startUpstream } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
const registry = await startRegistry({ ...localUpstreams, monotonic: () => performance.now() * 1000 + shift })
const { seed, operator, org, app } = registry
after(() => registry[Symbol.asyncDispose]())

let count = 0
async function scene(body: Json = {}) {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  await app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
  const name = `broken-${count++}`
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name, url: there.url }))
  const repo = (await seed.repo(org.uid, { name })).uid as string
  there.move('3', 'one')
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream.uid, path: 'app', ...body }))
  return { there, repo }
}
const later = { ...app, clock: () => new Date(Date.now() + shift) }
async function look(afterMs = 0) {
  shift += afterMs
  return runJob(later, createFollowJob(minute))
}
const followOf = async (repo: string): Promise<Json> => ok(await operator.get(`/registry/v2/repos/${repo}/follow`))
const rowsOf = async (repo: string): Promise<number> =>
  (ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory`)).records ?? []).length

const raw =
  (answer: (res: ServerResponse) => void): Fault =>
  (_req, res) => {
    answer(res)
    return true
  }

const faults: Record<string, [fault: Fault, problem: RegExp]> = {
  'an unknown account': [answering(401), /rejected the credentials/],
  'a refused account': [answering(403), /denied access/],
  'too many requests': [answering(429, { 'retry-after': '120' }), /rate limit is exceeded \(429\)/],
  'a broken server': [answering(503), /unavailable or returned an error \(503\)/],
  'a redirect in a circle': [(req, res) => answering(307, { location: req.url ?? '/' })(req, res), /is not allowed/],
  'a redirect to a private address': [answering(307, { location: 'http://169.254.169.254/latest' }), /is not allowed/],
  'a connection that breaks': [raw((res) => res.destroy()), /is unavailable/],
  'a digest that is none': [
    raw((res) => res.writeHead(200, { 'docker-content-digest': 'sha256:no' }).end()),
    /not a valid registry/,
  ],
  'no digest at all': [raw((res) => res.writeHead(200).end()), /not a valid registry/],
  'a status that says nothing': [answering(302), /not a valid registry/],
  'a token service on a private address': [
    answering(401, { 'www-authenticate': 'Bearer realm="http://10.1.2.3/token",service="x"' }),
    /is not allowed/,
  ],
  'endless headers': [raw((res) => res.writeHead(200, { 'x-much': 'x'.repeat(100_000) }).end()), /is unavailable/],
}

for (const [name, [fault, problem]] of Object.entries(faults)) {
  test(`reports ${name}, changes and deletes no tag, and sends a GET only for a missing digest`, async () => {
    const { there, repo } = await scene({ tags: ['3'] })
    assert.equal((await look()).moves, 1)
    there.breakWith(fault)
    for (let again = 0; again < 4; again++) await look(61 * minute)
    assert.equal(await rowsOf(repo), 1)
    const follow = await followOf(repo)
    assert.equal(follow.state, 'STATE_FAILED')
    assert.match(follow.problem, problem)
    assert.ok(!/upstream|sha256|10\.1|169\.254/.test(follow.problem), follow.problem)
    assert.equal(there.count('GET /v2/app/manifests') > 0, name === 'no digest at all')
    there.mend()
    there.move('3', 'two')
    assert.equal((await look(61 * minute)).moves, 1, 'and it goes on')
    assert.notEqual((await followOf(repo)).state, 'STATE_FAILED')
  })
}

test('stops reading an endless list of tags, and still checks the known tags', async () => {
  const { there, repo } = await scene()
  await look()
  let page = 0
  there.breakWith((req, res) => {
    if (!req.url?.includes('/tags/list')) return false
    const tags = Array.from({ length: 1000 }, (_, i) => `t${page}-${i}`)
    res.writeHead(200, {
      'content-type': 'application/json',
      link: `</v2/app/tags/list?last=${page++}&n=1000>; rel="next"`,
    })
    res.end(JSON.stringify({ name: 'app', tags }))
    return true
  })
  const second = there.move('3', 'two')
  assert.equal((await look(61 * minute)).moves, 1)
  assert.equal(ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=3`)).records[0].digest, second)
  assert.ok(page <= 7, `${page} pages`)
  assert.match((await followOf(repo)).problem, /too large/)
  assert.equal((await followOf(repo)).tagCount, 1)
})

test('a tag that always fails does not prevent checks of other tags', async () => {
  const { there, repo } = await scene()
  for (const tag of ['1', '2', '4']) there.move(tag, tag)
  there.breakWith((req, res) => {
    if (req.method !== 'HEAD' || !req.url?.endsWith('/2')) return false
    return answering(400)(req, res)
  })
  const looked = await look()
  assert.deepEqual([looked.looks, looked.moves, looked.failed], [3, 3, 1])
  assert.match((await followOf(repo)).problem, /not a valid registry response \(400\)/)
})

/** The client alone, with addresses from a resolver of the test. */
function clientOf(addresses: Record<string, string>, allowed: readonly string[] = []) {
  let now = 0
  const outgoing = createOutgoingStreams({
    allowed: privateAddresses(allowed),
    allowHttp: true,
    lookup: (host, _options, callback) => callback(null, [{ address: addresses[host] ?? '192.0.2.1', family: 4 }]),
  })
  const monotonic = () => now
  const paces = createHostRateLimits(monotonic)
  const client = createRegistryClient({
    outgoing,
    tokens: createRegistryTokens(outgoing, monotonic),
    paces,
    now: () => 0,
  })
  return { client, paces, pass: (ms: number) => (now += ms) }
}
const nobody = { key: 'k', holder: 'o', username: '', password: '', requestsPerSecond: 20 }
const reasonOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'answered',
    (error: Error & { reason?: string }) => error.reason ?? error.message,
  )

test('does not connect to a host name with a private address, at first or after a redirect', async () => {
  await using there = await startUpstream()
  const { client } = clientOf({ 'public.example': '127.0.0.1', 'inner.example': '127.0.0.1' }, ['public.example'])
  const ask = (host: string) =>
    reasonOf(client.head({ ...nobody, origin: `http://${host}:${there.port}` }, 'app', '3', { timeoutMs: 10_000 }))
  assert.equal(await ask('inner.example'), 'refused')
  assert.equal(there.asked.length, 0)
  there.breakWith(answering(307, { location: `http://inner.example:${there.port}/v2/app/manifests/3` }))
  assert.equal(await ask('public.example'), 'refused')
  assert.equal(there.asked.length, 1)
})

test('sends no credential to the target of a redirect at another origin', async () => {
  await using there = await startUpstream()
  const seen: (string | undefined)[] = []
  const other = createServer((req, res) => {
    seen.push(req.headers.authorization)
    res.writeHead(200, { 'docker-content-digest': `sha256:${'a'.repeat(64)}` }).end()
  })
  other.listen(0, '127.0.0.1')
  await new Promise((resolve) => other.once('listening', resolve))
  const { port } = other.address() as AddressInfo
  there.breakWith((req, res) => {
    if (!req.headers.authorization) return answering(401, { 'www-authenticate': 'Basic realm="x"' })(req, res)
    return answering(307, { location: `http://127.0.0.1:${port}/elsewhere` })(req, res)
  })
  const { client } = clientOf({}, ['127.0.0.1'])
  const upstream = { ...nobody, origin: there.url, username: 'me', password: 'hidden words' }
  const pointed = await client.head(upstream, 'app', '3')
  assert.equal(pointed?.digest, `sha256:${'a'.repeat(64)}`)
  assert.deepEqual(seen, [undefined])
  assert.match(there.authorizations[1]!, /^Basic /)
  other.close()
})

test('gives up on an upstream that does not answer in time, and pauses longer each time', async () => {
  await using there = await startUpstream()
  there.breakWith(() => true)
  const { client, paces, pass } = clientOf({}, ['127.0.0.1'])
  const upstream = { ...nobody, origin: there.url }
  const host = accountOf(upstream)
  const ask = () => reasonOf(client.head(upstream, 'app', '3', { timeoutMs: 300 }))
  const pauses: number[] = []
  for (let i = 0; i < 12; i++) {
    assert.equal(await ask(), 'unavailable')
    assert.equal(await ask(), 'paused', 'nothing is sent meanwhile')
    pauses.push(paces.pausedMs(host))
    pass(paces.pausedMs(host))
  }
  assert.deepEqual(pauses.slice(0, 3), [5000, 10_000, 20_000])
  assert.equal(pauses.at(-1), 3_600_000)
  assert.equal(there.asked.length, 12)
})

test('limits the requests to a host, and a frequent caller does not block others', async () => {
  await using there = await startUpstream()
  there.move('3', 'one')
  const { client, pass } = clientOf({}, ['127.0.0.1'])
  const ask = (key: string, requestsPerSecond: number) =>
    reasonOf(client.head({ ...nobody, key, requestsPerSecond, origin: there.url }, 'app', '3'))
  const greedy: string[] = []
  for (let i = 0; i < 12; i++) greedy.push(await ask('greedy', 1))
  assert.deepEqual([greedy.filter((one) => one === 'answered').length, greedy.at(-1)], [10, 'paced'])
  assert.equal(await ask('slow', 20), 'answered')
  for (const key of ['a', 'b']) for (let i = 0; i < 10; i++) await ask(key, 20)
  assert.equal(await ask('c', 20), 'paced', 'the host has had thirty')
  pass(1000)
  assert.deepEqual(
    [await ask('greedy', 1), await ask('greedy', 1), await ask('c', 20)],
    ['answered', 'paced', 'answered'],
  )
})

test('sends no password to the target of a redirect, and does not count 404 from the target as a missing tag', async () => {
  await using there = await startUpstream()
  await using thief = await startUpstream()
  thief.breakWith((req, res) => {
    const challenge = `Bearer realm="${thief.url}/token",service="x"`
    if (req.url?.startsWith('/token')) return answering(200)(req, res)
    return answering(401, { 'www-authenticate': challenge })(req, res)
  })
  there.breakWith(answering(307, { location: `${thief.url}/v2/app/manifests/3` }))
  const { client } = clientOf({}, ['127.0.0.1'])
  const upstream = { ...nobody, origin: there.url, username: 'me', password: 'hidden words' }
  assert.equal(await reasonOf(client.head(upstream, 'app', '3')), 'unauthorized')
  assert.deepEqual(thief.authorizations, [undefined])
  thief.breakWith(answering(404))
  assert.equal(await reasonOf(client.head(upstream, 'app', '3')), 'malformed')
})

test('a request with a long timeout waits for its slot in the rate limit of the host', async () => {
  await using there = await startUpstream()
  there.move('3', 'one')
  const outgoing = createOutgoingStreams({ allowed: privateAddresses(['127.0.0.1']), allowHttp: true })
  const monotonic = () => performance.now()
  const tokens = createRegistryTokens(outgoing, monotonic)
  const client = createRegistryClient({ outgoing, tokens, paces: createHostRateLimits(monotonic), now: () => 0 })
  const ask = (patienceMs: number) =>
    reasonOf(client.head({ ...nobody, origin: there.url }, 'app', '3', { patienceMs }))
  const all = await Promise.all(Array.from({ length: 16 }, () => ask(60_000)))
  assert.ok(all.every((one) => one === 'answered'))
})

test('obeys Retry-After of a registry, up to an hour', async () => {
  await using there = await startUpstream()
  const { client, paces } = clientOf({}, ['127.0.0.1'])
  const host = accountOf({ ...nobody, origin: there.url })
  const asks: [string, number][] = [
    ['120', 120_000],
    ['999999', 3_600_000],
    ['nonsense', 5_000],
    [new Date(90_000).toUTCString(), 90_000],
  ]
  for (const [retryAfter, expected] of asks) {
    there.breakWith(answering(429, { 'retry-after': retryAfter }))
    assert.equal(await reasonOf(client.head({ ...nobody, origin: there.url }, 'app', '3')), 'throttled')
    assert.equal(paces.pausedMs(host), expected, retryAfter)
    paces.succeeded(host)
  }
})

test('a fault of one organization pauses neither other organizations at the host nor another port', async () => {
  await using there = await startUpstream()
  await using beside = await startUpstream()
  for (const one of [there, beside]) one.move('3', 'one')
  const { client } = clientOf({}, ['127.0.0.1'])
  const ask = (holder: string, origin = there.url) => reasonOf(client.head({ ...nobody, holder, origin }, 'app', '3'))
  there.breakWith(answering(503))
  assert.deepEqual([await ask('one'), await ask('one')], ['unavailable', 'paused'])
  there.mend()
  assert.deepEqual(
    [await ask('two'), await ask('one', beside.url), await ask('one')],
    ['answered', 'answered', 'paused'],
  )
})

test('limits of a host also apply to token requests and redirects from other hosts', async () => {
  await using there = await startUpstream()
  await using victim = await startUpstream()
  const { client, paces, pass } = clientOf({}, ['127.0.0.1'])
  const { host } = new URL(victim.url)
  const ask = () => reasonOf(client.head({ ...nobody, origin: there.url }, 'app', '3', { timeoutMs: 10_000 }))
  const faults = [
    answering(307, { location: `${victim.url}/v2/app/manifests/3` }),
    answering(401, { 'www-authenticate': `Bearer realm="${victim.url}/token",service="x"` }),
  ]
  for (const fault of faults) {
    there.breakWith(fault)
    await ask()
    assert.ok(victim.forget().length > 0, 'it leads there')
    pass(minute)
    for (let i = 0; i < 30; i++) paces.take(host, { holder: 'o', key: `other ${i}`, requestsPerSecond: 20 })
    assert.equal(await ask(), 'paced')
    assert.deepEqual(victim.asked, [])
    pass(minute)
  }
})

test('a failed background request delays later background requests, but no requests that users wait for', async () => {
  await using there = await startUpstream()
  there.move('3', 'one')
  const { client } = clientOf({}, ['127.0.0.1'])
  const ask = (spare: boolean) => reasonOf(client.head({ ...nobody, spare, origin: there.url }, 'app', '3'))
  there.breakWith(answering(429))
  assert.deepEqual([await ask(true), await ask(true)], ['throttled', 'paused'])
  there.mend()
  assert.deepEqual([await ask(false), await ask(true)], ['answered', 'paused'])
  there.breakWith(answering(429))
  assert.deepEqual([await ask(false), await ask(false)], ['throttled', 'paused'])
})
