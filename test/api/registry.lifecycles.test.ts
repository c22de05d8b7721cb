// End-of-life data of tags: lists of version 1, the field `deprecated` of version 2, and the import.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { judgeTags } from '#domains/registry/lifecycles/eol-tags.job.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { startWorkers, type Workers } from '#workers.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { allRead, pushLayers } from '../support/images.ts'
import { tarOf } from '../support/layers.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

let registry: TestRegistry
let reader: Workers
let operator: Client
let viewer: Client
let token: string
let viewerUid: string
let org: string
let now = '2025-07-01T12:00:00.000Z'
before(async () => {
  registry = await startRegistry({ clock: () => new Date(now) })
  operator = registry.operator
  org = registry.org.uid
  viewerUid = (await registry.seed.member(org, roleUids.viewer)).uid
  await setClock(now)
  reader = await startWorkers(registry.app, { jobs: [readImages] })
})
after(async () => {
  await reader.close()
  await registry[Symbol.asyncDispose]()
})

const apk = (packages: Record<string, string>) => ({
  'etc/os-release': 'ID=wolfi\nVERSION_ID=20230201\n',
  'lib/apk/db/installed': Object.entries(packages)
    .map(([name, version]) => `P:${name}\nV:${version}\nA:x86_64\no:${name}\n`)
    .join('\n'),
})
const nodejs = {
  name: 'nodejs',
  label: 'Node.js',
  aliases: ['node'],
  purls: ['pkg:docker/library/node'],
  releases: [
    {
      cycle: '24',
      releaseDate: '2025-05-06',
      eolDate: '2028-04-30',
      lts: true,
      ltsDate: '2025-10-28',
      latest: '24.3.0',
    },
    { cycle: '23', releaseDate: '2024-10-16', eolDate: '2025-06-01', latest: '23.11.1', broken: true },
    {
      cycle: '18',
      releaseDate: '2022-04-19',
      eolDate: '2025-04-30',
      lts: true,
      ltsDate: '2022-10-25',
      latest: '18.20.8',
    },
    { cycle: '0', releaseDate: '2010-01-01', ended: true, latest: '0.12.18' },
  ],
}
/** A token is valid for an hour of the test clock. */
const setClock = async (time: string) => {
  now = time
  token = await registry.tokenFor(viewerUid)
  viewer = registry.withToken(token)
}
const importing = (...products: Json[]) => operator.post('/control/v1/lifecycles:import', { products })
const eolTags = async (repo: string, query = ''): Promise<Json[]> =>
  ok(await viewer.get(`/registry/v1/eoltags?uidp.childrenOf=${repo}&${query}`)).items
const byName = (items: Json[]) => Object.fromEntries(items.map((one) => [one.name, one]))
const setGrace = async (eolGracePeriod: boolean) =>
  ok(await operator.call('PUT', `/registry/v1/settings/${org}`, { eolGracePeriod }))
const repoOf = async (name: string): Promise<string> =>
  ok(await operator.get(`/registry/v2/repos?name=${name}`)).repos[0].uid

