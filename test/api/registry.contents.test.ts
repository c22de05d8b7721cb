import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { readerLimits } from '#contents/reader.ts'
import { maxSbomBytes } from '#contents/reader-messages.ts'
import { sql } from '#db/sql.ts'
import { readImages, readImagesWithin } from '#domains/registry/images/read-images.job.ts'
import { startWorkers, type Workers } from '#workers.ts'
import { fixture } from '../support/fixtures.ts'
import { allRead, alpine, pushLayers, pushSbom } from '../support/images.ts'
import { tarOf } from '../support/layers.ts'
import type { Json } from '../support/pinfold.ts'
import { digestOf, imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

let registry: TestRegistry
let reader: Workers
before(async () => {
  registry = await startRegistry()
  reader = await startWorkers(registry.app, { jobs: [readImages] })
})
after(async () => {
  await reader.close()
  await registry[Symbol.asyncDispose]()
})

const apk = 'lib/apk/db/installed'
let count = 0
const newName = () => `acme/image-${count++}`

/** Stored contents of an image by its digest, in the newest repository, because several tests push the same image. */
async function contentsOf(digest: string): Promise<Json | undefined> {
  await allRead(registry)
  return registry.app.db.get<Json>(sql`
    SELECT c.state, c.source, c.reason, c.distribution, c.gaps, p.packages
      FROM image_contents c LEFT JOIN package_lists p ON p.hash = c.packages WHERE c.digest = ${digest}
     ORDER BY c.repo_id DESC LIMIT 1`)
}
const known = 1
const unknown = 2
const unreadable = 3
const [sbom, layers, images, layersAndSbom] = [1, 2, 3, 4]
const namesIn = (found: Json | undefined): string[] => (JSON.parse(found?.packages) as Json[]).map((one) => one[1])

test('finds the packages in the layers of an image after a push', async () => {
  const name = newName()
  const image = await pushLayers(registry.pusher, name, [alpine('alpine-3.10'), { 'etc/motd': 'hello' }], 'latest')
  const found = await contentsOf(image.digest)
  assert.deepEqual([found?.state, found?.source, found?.distribution], [known, layers, 'alpine'])
  assert.equal(namesIn(found).length, 14)
  assert.ok(namesIn(found).includes('ssl_client'))
})

test('reads layers of each compression, in order', async () => {
  const name = newName()
  const upper = zstdCompressSync(await tarOf({ [apk]: 'P:only\nV:1-r0\nA:x86_64\n' }))
  const image = await pushLayers(registry.pusher, name, [await tarOf(alpine('alpine-3.11')), upper])
  assert.deepEqual(namesIn(await contentsOf(image.digest)), ['only'])
})

test('adds the packages of an SBOM to those of the layers, and hides none', async () => {
  const name = newName()
  const own = 'P:ssl_client\nV:1.30.1-r5\nA:x86_64\n\nP:own\nV:1\n'
  const image = await pushLayers(registry.pusher, name, [{ [apk]: own }])
  assert.equal((await contentsOf(image.digest))?.source, layers)
  await pushSbom(registry.pusher, name, image, fixture('contents/sboms/alpine-3.10.syft.spdx.json'))
  const found = await contentsOf(image.digest)
  assert.deepEqual([found?.source, found?.distribution], [layersAndSbom, 'alpine'])
  assert.deepEqual(namesIn(found), ['busybox', 'libssl1.1', 'own', 'ssl_client'])

  const bom = fixture('contents/sboms/bom-alpine-app.cdx.json')
  await pushSbom(registry.pusher, name, image, bom, 'application/vnd.cyclonedx+json')
  const kinds = (JSON.parse((await contentsOf(image.digest))?.packages) as string[][]).map(
    ([kind, one]) => `${kind} ${one}`,
  )
  assert.deepEqual(kinds.slice(0, 3), ['apk musl', 'apk own', 'apk ssl_client'])
  assert.deepEqual(new Set(kinds.slice(3).map((one) => one.split(' ')[0])), new Set(['golang', 'maven', 'npm']))
})

test('reads the attestations that build tools add to the index of an image', async () => {
  const name = newName()
  const image = await pushLayers(registry.pusher, name, [{ 'app/server': 'binary' }])
  assert.equal((await contentsOf(image.digest))?.state, unknown)
  const stated = async (digest: string, predicateType: string, predicate: unknown) => {
    const subject = [{ name: 'pkg:docker/app', digest: { sha256: digest.slice(7) } }]
    const statement = JSON.stringify({ _type: 'https://in-toto.io/Statement/v0.1', predicateType, subject, predicate })
    const layer = await registry.pusher.pushBlob(name, statement, 'application/vnd.in-toto+json')
    return { ...layer, annotations: { 'in-toto.io/predicate-type': predicateType } }
  }
  const document = JSON.parse(fixture('contents/sboms/bom.spdx.json').toString()) as unknown
  const config = await registry.pusher.pushBlob(name, '{}', types.config)
  const attestation = await registry.pusher.pushManifest(
    name,
    imageOf(config, [
      await stated(image.digest, 'https://slsa.dev/provenance/v0.2', {}),
      await stated(image.digest, 'https://spdx.dev/Document', document),
    ]),
  )
  const index = await registry.pusher.pushManifest(
    name,
    indexOf([
      { ...image, platform: { architecture: 'amd64', os: 'linux' } },
      {
        ...attestation,
        platform: { architecture: 'unknown', os: 'unknown' },
        annotations: {
          'vnd.docker.reference.type': 'attestation-manifest',
          'vnd.docker.reference.digest': image.digest,
        },
      },
    ]),
  )
  const names = ['musl', 'github.com/package-url/packageurl-go', 'org.codehaus.mojo:child-project', 'bootstrap']
  const found = await contentsOf(image.digest)
  assert.deepEqual([found?.state, found?.source, namesIn(found)], [known, sbom, names])
  assert.deepEqual(namesIn(await contentsOf(index.digest)), names)

  const other = await pushLayers(registry.pusher, name, [{ 'app/other': 'binary' }])
  const referring = { artifactType: 'application/vnd.in-toto+json', subject: other }
  const layer = await stated(other.digest, 'https://spdx.dev/Document', document)
  await registry.pusher.pushManifest(
    name,
    imageOf(await registry.pusher.pushBlob(name, '{}', types.empty), [layer], referring),
  )
  assert.deepEqual(namesIn(await contentsOf(other.digest)), names)
})

test('uses an SBOM if the layers cannot be read, and reports the layers as a coverage gap', async () => {
  const name = newName()
  const image = await pushLayers(registry.pusher, name, [{ [apk]: fixture('contents/negative/apk-corrupt') }])
  assert.deepEqual((await contentsOf(image.digest))?.state, unreadable)
  await pushSbom(registry.pusher, name, image, fixture('contents/sboms/alpine-3.10.syft.spdx.json'))
  const found = await contentsOf(image.digest)
  assert.deepEqual([found?.state, found?.source, namesIn(found).length], [known, sbom, 3])
  assert.deepEqual(
    (JSON.parse(found?.gaps) as Json[]).map(({ reason }) => reason),
    ['DAMAGED'],
  )
})

test('ignores an SBOM that is invalid or names no package', async () => {
  const name = newName()
  const image = await pushLayers(registry.pusher, name, [alpine('alpine-3.10')])
  await pushSbom(registry.pusher, name, image, '{"spdxVersion":')
  await pushSbom(registry.pusher, name, image, fixture('contents/sboms/identify-spdx-3.0.json'))
  await pushSbom(registry.pusher, name, image, 'x', 'application/vnd.cyclonedx+json')
  const found = await contentsOf(image.digest)
  assert.deepEqual([found?.state, found?.source, namesIn(found).length], [known, layers, 14])
})

test('an SBOM in one repository does not apply to the same image in another repository', async () => {
  const [one, other] = [newName(), newName()]
  const image = await pushLayers(registry.pusher, one, [alpine('alpine-2016')])
  await pushLayers(registry.pusher, other, [alpine('alpine-2016')])
  await pushSbom(registry.pusher, one, image, fixture('contents/sboms/alpine-3.10.syft.spdx.json'))
  await allRead(registry)
  const rows = await registry.app.db.all<Json>(
    sql`SELECT source FROM image_contents WHERE digest = ${image.digest} ORDER BY source`,
  )
  assert.deepEqual(
    rows.map(({ source }) => source),
    [layers, layersAndSbom],
  )
})

test('without a package database, the contents are unknown, not empty', async () => {
  const scratch = await pushLayers(registry.pusher, newName(), [{ 'app/server': 'binary' }])
  assert.deepEqual((await contentsOf(scratch.digest))?.state, unknown)
  const empty = await pushLayers(registry.pusher, newName(), [{ [apk]: '' }])
  assert.deepEqual(namesIn(await contentsOf(empty.digest)), [])
})

test('stores the reason for an unreadable image, and does not read it again', async () => {
  const damaged = await pushLayers(registry.pusher, newName(), [
    gzipSync('not an archive at all, but long enough'.repeat(50)),
  ])
  const corrupt = await pushLayers(registry.pusher, newName(), [{ [apk]: fixture('contents/negative/apk-corrupt') }])
  const bomb = await pushLayers(registry.pusher, newName(), [gzipSync(Buffer.alloc(40 * 2 ** 20))])
  const foreign = {
    mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
    size: 1,
    digest: digestOf('x'),
  }
  const config = await registry.pusher.pushBlob('acme/windows', '{}', types.config)
  const manifest = { schemaVersion: 2, mediaType: types.image, config, layers: [foreign] }
  const windows = await registry.pusher.pushManifest('acme/windows', manifest)
  const reasons = []
  for (const { digest } of [damaged, corrupt, bomb, windows]) {
    const found = await contentsOf(digest)
    reasons.push([found?.state, found?.reason])
  }
  assert.deepEqual(reasons, [
    [unreadable, 'DAMAGED'],
    [unreadable, 'DAMAGED'],
    [unreadable, 'LIMIT_EXCEEDED'],
    [unreadable, 'BLOB_MISSING'],
  ])
})

test('an index has the combined contents of its images, in any order of images', async () => {
  const name = newName()
  const amd = await pushLayers(registry.pusher, name, [{ [apk]: 'P:a\nV:1-r0\nA:x86_64\n' }])
  const arm = await pushLayers(registry.pusher, name, [{ [apk]: 'P:a\nV:1-r0\nA:aarch64\n\nP:b\nV:1\nA:aarch64\n' }])
  const attestation = await pushLayers(registry.pusher, name, [Buffer.from('not a layer but a statement')])
  const index = await registry.pusher.pushManifest(
    name,
    indexOf([
      { ...amd, platform: { architecture: 'amd64', os: 'linux' } },
      { ...arm, platform: { architecture: 'arm64', os: 'linux' } },
      { ...attestation, platform: { architecture: 'unknown', os: 'unknown' } },
    ]),
    'latest',
  )
  const found = await contentsOf(index.digest)
  assert.deepEqual([found?.state, found?.source, namesIn(found)], [known, images, ['a', 'a', 'b']])

  const nested = await registry.pusher.pushManifest(name, indexOf([index]))
  assert.deepEqual(namesIn(await contentsOf(nested.digest)), ['a', 'a', 'b'])
  await pushSbom(registry.pusher, name, amd, fixture('contents/sboms/bom.spdx.json'))
  assert.deepEqual(namesIn(await contentsOf(nested.digest)).slice(0, 4), ['a', 'a', 'b', 'musl'])
})

test('compares the packages of one distribution of a multi-platform image, and reports the others as a gap', async () => {
  const name = newName()
  const osRelease = (id: string, version: string) => ({ 'etc/os-release': `ID=${id}\nVERSION_ID=${version}\n` })
  const left = { 'app/node_modules/left/package.json': '{"name":"left","version":"1.0.0"}' }
  const bare = await pushLayers(registry.pusher, name, [left])
  const images = [
    bare,
    await pushLayers(registry.pusher, name, [{ ...osRelease('alpine', '3.19.1'), [apk]: 'P:a\nV:1-r0\nA:x86_64\n' }]),
    await pushLayers(registry.pusher, name, [{ ...osRelease('alpine', '3.19.4'), [apk]: 'P:b\nV:1-r0\nA:aarch64\n' }]),
    await pushLayers(registry.pusher, name, [{ ...osRelease('wolfi', '2023'), [apk]: 'P:c\nV:1-r0\nA:x86_64\n' }]),
  ]
  images.push(await pushLayers(registry.pusher, name, [{ [apk]: 'P:d\nV:1-r0\nA:x86_64\n' }]))
  const listed = images.map((one) => ({ ...one, platform: { architecture: 'amd64', os: 'linux' } }))
  const index = await registry.pusher.pushManifest(name, indexOf(listed), 'latest')
  const found = await contentsOf(index.digest)
  const isFirst = found?.distribution === 'alpine'
  // Two version numbers of one release mean one distribution. An image without a version counts as the distribution of the
  // others.
  assert.deepEqual(namesIn(found), isFirst ? ['a', 'b', 'd', 'left'] : ['c', 'd', 'left'])
  const gaps = (JSON.parse(found?.gaps) as Json[]).map(({ reason, message }) => {
    return `${reason} ${/of (alpine|wolfi) /.exec(message)?.[1] ?? ''}`.trim()
  })
  // The two Alpine images have different packages, so each one is a coverage gap.
  const others = isFirst ? ['UNSUPPORTED wolfi'] : ['UNSUPPORTED alpine', 'UNSUPPORTED alpine']
  assert.deepEqual(gaps.sort(), ['UNIDENTIFIED', ...others])
})

test('an index with an unreadable image is unreadable; an image without packages has no effect on its index', async () => {
  const name = newName()
  const good = await pushLayers(registry.pusher, name, [{ [apk]: 'P:a\nV:1-r0\n' }])
  const scratch = await pushLayers(registry.pusher, name, [{ x: 'y' }])
  const bad = await pushLayers(registry.pusher, name, [Buffer.from('no archive'.repeat(100))])
  const of = async (...children: Json[]) => {
    const { digest } = await registry.pusher.pushManifest(name, indexOf(children as never))
    return (await contentsOf(digest))?.state
  }
  assert.deepEqual([await of(good, scratch), await of(scratch), await of(good, bad)], [known, unknown, unreadable])
})

test('an image that needs too much memory or time is unreadable, and the server continues', async () => {
  await using other = await startRegistry()
  const values = `{"bomFormat":"CycloneDX","specVersion":"1.5","x":[${'{"a":{}},'.repeat(900_000)}0]}`
  for (const [limits, expected] of [
    [
      { ...readerLimits, heapMb: 48 },
      { state: known, source: layers, reason: '' },
    ],
    [
      { ...readerLimits, heapMb: 4 },
      { state: unreadable, source: 0, reason: 'LIMIT_EXCEEDED' },
    ],
    [
      { ...readerLimits, layersMs: 1, sbomMs: 1 },
      { state: unreadable, source: 0, reason: 'TIMED_OUT' },
    ],
  ] as const) {
    const name = newName()
    const image = await pushLayers(other.pusher, name, [alpine('alpine-3.10'), { name }])
    await pushSbom(other.pusher, name, image, values)
    const costly = await startWorkers(other.app, { jobs: [readImagesWithin(limits)] })
    await allRead(other)
    await costly.close()
    const found = await other.app.db.get<Json>(sql`
      SELECT state, source, reason FROM image_contents WHERE digest = ${image.digest}`)
    assert.deepEqual(found, expected)
    assert.equal((await other.anonymous.get('/healthz')).status, 200)
  }
})

test('ignores the size in the descriptor of an SBOM', async () => {
  await using other = await startRegistry({ sparseManifests: 'all' })
  const name = 'acme/app'
  const image = await pushLayers(other.pusher, name, [alpine('alpine-3.10')])
  const document = fixture('contents/sboms/alpine-3.10.syft.spdx.json')
  const layer = { mediaType: 'application/spdx+json', digest: digestOf(document), size: 2 ** 50 }
  const about = { artifactType: 'application/spdx+json', subject: image }
  await other.pusher.pushManifest(name, imageOf(await other.pusher.pushBlob(name, '{}', types.empty), [layer], about))
  await other.pusher.pushBlob(name, document)

  const large = await pushLayers(other.pusher, name, [alpine('alpine-3.11')])
  const blank = Buffer.alloc(maxSbomBytes + 1, ' ')
  const lie = { mediaType: 'application/spdx+json', digest: digestOf(blank), size: 100 }
  const of = { artifactType: 'application/spdx+json', subject: large }
  await other.pusher.pushManifest(name, imageOf(await other.pusher.pushBlob(name, '{}', types.empty), [lie], of))
  await other.pusher.pushBlob(name, blank)
  const opened: string[] = []
  const { read } = other.app.blobs
  other.app.blobs.read = (blob) => {
    opened.push((blob as Json).digest)
    return read(blob)
  }
  const readers = await startWorkers(other.app, { jobs: [readImages] })
  await allRead(other)
  await readers.close()
  const rows = await other.app.db.all<Json>(sql`SELECT digest, source FROM image_contents`)
  const sources = new Map(rows.map(({ digest, source }) => [digest, source]))
  assert.deepEqual([sources.get(image.digest), sources.get(large.digest)], [layersAndSbom, layers])
  assert.equal(opened.filter((digest) => digest === lie.digest).length, 0)
})

test('does not read the content of a signature or an attestation as a layer', async () => {
  const name = newName()
  const config = await registry.pusher.pushBlob(name, '{}', types.config)
  const signature = await registry.pusher.pushBlob(
    name,
    '{"signed":1}',
    'application/vnd.dev.cosign.simplesigning.v1+json',
  )
  const layer = await registry.pusher.pushBlob(name, await tarOf({ [apk]: 'P:a\nV:1\n' }), types.layer)
  const of = async (...layers: Json[]) => {
    const manifest = { schemaVersion: 2, mediaType: types.image, config, layers }
    const found = await contentsOf((await registry.pusher.pushManifest(name, manifest)).digest)
    return [found?.state, found?.reason]
  }
  assert.deepEqual(await of(signature), [unknown, ''])
  assert.deepEqual(await of(layer, signature), [known, ''])
})

test('does not read the contents of artifacts other than images', async () => {
  const name = newName()
  const config = await registry.pusher.pushBlob(name, '{}', 'application/vnd.cncf.helm.config.v1+json')
  const chart = await registry.pusher.pushBlob(name, 'chart', 'application/vnd.cncf.helm.chart.content.v1.tar+gzip')
  const manifest = { schemaVersion: 2, mediaType: types.image, config, layers: [chart] }
  const { digest } = await registry.pusher.pushManifest(name, manifest)
  assert.equal(await contentsOf(digest), undefined)
})

test('stores equal package lists once, and deletes them with the last repository that uses them', async () => {
  const names = [newName(), newName()]
  const layer = { [apk]: 'P:shared-list\nV:7\n' }
  const first = await pushLayers(registry.pusher, names[0]!, [layer, { one: '1' }])
  const second = await pushLayers(registry.pusher, names[1]!, [layer, { two: '2' }])
  assert.deepEqual((await contentsOf(first.digest))?.packages, (await contentsOf(second.digest))?.packages)
  const lists = () => registry.app.db.all(sql`SELECT 1 AS one FROM package_lists WHERE packages LIKE '%shared-list%'`)
  for (const [i, left] of [1, 0].entries()) {
    assert.equal((await lists()).length, 1)
    const { body } = await registry.operator.get(`/registry/v2/repos?name=${names[i]!.split('/')[1]}`)
    assert.equal((await registry.operator.delete(`/registry/v2/repos/${body.repos[0].uid}`)).status, 200)
    assert.equal((await lists()).length, left)
  }
  assert.equal(await contentsOf(first.digest), undefined)
})
