// Version 1 of tags: the same tags, tag history, events and rights as version 2, with other names and formats.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { checkLists } from '../support/check-lists.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { ledgerOf, plantManifest, plantTag } from '../support/tags.ts'

const tagType = 'registry.pinfold.dev/Tag'

/** Clock of the server. */
let now = Date.parse('2026-05-01T10:00:00.000Z')
let registry: TestRegistry
let operator: Client
let owner: Client
let viewer: Client
let stranger: Client
before(async () => {
  registry = await startRegistry({ clock: () => new Date(now) })
  operator = registry.operator
  const member = async (role: string) => registry.as((await registry.seed.member(registry.org.uid, role)).uid)
  owner = await member(roleUids.owner)
  viewer = await member(roleUids.viewer)
  stranger = await registry.as((await registry.seed.person()).uid)
})
after(() => registry[Symbol.asyncDispose]())

let repos = 0
const newRepo = async () => {
  const name = `app${repos++}`
  return { name: `acme/${name}`, uid: (await registry.seed.repo(registry.org.uid, { name })).uid as string }
}
const create = (repo: string, body: Json, client = operator) => client.post(`/registry/v1/tags/${repo}`, body)
const put = (id: string, body: Json, client = operator) => client.call('PUT', `/registry/v1/tags/${id}`, body)
const list = async (query: string, client = operator) =>
  ok(await client.get(`/registry/v1/tags?${query}`)).items as Json[]
const summary = async (repo: string, query = '') =>
  ok(await viewer.get(`/registry/v1/repotagssummary/${repo}?${query}`))
const time = () => new Date(now).toISOString()

test('a tag created in version 1 is the same in version 2, and its updates are in the tag history', async () => {
  const { uid: repo } = await newRepo()
  const [one, two] = [await plantManifest(registry, repo, 'one'), await plantManifest(registry, repo, 'two')]
  const made = ok(await create(repo, { name: 'v1', digest: one, bundles: ['fips', 'base'] }, owner))
  const { id } = made
  const fields = { id, name: 'v1', deprecated: false, bundles: ['fips', 'base'] }
  assert.deepEqual(made, { ...fields, digest: one, lastUpdated: time() })
  assert.equal(ok(await viewer.get(`/registry/v2/tags/${id}`)).digest, one)

  now += 60_000
  const moved = ok(await put(id, { digest: two, deprecated: true }, owner))
  assert.deepEqual(moved, { ...fields, bundles: [], digest: two, deprecated: true, lastUpdated: time() })
  now += 60_000
  const kept = ok(await put(id, { name: 'v1' }, owner))
  assert.deepEqual(kept, { ...fields, bundles: [], digest: two, lastUpdated: time() })
  assert.deepEqual(
    (await ledgerOf(registry, repo)).map(({ event, digest, previous, source }) => [event, digest, previous, source]),
    [
      [1, one, '', 2],
      [2, two, one, 2],
    ],
  )
  assert.deepEqual(await list(`id=${id}`, viewer), [kept])
})

test('a tag can exist without a digest until it gets one', async () => {
  const { uid: repo, name } = await newRepo()
  const made = ok(await create(repo, { name: 'soon', bundles: ['base'] }))
  assert.equal(made.digest, '')
  assert.deepEqual(await ledgerOf(registry, repo), [])
  const { puller, pusher } = registry
  assert.equal((await puller.call('GET', `${name}/manifests/soon`)).body.errors[0].code, 'MANIFEST_UNKNOWN')
  assert.equal((await puller.call('GET', `${name}/_svc/history/soon`)).status, 404)
  assert.deepEqual((await puller.ok(200, 'GET', `${name}/tags/list`)).body.tags, [])
  assert.deepEqual(ok(await viewer.get(`/registry/v1/tags/${made.id}/history`)), { items: [] })
  assert.equal((await list(`uidp.childrenOf=${repo}`)).length, 1)
  assert.deepEqual((await summary(repo)).latestTag.id, made.id)

  now += 1000
  const kept = ok(await put(made.id, { deprecated: true }))
  assert.deepEqual([kept.digest, kept.deprecated], ['', true])
  const pushed = await pusher.pushImage(name, 'soon')
  assert.deepEqual((await puller.ok(200, 'GET', `${name}/tags/list`)).body.tags, ['soon'])
  assert.deepEqual(
    (await ledgerOf(registry, repo)).map(({ event, digest, previous }) => [event, digest, previous]),
    [[1, pushed.digest, '']],
  )
  // As a client that never names a digest requests it again.
  assert.equal(ok(await create(repo, { name: 'soon' })).digest, pushed.digest)
  assert.equal((await ledgerOf(registry, repo)).length, 1)
  await checkLists(registry)
})