test('lists tags with the release line of the main package, its dates and the grace period', async () => {
  ok(await importing(nodejs))
  for (const [tag, version] of Object.entries({ '24': '24.1.0-r0', '23': '23.9.0-r1', '18': '18.20.1-r2' })) {
    const packages = { busybox: '1.37.0-r0', [`nodejs-${tag}`]: version }
    await pushLayers(registry.pusher, 'acme/node', [apk(packages)], tag)
  }
  await allRead(registry)
  const repo = await repoOf('node')

  const without = byName(await eolTags(repo))
  assert.deepEqual(without['24'].mainPackageVersion, {
    eolDate: '2028-04-30',
    exists: true,
    fips: false,
    legacyLts: '2025-10-28',
    lts: false,
    releaseDate: '2025-05-06',
    version: '24',
    eolBroken: false,
    latestVersion: '24.3.0',
    versionSource: null,
  })
  const states = (items: Record<string, Json>) =>
    Object.fromEntries(
      Object.entries(items).map(([name, one]) => [
        name,
        [one.mainPackageName, one.tagStatus, one.graceStatus, one.gracePeriodExpiryDate],
      ]),
    )
  assert.deepEqual(states(without), {
    '24': ['nodejs-24', 'TAG_ACTIVE', 'GRACE_ELIGIBLE', null],
    '23': ['nodejs-23', 'TAG_INACTIVE', 'GRACE_BROKEN', null],
    '18': ['nodejs-18', 'TAG_INACTIVE', 'GRACE_ELIGIBLE', null],
  })
  await setGrace(true)
  assert.deepEqual(states(byName(await eolTags(repo)))['18'], [
    'nodejs-18',
    'TAG_IN_GRACE',
    'GRACE_ACTIVE',
    '2025-10-30T00:00:00.000Z',
  ])
  await setClock('2025-10-30T00:00:00.000Z')
  assert.deepEqual(states(byName(await eolTags(repo))), {
    '24': ['nodejs-24', 'TAG_ACTIVE', 'GRACE_ELIGIBLE', null],
    '23': ['nodejs-23', 'TAG_INACTIVE', 'GRACE_BROKEN', null],
    '18': ['nodejs-18', 'TAG_INACTIVE', 'GRACE_EXPIRED', null],
  })
  assert.equal(byName(await eolTags(repo))['24'].mainPackageVersion.lts, true)
  await setClock('2025-07-01T12:00:00.000Z')
  await setGrace(false)
})

test('lists pages in order, filters by name and tag form, and returns nothing to callers without access', async () => {
  const repo = await repoOf('node')
  for (const name of ['24.1.0-r0', '24-20250601']) {
    await pushLayers(registry.pusher, 'acme/node', [apk({ 'nodejs-24': '24.1.0-r0' })], name)
  }
  const names = (items: Json[]) => items.map((one) => one.name).sort()
  assert.deepEqual(names(await eolTags(repo)), ['18', '23', '24', '24-20250601', '24.1.0-r0'])
  assert.deepEqual(names(await eolTags(repo, 'excludeDates=true&excludeEpochs=true')), ['18', '23', '24'])
  assert.deepEqual(names(await eolTags(repo, 'name=23')), ['23'])
  const seen: string[] = []
  for (let token = ''; ; ) {
    const page = ok(await viewer.get(`/registry/v1/eoltags?uidp.childrenOf=${repo}&pageSize=2&pageToken=${token}`))
    assert.ok(page.items.length <= 2)
    seen.push(...page.items.map((one: Json) => one.name))
    token = page.nextPageToken
    if (token === '') break
  }
  assert.deepEqual(seen.sort(), ['18', '23', '24', '24-20250601', '24.1.0-r0'])
  const stranger = await registry.as((await registry.seed.person()).uid)
  assertDenied(await stranger.get(`/registry/v1/eoltags?uidp.childrenOf=${repo}`))
  assertInvalid(await viewer.get('/registry/v1/eoltags?pageSize=-1'), 'page_size')
  assertInvalid(await viewer.get('/registry/v1/eoltags?pageToken=mine'), 'page_token')
  assertInvalid(await viewer.get('/registry/v1/eoltags?uidp.childrenOf=here'), 'uidp.children_of')
})

