// Views and cooldown policies with upstream tags: an image that could not be pulled here has no age yet.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, types } from '../support/registry.ts'
import { answering, localUpstreams, startUpstream } from '../support/upstream.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-06-01T00:00:00.000Z')
const iso = (days: number): string => new Date(start + days * day).toISOString()
let now = start
const registry = await startRegistry({ ...localUpstreams, clock: () => new Date(now), monotonic: () => now })
after(() => registry[Symbol.asyncDispose]())
const { app, org, seed } = registry
const runner = (await seed.member(org.uid, roleUids.pull)).uid as string

/** Tokens expire after less than a day. */
async function on(days: number) {
  now = start + days * day
  return { ...(await registry.registryAs(operatorUid)), api: await registry.as(operatorUid) }
}

test('a tag that was watched for days has the age of its content here, in views, lists and policies', async () => {
  await using there = await startUpstream()
  const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux' }), types.config)
  const image = there.add(JSON.stringify(imageOf(config, [])), types.image)
  there.tags.set('3', image.digest)
  const { api } = await on(0)
  const upstream = ok(await api.post(`/registry/v2/upstreams/${org.uid}`, { name: 'hub', url: there.url }))
  const repo = (await seed.repo(org.uid, { name: 'mirror' })).uid as string
  const follow = { upstreamUid: upstream.uid, path: 'app', interval: `${7 * 24 * 3600}s` }
  ok(await api.post(`/registry/v2/repos/${repo}/follow`, follow))
  await runJob(app, followUpstreams)
  const name = 'acme/mirror'

  const first = await on(10)
  ok(await first.api.post(`/registry/v2/repos/${repo}/follow`, { ...follow, mode: 'MODE_ON_DEMAND' }))
  await first.ok(200, 'GET', `${name}/manifests/3`)
  ok(
    await first.api.post(`/registry/v2/pullRules/${repo}`, { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER' }),
  )
  const { records } = ok(await first.api.get(`/registry/v2/repos/${repo}/tagHistory?tag=3`))
  assert.deepEqual(
    records.map((one: Json) => one.time.slice(0, 10)),
    [iso(0).slice(0, 10)],
    'the history says when it was seen',
  )

  const young = await on(12)
  const bound = await registry.registryAs(runner)
  const listed = async (client: typeof bound) =>
    (await client.ok(200, 'GET', `min-7d/${name}/tags/list`)).body.tags ?? []
  const refused = await young.call('GET', `min-7d/${name}/manifests/3`)
  assert.equal(refused.status, 403)
  assert.ok(JSON.stringify(refused.body).includes(iso(17).slice(0, 10)), JSON.stringify(refused.body))
  assert.deepEqual(await listed(young), [])
  assert.equal((await bound.call('GET', `${name}/manifests/3`)).status, 403)
  assert.equal((await bound.call('GET', `${name}/manifests/${image.digest}`)).status, 403)

  const old = await on(17.5)
  const pulled = await old.ok(200, 'GET', `min-7d/${name}/manifests/3`)
  assert.equal(pulled.headers['docker-content-digest'], image.digest)
  assert.deepEqual(await listed(old), ['3'])
  const later = await registry.registryAs(runner)
  await later.ok(200, 'GET', `${name}/manifests/${image.digest}`)
})

test('a held-back caller gets both warnings while the upstream is unavailable', async () => {
  await using there = await startUpstream()
  const publish = (text: string): string => {
    const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux', text }), types.config)
    const { digest } = there.add(JSON.stringify(imageOf(config, [])), types.image)
    there.tags.set('3', digest)
    return digest
  }
  const older = publish('older')
  const begun = await on(20)
  const upstream = ok(await begun.api.post(`/registry/v2/upstreams/${org.uid}`, { name: 'quiet', url: there.url }))
  const repo = ok(await begun.api.post(`/registry/v2/repos/${org.uid}`, { name: 'quiet' })).uid as string
  const follow = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_ON_DEMAND' }
  ok(await begun.api.post(`/registry/v2/repos/${repo}/follow`, follow))
  const rule = { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER' }
  ok(await begun.api.post(`/registry/v2/pullRules/${repo}`, rule))
  await begun.ok(200, 'GET', 'acme/quiet/manifests/3')
  publish('newer')
  await (await on(30)).ok(200, 'GET', 'acme/quiet/manifests/3')

  there.breakWith(answering(503))
  now += 10 * 60_000
  const pulled = await (await registry.registryAs(runner)).ok(200, 'GET', 'acme/quiet/manifests/3')
  assert.equal(pulled.headers['docker-content-digest'], older)
  const { warning } = pulled.headers
  assert.match(
    String(warning),
    /^299 - "the tag was last checked at the upstream at [^"]+", 299 - "minimum age 7d: 3 is served as of [^"]+"$/,
  )
})
