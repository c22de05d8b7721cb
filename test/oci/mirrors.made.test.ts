// Repositories created by a pull, below a group with an upstream that has the image.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ok } from '../support/expect.ts'
import { publishAt } from '../support/hostile-upstreams.ts'
import type { Json } from '../support/pinfold.ts'
import { codeOf, registryClient, startRegistry, type TestRegistry } from '../support/registry.ts'
import { answering, localUpstreams, startUpstream } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
const registry = await startRegistry({
  ...localUpstreams,
  clock: () => new Date(Date.now() + shift),
  monotonic: () => performance.now() * 1000 + shift,
})
after(() => registry[Symbol.asyncDispose]())
const { puller, operator, org } = registry

let count = 0
/** A group with an upstream that creates repositories. */
async function scene(body: Json = {}, at: TestRegistry = registry) {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  const name = `hub-${count++}`
  const group = (await at.seed.group(at.org.uid, { name })).uid as string
  const given = { name: 'there', url: there.url, makeRepos: true, ...body }
  const upstream = ok(await at.operator.post(`/registry/v2/upstreams/${group}`, given))
  return { there, group, upstream, path: `acme/${name}` }
}

const below = async (group: string): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos?uidp.descendants_of=${group}`)).repos

test('pulling an image of the upstream creates its folders and its repository as a mirror', async () => {
  const { there, group, upstream, path } = await scene({ prefix: 'library' })
  const { image, layer } = publishAt(there, '1.0')
  const pulled = await puller.ok(200, 'GET', `${path}/team/app/manifests/1.0`)
  assert.equal(pulled.headers['docker-content-digest'], image.digest)
  await puller.ok(200, 'GET', `${path}/team/app/blobs/${layer.digest}`)
  assert.deepEqual(there.asked.slice(0, 1), ['HEAD /v2/library/team/app/manifests/1.0'])
  const [repo, ...more] = (await below(group)) as [Json, ...Json[]]
  assert.deepEqual([repo.name, more.length], ['app', 0])
  const follow = ok(await operator.get(`/registry/v2/repos/${repo.uid}/follow`))
  assert.deepEqual([follow.upstreamUid, follow.path, follow.mode], [upstream.uid, 'team/app', 'MODE_ON_DEMAND'])
  // Pulls by digest too, and another image of the same folder.
  await puller.ok(200, 'GET', `${path}/team/tool/manifests/${image.digest}`)
  await puller.ok(200, 'HEAD', `${path}/other/manifests/1.0`)
  assert.deepEqual((await below(group)).map(({ name }: Json) => name).sort(), ['app', 'other', 'tool'])
  const { auditEntries } = ok(await operator.get(`/events/v2/audit?subject=${repo.uid}`))
  const told = auditEntries.map(({ type, actor }: Json) => [type, actor])
  assert.deepEqual(told, [['dev.pinfold.control.registry.follow.updated.v1', 'SERVICE_PRINCIPAL_INGESTER']])
})

test('creates nothing for content that the upstream lacks, and asks the upstream once in five minutes', async () => {
  const { there, group, path } = await scene()
  for (let i = 0; i < 3; i++) {
    const answer = await puller.call('GET', `${path}/app/manifests/1.0`)
    assert.deepEqual([answer.status, codeOf(answer)], [404, 'NAME_UNKNOWN'])
  }
  assert.deepEqual([there.asked, await below(group)], [['HEAD /v2/app/manifests/1.0'], []])
  publishAt(there, '1.0')
  shift += 6 * minute
  await puller.ok(200, 'GET', `${path}/app/manifests/1.0`)
})

test('creates only allowed paths, for callers with pull permission, and not for a view', async () => {
  const { there, group, upstream, path } = await scene({ allow: ['app|team/.*'] })
  publishAt(there, '1.0')
  const unknown = async (name: string) => {
    const answer = await puller.call('GET', `${name}/manifests/1.0`)
    assert.deepEqual([answer.status, codeOf(answer)], [404, 'NAME_UNKNOWN'], name)
  }
  await unknown(`${path}/tool`)
  await unknown(`min-1h/${path}/app`)
  await unknown(`acme/elsewhere-${count}/app`)
  for (const what of ['tags/list', `blobs/sha256:${'0'.repeat(64)}`]) {
    assert.equal((await puller.call('GET', `${path}/app/${what}`)).status, 404, what)
  }
  await puller.ok(200, 'GET', `${path}/app/referrers/sha256:${'0'.repeat(64)}`)
  assert.equal((await puller.call('GET', `${path}/app/manifests/-no-tag`)).status, 404)
  const stranger = await registry.seed.identity(org.uid, { name: `stranger-${count}` })
  const token = await registry.tokenFor(stranger.uid, { audience: new URL(registry.url).host })
  assert.equal((await registryClient(registry.url, token).call('GET', `${path}/app/manifests/1.0`)).status, 403)
  ok(await operator.patch(`/registry/v2/upstreams/${upstream.uid}?update_mask=make_repos`, { makeRepos: false }))
  await unknown(`${path}/app`)
  assert.deepEqual([there.asked, await below(group)], [[], []], 'nobody was asked')
  ok(await operator.patch(`/registry/v2/upstreams/${upstream.uid}?update_mask=make_repos`, { makeRepos: true }))
  await puller.ok(200, 'GET', `${path}/team/app/manifests/1.0`)
})

test('uses the upstream of the nearest group, and of several the first by name that allows the path', async () => {
  const { there, group, path } = await scene()
  const near = await startUpstream()
  after(() => near[Symbol.asyncDispose]())
  const team = await registry.seed.group(group, { name: 'team' })
  for (const [name, url, allow] of [
    ['a', there.url, ['other']],
    ['b', near.url, []],
    ['c', there.url, []],
  ] as const) {
    ok(await operator.post(`/registry/v2/upstreams/${team.uid}`, { name, url, allow, makeRepos: true }))
  }
  publishAt(there, '1.0')
  publishAt(near, '2.0')
  assert.equal((await puller.call('GET', `${path}/team/app/manifests/1.0`)).status, 404)
  await puller.ok(200, 'GET', `${path}/team/app/manifests/2.0`)
  await puller.ok(200, 'GET', `${path}/app/manifests/1.0`)
  assert.deepEqual([there.count('HEAD /v2/team'), there.count('HEAD /v2/app') > 0], [0, true])
})

test('a pull creates folders only to the usual depth, and does not ask the upstream for deeper paths', async () => {
  const { there, group, path } = await scene()
  publishAt(there, '1.0')
  // Two groups are above, and the maximum depth is ten.
  const folders = (many: number) => Array.from({ length: many }, () => 'a').join('/')
  for (const many of [9, 100]) {
    const answer = await puller.call('GET', `${path}/${folders(many)}/app/manifests/1.0`)
    assert.deepEqual([answer.status, codeOf(answer)], [404, 'NAME_UNKNOWN'])
  }
  assert.deepEqual([there.asked, await below(group)], [[], []])
  assert.deepEqual(ok(await operator.get(`/iam/v2/groups?uidp.descendants_of=${group}`)).groups ?? [], [])
  await puller.ok(200, 'GET', `${path}/${folders(8)}/app/manifests/1.0`)
  assert.equal((await below(group)).length, 1)
})

test('many concurrent pulls create one repository', async () => {
  const { there, group, path } = await scene()
  const { image } = publishAt(there, '1.0')
  const references = Array.from({ length: 8 }, (_, i) => (i % 2 ? '1.0' : image.digest))
  const answers = await Promise.all(references.map((one) => puller.call('GET', `${path}/team/app/manifests/${one}`)))
  assert.deepEqual(
    answers.map(({ status }) => status),
    references.map(() => 200),
  )
  assert.equal((await below(group)).length, 1)
})

test('creates nothing if the upstream fails or the organization is at its quota', async () => {
  const { there, group, path } = await scene()
  publishAt(there, '1.0')
  there.breakWith(answering(500))
  const broken = await puller.call('GET', `${path}/app/manifests/1.0`)
  assert.deepEqual([broken.status, codeOf(broken)], [503, 'UNAVAILABLE'])
  assert.ok(broken.headers['retry-after'])
  assert.deepEqual(await below(group), [])

  await using small = await startRegistry({ ...localUpstreams, quotaRepositories: 1 })
  const full = await scene({}, small)
  publishAt(full.there, '1.0')
  await small.puller.ok(200, 'GET', `${full.path}/one/manifests/1.0`)
  const refused = await small.puller.call('GET', `${full.path}/team/two/manifests/1.0`)
  assert.deepEqual([refused.status, codeOf(refused)], [403, 'DENIED'])
  const groups = ok(await small.operator.get(`/iam/v2/groups?uidp.descendants_of=${full.group}`)).groups ?? []
  assert.deepEqual(groups, [])
})