test('finds the main package of an image by a label or an annotation, also of an index', async () => {
  const name = 'acme/tool'
  const layer = apk({ 'nodejs-18': '18.2.0-r0', 'nodejs-24': '24.0.0-r0' })
  const labelled = JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    config: { Labels: { 'dev.pinfold.package.main': 'nodejs-18' } },
  })
  await pushLayers(registry.pusher, name, [layer], 'by-annotation', {
    annotations: { 'dev.pinfold.package.main': 'nodejs-24' },
  })
  await pushLayers(registry.pusher, name, [layer], 'by-nothing')
  const config = await registry.pusher.pushBlob(name, labelled, types.config)
  const pushed = await registry.pusher.pushBlob(name, gzipSync(await tarOf(layer)))
  const byLabel = await registry.pusher.pushManifest(name, imageOf(config, [pushed]), 'by-label')
  await registry.pusher.pushManifest(
    name,
    indexOf([{ ...byLabel, platform: { architecture: 'amd64', os: 'linux' } }]),
    'index',
  )
  await allRead(registry)
  const found = byName(await eolTags(await repoOf('tool')))
  const about = (tag: string) => [found[tag].mainPackageName, found[tag].mainPackageVersion?.version]
  assert.deepEqual(about('by-annotation'), ['nodejs-24', '24'])
  assert.deepEqual(about('by-label'), ['nodejs-18', '18'])
  assert.deepEqual(about('index'), ['nodejs-18', '18'])
  assert.deepEqual(about('by-nothing'), ['tool', undefined])
  assert.equal(found['by-nothing'].graceStatus, 'GRACE_NOT_ELIGIBLE')
  assert.equal(found['by-nothing'].mainPackageVersion, null)
})

test('tags without further rebuilds are inactive: superseded, not in the active tags, or marked inactive', async () => {
  const name = 'acme/nodejs'
  const tags = ['24.1.0-r9', '24.1.0-r10', '24.2.0-r0', 'latest', 'old']
  for (const tag of tags) await pushLayers(registry.pusher, name, [apk({ 'nodejs-24': '24.1.0-r0' })], tag)
  await allRead(registry)
  const repo = await repoOf('nodejs')
  const inactive = async () =>
    (await eolTags(repo)).flatMap((one) => (one.tagStatus === 'TAG_INACTIVE' ? [one.name] : [])).sort()
  assert.deepEqual(await inactive(), ['24.1.0-r9'])
  ok(
    await operator.patch(`/registry/v2/repos/${repo}?updateMask=active_tags`, { activeTags: ['latest', '24.1.0-r10'] }),
  )
  assert.deepEqual(await inactive(), ['24.1.0-r9', '24.2.0-r0', 'old'])

  const deprecated = async () => {
    const { tags: listed } = ok(await viewer.get(`/registry/v2/tags?uidp.children_of=${repo}&include_epochs=true`))
    return (listed as Json[]).flatMap((one) => (one.deprecated ? [one.name] : [])).sort()
  }
  assert.deepEqual(await deprecated(), [])
  const events = await registry.app.db.all<Json>(sql`SELECT count(*) AS n FROM events_outbox`)
  await runJob(registry.app, judgeTags)
  assert.deepEqual(await deprecated(), ['24.1.0-r9', '24.2.0-r0', 'old'])
  assert.deepEqual((await runJob(registry.app, judgeTags)) as Json, { changed: 0, mains: 0 })
  const later = await registry.app.db.all<Json>(sql`SELECT count(*) AS n FROM events_outbox`)
  assert.deepEqual(later, events)

  // A tag update resets the data, but keeps the values that a client has set.
  await pushLayers(registry.pusher, name, [apk({ 'nodejs-24': '24.3.0-r0' })], 'old')
  assert.deepEqual(await deprecated(), ['24.1.0-r9', '24.2.0-r0'])
  ok(await operator.patch(`/registry/v2/repos/${repo}?updateMask=active_tags`, { activeTags: [] }))
  const latest = (await eolTags(repo, 'name=latest'))[0]!.id
  const v1 = ok(await operator.get(`/registry/v1/tags?id=${latest}`)).items[0]
  ok(await operator.call('PUT', `/registry/v1/tags/${latest}`, { ...v1, deprecated: true }))
  await runJob(registry.app, judgeTags)
  assert.deepEqual(await inactive(), ['24.1.0-r9', 'latest'])
  assert.deepEqual(await deprecated(), ['24.1.0-r9', 'latest'])
  const superseded = (await eolTags(repo, 'name=24.1.0-r9'))[0]!.id
  assert.equal(ok(await operator.get(`/registry/v1/tags?id=${superseded}`)).items[0].deprecated, false)
})

