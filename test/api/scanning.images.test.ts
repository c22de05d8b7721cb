// Images by their vulnerabilities and packages, contents of an image, and the comparison of two images.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let [app, worker] = ['', '']
let [first, second, other] = ['', '', '']
let viewer: Client
let ofApp: Client
let stranger: Client
before(async () => {
  registry = await startRegistry()
  const { seed, org } = registry
  const folders = [await seed.group(org.uid, { name: 'shop' }), await seed.group(org.uid, { name: 'team' })]
  app = (await seed.repo(folders[0]!.uid, { name: 'app' })).uid
  worker = (await seed.repo(folders[1]!.uid, { name: 'worker' })).uid
  viewer = await registry.as((await seed.member(org.uid, roleUids.viewer)).uid)
  ofApp = await registry.as((await seed.member(folders[0]!.uid, roleUids.viewer)).uid)
  stranger = await registry.as((await seed.person()).uid)
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('ALPINE-CVE-2026-1', 'Alpine:v3.19', 'openssl', '3.1.4-r5', { upstream: ['CVE-2026-1'] }),
    recordAbout('ALPINE-CVE-2026-2', 'Alpine:v3.19', 'musl', '1.2.4-r3', { upstream: ['CVE-2026-2'] }),
  ])
  first = await push('acme/shop/app', ['libssl3 3.1.4-r2 openssl', 'musl 1.2.4-r2', 'zlib 1.3-r0'], '1.0')
  second = await push('acme/shop/app', ['libssl3 3.1.4-r5 openssl', 'musl 1.2.4-r2', 'curl 8-r0'], '1.1')
  other = await push('acme/team/worker', ['libssl3 3.1.4-r2 openssl', 'odd not-a-version'], 'latest')
})
after(() => registry[Symbol.asyncDispose]())

const push = (repo: string, lines: string[], tag?: string) =>
  pushAndScan(registry, repo, { ...apkLayer('alpine', '3.19.1', lines), ...pythonPackage('flask', '2.0.0') }, tag)

const vulnerable = async (query: string, client = viewer): Promise<Json> =>
  ok(await client.get(`/registry/v2/vulnerableImages?${query}`))
const having = async (query: string, client = viewer): Promise<Json> =>
  ok(await client.get(`/registry/v2/imagesWithPackage?${query}`))
const shown = ({ images }: Json): string[] => images.map(({ digest, tags }: Json) => `${digest} ${tags.join()}`).sort()

test('finds the images with a vulnerability and their tags, by each of its names', async () => {
  for (const name of ['CVE-2026-1', 'ALPINE-CVE-2026-1']) {
    const found = await vulnerable(`vulnerability=${name}`)
    assert.deepEqual(shown(found), [`${first} 1.0`, `${other} latest`].sort())
    const image = found.images.find(({ digest }: Json) => digest === first)
    assert.deepEqual(image, {
      repoUid: app,
      digest: first,
      tags: ['1.0'],
      moreTags: false,
      state: 'AFFECTED',
      severity: 'high',
      purls: ['pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64'],
      morePurls: false,
    })
    assert.deepEqual([found.nextPageToken, found.unknownImages], ['', 0])
  }
  assert.deepEqual((await vulnerable('vulnerability=CVE-1999-1')).images, [])
})

test('finds images by records that arrive later, and not by withdrawn records', async () => {
  const about = (more: object = {}) => recordAbout('CVE-2026-7', 'Alpine:v3.19', 'zlib', '9', more)
  await readSource(registry.app, 'Alpine:v3.19', [about()])
  assert.deepEqual(shown(await vulnerable('vulnerability=CVE-2026-7')), [`${first} 1.0`])
  await readSource(registry.app, 'Alpine:v3.19', [about({ withdrawTime: '2026-01-01T00:00:00.000Z' })])
  assert.deepEqual((await vulnerable('vulnerability=CVE-2026-7')).images, [])
})

test('a version that cannot be compared is listed as uncertain', async () => {
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-8', 'Alpine:v3.19', 'odd', '9')])
  const [image] = (await vulnerable('vulnerability=CVE-2026-8')).images
  assert.deepEqual([image.digest, image.state, image.severity], [other, 'UNCERTAIN', 'unknown'])
})

test('pages together contain the complete list', async () => {
  const query = 'vulnerability=CVE-2026-2&pageSize=1'
  await push('acme/team/worker', ['musl 1.2.4-r2'], 'two')
  const all = shown(await vulnerable('vulnerability=CVE-2026-2'))
  assert.equal(all.length, 3)
  const found: string[] = []
  let pages = 0
  for (let token = ''; ; pages++) {
    const page = await vulnerable(`${query}&pageToken=${token}`)
    assert.ok(page.images.length <= 1)
    found.push(...shown(page))
    token = page.nextPageToken
    if (token === '') break
  }
  assert.deepEqual(found.sort(), all)
  assert.ok(pages >= 2)
  const token = (await vulnerable(query)).nextPageToken
  assertInvalid(
    await viewer.get(`/registry/v2/vulnerableImages?vulnerability=CVE-2026-1&pageToken=${token}`),
    'page_token',
  )
})