test('a tag without any digest leaves no tag history', async () => {
  for (const away of [
    (tag: Json) => operator.delete(`/registry/v1/tags/${tag.id}`),
    (tag: Json) => operator.delete(`/registry/v1/repos/${tag.id.slice(0, tag.id.lastIndexOf('/'))}`),
  ]) {
    const { uid: repo } = await newRepo()
    const made = ok(await create(repo, { name: 'soon' }))
    assert.equal((await away(made)).status, 200)
    assert.deepEqual(await ledgerOf(registry, repo), [])
    assert.deepEqual(await list(`id=${made.id}`), [])
  }
  await checkLists(registry)
})

test('events have the body of the called version', async () => {
  const { uid: repo } = await newRepo()
  const digest = await plantManifest(registry, repo, 'one')
  let id = ''
  const events = await eventsOf(registry, async () => {
    id = ok(await create(repo, { name: 'told', digest })).id
    ok(await put(id, { deprecated: true }))
    await operator.delete(`/registry/v1/tags/${id}`)
  })
  const type = (verb: string) => `dev.pinfold.api.platform.registry.tag.${verb}.v1`
  assert.deepEqual(
    events.map(({ type, subject, group, audience, bodyType }) => [type, subject, group, audience, bodyType]),
    [
      [type('created'), id, registry.org.uid, 'CUSTOMER', 'pinfold.platform.registry.Tag'],
      [type('updated'), id, registry.org.uid, 'CUSTOMER', 'pinfold.platform.registry.Tag'],
      [type('deleted'), id, registry.org.uid, 'CUSTOMER', 'pinfold.platform.registry.DeleteTagRequest'],
    ],
  )
  assert.deepEqual([events[1]!.body.digest, events[1]!.body.deprecated, events[2]!.body], [digest, true, { id }])
})

test('an error names invalid fields, and no tag is changed', async () => {
  const { uid: repo } = await newRepo()
  const tag = await plantTag(registry, repo, 'v1')
  const nowhere = `${repo}/${'0'.repeat(16)}`
  assertNotFound(await put(nowhere, { name: 'v1' }), tagType, nowhere)
  assertNotFound(await operator.delete(`/registry/v1/tags/${nowhere}`), tagType, nowhere)
  assertInvalid(await put(tag.uid, { name: 'v2' }), 'name')
  assertInvalid(await put(tag.uid, { digest: 'latest', bundles: ['none'] }), 'digest', 'bundles')
  assertInvalid(await create(repo, { name: 'not a name' }), 'name')
  assertInvalid(await create(repo, {}), 'name')
  assertInvalid(await create(registry.org.uid, { name: 'v1' }), 'parent')
  const missing = `sha256:${'0'.repeat(64)}`
  assertBlocked(await put(tag.uid, { digest: missing }), missing, 'MANIFEST_NOT_FOUND')
  for (const answer of [await put(tag.uid, {}, viewer), await create(repo, { name: 'x' }, viewer)]) assertDenied(answer)
  assertDenied(await viewer.get(`/registry/v1/tags/${(await registry.seed.group()).uid}/history`))
  assert.deepEqual((await list(`id=${tag.uid}`))[0], (await list(`uidp.childrenOf=${repo}`))[0])
})

test('a list omits only excluded and invisible tags', async () => {
  const { uid: repo } = await newRepo()
  const names = ['latest', '1.2-r0', '1.2-20260501', 'sha256-abc', 'sha256-abc-20260501']
  for (const name of names) ok(await create(repo, { name }))
  const named = async (query: string, client?: Client) =>
    (await list(`uidp.childrenOf=${repo}&${query}`, client)).map(({ name }) => name).sort()
  assert.deepEqual(await named(''), [...names].sort())
  assert.deepEqual(await named('exclude_dates=true'), ['1.2-r0', 'latest', 'sha256-abc'])
  assert.deepEqual(await named('excludeReferrers=true&excludeEpochs=true'), ['1.2-20260501', 'latest'])
  assert.deepEqual(await named('name=1.2-r0'), ['1.2-r0'])
  assert.deepEqual(await named('name=1.2-r0&excludeEpochs=true'), [])
  now += 5000
  const tag = await plantTag(registry, repo, 'new')
  assert.deepEqual(await named(`updatedSince=${new Date(now - 1000).toISOString()}`), ['new'])
  assert.deepEqual(await named(`digest=${tag.digest}`), ['new'])
  assert.deepEqual(await named('', stranger), [])
  assert.deepEqual(await list(`id=${tag.uid}`, stranger), [])
  assert.deepEqual(await list('id=nonsense'), [])
  assert.deepEqual(await list(`id=${repo}/${'0'.repeat(16)}`), [])
  assertInvalid(await operator.get('/registry/v1/tags?digest=latest'), 'digest')
})