test('returns the release lines of the product of a package, and NOT_FOUND for an unknown package', async () => {
  const versions = ok(await viewer.get('/registry/v1/versions/nodejs-24'))
  assert.deepEqual(
    [versions.versions, versions.eolVersions].map((some) => some.map((one: Json) => [one.version, one.eolDate])),
    [
      [['24', '2028-04-30']],
      [
        ['23', '2025-06-01'],
        ['18', '2025-04-30'],
      ],
    ],
  )
  assert.equal(versions.latestVersion, '24')
  assert.equal(versions.gracePeriodMonths, 6)
  assert.equal(versions.lastUpdatedTimestamp, '2025-07-01T12:00:00.000Z')
  assert.equal(versions.versions[0].exists, true)
  for (const name of ['node', 'nodejs', 'NodeJS-18']) {
    assert.equal(ok(await viewer.get(`/registry/v1/versions/${name}`)).latestVersion, '24', name)
  }
  for (const name of ['python', 'a/b', 'tomcat-11.0-nodejs']) {
    const encoded = name.split('/').map(encodeURIComponent).join('/')
    assertNotFound(await viewer.get(`/registry/v1/versions/${encoded}`), 'registry.pinfold.dev/Package', name)
  }
})

test('a package name that two products claim belongs to neither', async () => {
  const claim = (name: string) => ({ name, purls: ['pkg:docker/library/shared'], releases: [{ cycle: '1' }] })
  ok(await importing(claim('one'), claim('other')))
  assertNotFound(await viewer.get('/registry/v1/versions/shared'), 'registry.pinfold.dev/Package', 'shared')
  assert.equal(ok(await viewer.get('/registry/v1/versions/one')).latestVersion, '1')
})

test('stores an import completely or not at all, and names errors', async () => {
  const counts = (created: number, updated: number, unchanged: number) => ({ created, updated, unchanged })
  assert.deepEqual(ok(await importing(nodejs)), counts(0, 0, 1))
  const changed = { ...nodejs, releases: nodejs.releases.slice(0, 3) }
  assert.deepEqual(ok(await importing(changed, { name: 'new' })), counts(1, 1, 0))
  assert.deepEqual(ok(await importing(nodejs)), counts(0, 1, 0))
  const wrong: [Json, string][] = [
    [{}, 'products[0].name'],
    [{ name: 'a b' }, 'products[0].name'],
    [{ name: 'a', purls: ['node'] }, 'products[0].purls'],
    [{ name: 'a', releases: [{}] }, 'products[0].releases[0].cycle'],
    [{ name: 'a', releases: [{ cycle: '1' }, { cycle: '1' }] }, 'products[0].releases[1].cycle'],
    [{ name: 'a', releases: [{ cycle: '1', eolDate: '2025-02-30' }] }, 'products[0].releases[0].eol_date'],
    [{ name: 'a', releases: [{ cycle: '1', eolDate: 'soon' }] }, 'products[0].releases[0].eol_date'],
    [{ name: 'a', aliases: Array.from({ length: 2001 }, (_, i) => `n${i}`) }, 'products[0].aliases'],
  ]
  for (const [product, field] of wrong) assertInvalid(await importing(product), field)
  assertInvalid(await importing(), 'products')
  assertInvalid(await importing({ name: 'a' }, { name: 'a' }), 'products[1].name')
  assertNotFound(await viewer.get('/registry/v1/versions/a'), 'registry.pinfold.dev/Package', 'a')
  assertDenied(await viewer.post('/control/v1/lifecycles:import', { products: [nodejs] }))
})

test('gRPC omits unset dates', async () => {
  using grpc = grpcClientOf(registry, Registry, token)
  const { items } = await grpc.listEolTags({ uidp: { childrenOf: await repoOf('tool') }, name: 'by-nothing' })
  assert.equal(items[0]?.mainPackageVersion, undefined)
  assert.equal(items[0]?.gracePeriodExpiryDate, undefined)
})