test('order_by repo_uid sorts images by repository and digest, on all pages together', async () => {
  const keyOf = ({ repoUid, digest }: Json) => `${repoUid} ${digest}`
  for (const [list, query] of [
    [vulnerable, 'vulnerability=CVE-2026-2'],
    [having, 'name=flask'],
  ] as const) {
    for (const [client, scope] of [
      [viewer, ''],
      [viewer, `&scopeUid=${worker}`],
      [ofApp, ''],
      [registry.operator, ''],
    ] as const) {
      const ask = (more: string) => list(`${query}${scope}${more}`, client)
      const all = ((await ask('')).images as Json[]).map(keyOf).sort()
      assert.ok(all.length >= 1)
      for (const desc of [false, true]) {
        const wanted = desc ? all.toReversed() : all
        const order = `&orderBy=${desc ? 'repo_uid desc' : 'repoUid'}`
        assert.deepEqual(((await ask(order)).images as Json[]).map(keyOf), wanted)
        const found: string[] = []
        for (let token = ''; ; ) {
          const page: Json = await ask(`${order}&pageSize=1&pageToken=${token}`)
          assert.deepEqual([page.totalCount, page.skipped], [String(all.length), 0])
          found.push(...page.images.map(keyOf))
          token = page.nextPageToken
          if (token === '') break
        }
        assert.deepEqual(found, wanted)
        const rest = await ask(`${order}&skip=1`)
        assert.deepEqual([rest.images.map(keyOf), rest.skipped], [wanted.slice(1), 1])
      }
    }
  }
  const token = (await vulnerable('vulnerability=CVE-2026-2&pageSize=1&orderBy=repo_uid')).nextPageToken
  const mixed = await viewer.get(`/registry/v2/vulnerableImages?vulnerability=CVE-2026-2&pageToken=${token}`)
  assertInvalid(mixed, 'page_token')
  for (const order of ['list', 'digest', 'repo_uid up']) {
    assertInvalid(await viewer.get(`/registry/v2/imagesWithPackage?name=flask&orderBy=${order}`), 'order_by')
  }
})

test('lists only images that the caller can list, in each scope', async () => {
  assert.deepEqual(shown(await vulnerable('vulnerability=CVE-2026-1', ofApp)), [`${first} 1.0`])
  assert.deepEqual(shown(await vulnerable(`vulnerability=CVE-2026-1&scopeUid=${worker}`)), [`${other} latest`])
  assert.deepEqual((await vulnerable('vulnerability=CVE-2026-1', stranger)).images, [])
  assert.deepEqual((await having('name=openssl', stranger)).images, [])
  assert.equal((await vulnerable('vulnerability=CVE-2026-1', registry.operator)).images.length, 2)
  for (const path of ['vulnerableImages?vulnerability=CVE-2026-1', 'imagesWithPackage?name=openssl']) {
    assertDenied(await ofApp.get(`/registry/v2/${path}&scopeUid=${worker}`))
    assertDenied(await stranger.get(`/registry/v2/${path}&scopeUid=${app}`))
    assertInvalid(await viewer.get(`/registry/v2/${path}&scopeUid=x`), 'scope_uid')
    const missing = `${registry.org.uid}/${'0'.repeat(16)}`
    assertNotFound(await viewer.get(`/registry/v2/${path}&scopeUid=${missing}`), 'iam.pinfold.dev/Group', missing)
  }
})

test('an advisory of one organization does not affect another one', async () => {
  const { seed } = registry
  const strange = await seed.group('', { name: 'strange' })
  await seed.repo(strange.uid, { name: 'app' })
  const owner = await registry.as((await seed.member(strange.uid, roleUids.owner)).uid)
  assert.deepEqual((await vulnerable('vulnerability=CVE-2026-1', owner)).images, [])
})

test('counts images with unknown contents', async () => {
  const before = (await vulnerable('vulnerability=CVE-2026-1')).unknownImages
  const pusher = await registry.registryAs(registry.pusher.uid)
  await pusher.pushImage('acme/shop/app', 'empty')
  assert.equal((await vulnerable('vulnerability=CVE-2026-1')).unknownImages, before + 1)
  assert.equal((await having('name=openssl')).unknownImages, before + 1)
  assert.equal((await vulnerable('vulnerability=CVE-2026-1', stranger)).unknownImages, 0)
})