test('the summary counts tags that are not excluded, and names the latest tag and its longest other name', async () => {
  const { uid: repo } = await newRepo()
  const nothing = await summary(repo)
  assert.deepEqual([nothing.id, nothing.tagCount, nothing.latestVersion], [repo, '0', ''])
  assert.deepEqual([nothing.lastUpdated ?? null, nothing.latestTag ?? null], [null, null])
  for (const name of ['1.2.3-20260501', '1.2.3', '1.2', 'latest', 'latest-dev']) {
    now += 1000
    await plantTag(registry, repo, name, 'image')
  }
  now += 1000
  await plantTag(registry, repo, 'much-longer-and-another')
  const newest = time()
  const told = await summary(repo)
  assert.deepEqual(
    [told.id, told.tagCount, told.lastUpdated, told.latestTag.name, told.latestVersion],
    [repo, '6', newest, 'latest', '1.2.3-20260501'],
  )
  const without = await summary(repo, 'excludeDates=true&exclude_epochs=true&exclude_referrers=true')
  assert.deepEqual([without.tagCount, without.latestVersion], ['5', '1.2.3'])

  const { uid: other } = await newRepo()
  await plantTag(registry, other, '1.0')
  now += 1000
  await plantTag(registry, other, '1.1-r3')
  assert.equal((await summary(other)).latestTag.name, '1.1-r3')
  assert.equal((await summary(other, 'excludeEpochs=true')).latestTag.name, '1.0')
  assert.equal((await summary(other)).latestVersion, '')
})

test('the history of a tag is that of the registry: oldest first, with the start and without the end', async () => {
  const { uid: repo } = await newRepo()
  const times: string[] = []
  for (const image of ['a', 'b', 'c']) {
    now += 60_000
    times.push(time())
    await plantTag(registry, repo, 'v1', `history ${image}`)
  }
  const { id } = (await list(`uidp.childrenOf=${repo}`))[0]!
  const of = async (query: string) =>
    (ok(await viewer.get(`/registry/v1/tags/${id}/history?${query}`)).items as Json[]).map((one) => one.updateTimestamp)
  assert.deepEqual(await of(''), times)
  assert.deepEqual(await of(`start=${times[1]}`), times.slice(1))
  assert.deepEqual(await of(`start=${times[0]}&end=${times[2]}`), times.slice(0, 2))
  assert.deepEqual(await of(`start=${times[2]}&end=${times[0]}`), [])
  const ledger = await ledgerOf(registry, repo)
  const { items } = ok(await viewer.get(`/registry/v1/tags/${id}/history`))
  assert.deepEqual(
    items.map(({ digest }: Json) => digest),
    ledger.map(({ digest }) => digest),
  )
  assert.deepEqual(ok(await viewer.get(`/registry/v1/tags/${repo}/${'0'.repeat(16)}/history`)), { items: [] })
})

test('a repository counts as up to date if one of its tags was updated within a week', async () => {
  const { uid: repo } = await newRepo()
  const path = `/registry/v1/repos/${repo}:updatestatus`
  assert.deepEqual(ok(await viewer.get(path)), { recentlyUpdated: false })
  await plantTag(registry, repo, 'v1')
  assert.deepEqual(ok(await viewer.get(path)), { recentlyUpdated: true })
  const { uid } = await registry.seed.member(registry.org.uid, roleUids.viewer)
  const week = 7 * 24 * 3_600_000
  now += week
  assert.deepEqual(ok(await (await registry.as(uid)).get(path)), { recentlyUpdated: false })
  now -= week
  const nowhere = `${registry.org.uid}/${'0'.repeat(16)}`
  assertNotFound(await viewer.get(`/registry/v1/repos/${nowhere}:updatestatus`), 'registry.pinfold.dev/Repo', nowhere)
})

test('gRPC gives the same answers', async () => {
  const { uid: repo } = await newRepo()
  const digest = await plantManifest(registry, repo, 'one')
  using grpc = grpcClientOf(
    registry,
    Registry,
    await registry.tokenFor((await registry.seed.member(registry.org.uid, roleUids.owner)).uid),
  )
  const made = await grpc.createTag({ repoId: repo, tag: { name: 'v1' } })
  const moved = await grpc.updateTag({ ...made, digest })
  assert.deepEqual([made.digest, moved.digest, moved.id], ['', digest, made.id])
  assert.deepEqual(
    (await grpc.listTags({ uidp: { childrenOf: repo } })).items.map(({ id }) => id),
    [made.id],
  )
  assert.equal((await grpc.listTagHistory({ parentId: made.id })).items[0]!.digest, digest)
  assert.equal((await grpc.getRepoTagsSummary({ repoId: repo })).tagCount, 1n)
  assert.equal((await grpc.getUpdateStatus({ repoId: repo })).recentlyUpdated, true)
  await grpc.deleteTag({ id: made.id })
  assert.deepEqual((await grpc.listTags({ id: made.id })).items, [])
})