test('finds images by the name, source package, version or version range of a package', async () => {
  const found = await having('name=openssl')
  assert.equal(found.images.length, 3)
  assert.deepEqual(shown(await having('name=libssl3&version=3.1.4-r5')), [`${second} 1.1`])
  assert.deepEqual(shown(await having('name=openssl&versionRange=%3E%3D3.1.4-r3,%3C4')), [`${second} 1.1`])
  assert.deepEqual(shown(await having('name=openssl&ecosystem=Alpine&version=3.1.4-r5')), [`${second} 1.1`])
  assert.deepEqual((await having('name=openssl&ecosystem=Alpine:v3.18')).images, [])
  assert.equal((await having('name=flask&ecosystem=PyPI')).images.length, 4)
  const [{ packages, uncertain }] = (await having('name=odd&versionRange=%3C1')).images
  assert.deepEqual([packages[0].version, uncertain], ['not-a-version', true])
})

test('a package URL selects a package with its distribution, with or without a version', async () => {
  const url = (text: string) => `purl=${encodeURIComponent(text)}`
  assert.equal((await having(url('pkg:apk/alpine/libssl3'))).images.length, 3)
  assert.deepEqual(shown(await having(url('pkg:apk/alpine/libssl3@3.1.4-r5?arch=x86_64'))), [`${second} 1.1`])
  assert.deepEqual((await having(url('pkg:apk/wolfi/libssl3'))).images, [])
  assert.deepEqual((await having(url('pkg:apk/alpine/openssl'))).images, [])
  assert.equal((await having(url('pkg:pypi/Flask'))).images.length, 4)
})

test('an error for an invalid request names the field', async () => {
  const fails = async (path: string, field: string) => assertInvalid(await viewer.get(`/registry/v2/${path}`), field)
  await fails('vulnerableImages', 'vulnerability')
  await fails('vulnerableImages?vulnerability=a%20b', 'vulnerability')
  await fails(`vulnerableImages?vulnerability=${'a'.repeat(300)}`, 'vulnerability')
  await fails('vulnerableImages?vulnerability=CVE-1&pageSize=-1', 'page_size')
  await fails('imagesWithPackage', 'name')
  await fails('imagesWithPackage?name=a&purl=pkg:apk/a', 'purl')
  await fails('imagesWithPackage?purl=nothing', 'purl')
  await fails(`imagesWithPackage?name=${'a'.repeat(600)}`, 'name')
  await fails('imagesWithPackage?name=a&versionRange=about+3', 'version_range')
  await fails('imagesWithPackage?name=a&version=1&versionRange=%3E2', 'version_range')
})

test('lists the packages of an image with their origin', async () => {
  const path = `/registry/v2/repos/${app}/digests/${first}/packages`
  const { packages, gaps } = ok(await ofApp.get(path))
  assert.deepEqual(gaps, [])
  assert.deepEqual(packages.map(({ name }: Json) => name).sort(), ['flask', 'libssl3', 'musl', 'zlib'])
  assert.deepEqual(
    packages.find(({ name }: Json) => name === 'libssl3'),
    {
      purl: 'pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64',
      name: 'libssl3',
      version: '3.1.4-r2',
      ecosystem: 'Alpine:v3.19',
      origin: 'openssl',
      originVersion: '3.1.4-r2',
      architecture: 'x86_64',
      locations: [],
    },
  )
  const page = ok(await ofApp.get(`${path}?pageSize=3`))
  const rest = ok(await ofApp.get(`${path}?pageSize=3&pageToken=${page.nextPageToken}`))
  assert.deepEqual([...page.packages, ...rest.packages], packages)
  assert.equal(rest.nextPageToken, '')
  assertDenied(await stranger.get(path))
  assertDenied(await ofApp.get(`/registry/v2/repos/${worker}/digests/${other}/packages`))
  assertInvalid(await ofApp.get(`/registry/v2/repos/${app}/digests/latest/packages`), 'digest')
  assertNotFound(
    await ofApp.get(`/registry/v2/repos/${app}/digests/${other}/packages`),
    'registry.pinfold.dev/Image',
    other,
  )
})

const compared = (digest: string, base: string, more = '') =>
  `/registry/v2/repos/${app}/digests/${digest}/comparison?baseDigest=${base}${more}`

test('compares two images by packages and by vulnerabilities', async () => {
  const { added, removed, changed, found, resolved } = ok(await ofApp.get(compared(second, first)))
  assert.deepEqual(
    added.map(({ name }: Json) => name),
    ['curl'],
  )
  assert.deepEqual(
    removed.map(({ name }: Json) => name),
    ['zlib'],
  )
  assert.deepEqual(
    changed.map((one: Json) => [one.package.name, one.baseVersion, one.package.version]),
    [['libssl3', '3.1.4-r2', '3.1.4-r5']],
  )
  assert.deepEqual(found, [])
  assert.deepEqual(resolved, [
    { vulnerability: 'CVE-2026-1', severity: 'high', purls: ['pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64'] },
  ])
  const back = ok(await ofApp.get(compared(first, second)))
  assert.deepEqual([back.found, back.resolved], [resolved, []])
  const across = ok(await viewer.get(compared(first, other, `&baseRepoUid=${worker}`)))
  assert.deepEqual(
    across.found.map(({ vulnerability }: Json) => vulnerability),
    ['CVE-2026-2'],
  )
})

test('a comparison shows the coverage gaps of both images, and reports unknown findings as unresolved', async () => {
  const whole = ok(await ofApp.get(compared(second, first)))
  // No data source covers PyPI.
  assert.deepEqual(
    [whole.gaps, whole.baseGaps].map((gaps) => gaps.map(({ reason, subject }: Json) => `${reason} ${subject}`)),
    [['NO_SOURCE PyPI'], ['NO_SOURCE PyPI']],
  )
  const pusher = await registry.registryAs(registry.pusher.uid)
  const { digest } = await pusher.pushImage('acme/shop/app', 'unread')
  const after = ok(await ofApp.get(compared(digest, first)))
  assert.deepEqual([after.removed, after.resolved, after.found], [[], [], []])
  assert.equal(after.gaps[0].reason, 'CONTENTS_UNREAD')
  const base = ok(await ofApp.get(compared(first, digest)))
  assert.deepEqual([base.added, base.found, base.resolved], [[], [], []])
  assert.equal(base.baseGaps[0].reason, 'CONTENTS_UNREAD')
  await runJob(registry.app, matchPackages)
})

test('a comparison requires the same permissions for both images', async () => {
  assertDenied(await stranger.get(compared(first, second)))
  assertDenied(await ofApp.get(compared(first, other, `&baseRepoUid=${worker}`)))
  assertInvalid(await viewer.get(compared(first, other, '&baseRepoUid=x')), 'base_repo_uid')
  assertInvalid(await viewer.get(compared(first, 'x')), 'base_digest')
  assertNotFound(await viewer.get(compared(first, other)), 'registry.pinfold.dev/Image', other)
})

test('does not list a deleted image', async () => {
  const gone = await push('acme/team/worker', ['zlib 1.1-r0'])
  assert.equal((await having('name=zlib&version=1.1-r0')).images.length, 1)
  const pusher = await registry.registryOperator
  await pusher.ok(202, 'DELETE', `acme/team/worker/manifests/${gone}`)
  assert.deepEqual((await having('name=zlib&version=1.1-r0')).images, [])
})

test('an image with the same packages is found only by callers who can list it, also in another organization', async () => {
  const lines = ['libssl3 3.1.4-r2 openssl', 'same 1-r0']
  const beside = await registry.seed.group('', { name: 'beside' })
  const digest = await push('acme/shop/app', lines, 'same')
  const { call, ok: done, pushManifest } = registry.registryOperator
  const { config, layers } = (await done(200, 'GET', `acme/shop/app/manifests/${digest}`)).body
  for (const name of ['acme/team/worker', 'beside/app']) {
    for (const one of [config, ...layers]) {
      await call('POST', `${name}/blobs/uploads/?mount=${one.digest}&from=acme/shop/app`)
    }
    await pushManifest(name, imageOf(config, layers), 'same')
  }
  await runJob(registry.app, readImages)
  const names = ['acme/shop/app', 'acme/team/worker', 'beside/app']
  const ofBeside = await registry.as((await registry.seed.member(beside.uid, roleUids.viewer)).uid)
  const query = 'name=same'
  const foundRepos = async (client: Client, more = '') => {
    const found = await having(`${query}${more}`, client)
    assert.equal(found.totalCount ?? String(found.images.length), String(found.images.length))
    return found.images.map(({ repoUid }: Json) => repoUid).sort()
  }
  const repos = await Promise.all(names.map(async (name) => (await registry.app.paths.find(name)).repo!.uid))
  assert.deepEqual(await foundRepos(registry.operator), repos.toSorted())
  assert.deepEqual(await foundRepos(viewer), repos.slice(0, 2).sort())
  assert.deepEqual(await foundRepos(ofApp), [app])
  assert.deepEqual(await foundRepos(viewer, `&scopeUid=${worker}`), [worker])
  assert.deepEqual(await foundRepos(ofBeside), [repos[2]])
  assert.deepEqual(await foundRepos(stranger), [])
})
