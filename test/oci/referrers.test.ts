// Referrers of a manifest.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codeOf, digestOf, imageOf, indexOf, startRegistry, types } from '../support/registry.ts'

const name = 'acme/app'

test('finds artifacts by their subject manifest and by their type', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const subject = await pusher.pushImage(name, 'v1')
  const empty = await pusher.pushBlob(name, '{}', types.empty)
  const put = async (manifest: object, type = types.image) => {
    const body = JSON.stringify(manifest)
    const pushed = await pusher.ok(201, 'PUT', `${name}/manifests/${digestOf(body)}`, {
      body,
      headers: { 'content-type': type },
    })
    assert.equal(pushed.headers['oci-subject'], subject.digest)
    return { digest: digestOf(body), size: body.length, mediaType: type }
  }
  const annotations = { 'org.example.key': 'value' }
  const sbom = await put(imageOf(empty, [empty], { artifactType: 'application/x-sbom', subject, annotations }))
  const image = await put(imageOf(empty, [], { subject }))
  const index = await put(indexOf([subject], { artifactType: 'application/x-list', subject }), types.index)
  const plain = await put(indexOf([], { subject }), types.index)

  const list = async (query = '') => {
    const { headers, body } = await puller.ok(200, 'GET', `${name}/referrers/${subject.digest}${query}`)
    assert.equal(headers['content-type'], types.index)
    assert.deepEqual([body.schemaVersion, body.mediaType], [2, types.index])
    return { manifests: body.manifests as object[], filters: headers['oci-filters-applied'] }
  }
  const expected = [
    { ...sbom, artifactType: 'application/x-sbom', annotations },
    { ...image, artifactType: types.empty },
    { ...index, artifactType: 'application/x-list' },
    plain,
  ].sort((a, b) => (a.digest < b.digest ? -1 : 1))
  assert.deepEqual(await list(), { manifests: expected, filters: undefined })
  assert.deepEqual(await list('?artifactType=application/x-sbom'), {
    manifests: [{ ...sbom, artifactType: 'application/x-sbom', annotations }],
    filters: 'artifactType',
  })
  assert.deepEqual((await list('?artifactType=other')).manifests, [])
  // An empty type filters nothing. A plus sign stays a plus sign.
  assert.deepEqual(await list('?artifactType='), { manifests: expected, filters: undefined })
  const spdx = await put(imageOf(empty, [empty], { artifactType: 'application/spdx+json', subject }))
  for (const query of ['application/spdx+json', 'application/spdx%2Bjson']) {
    assert.deepEqual(await list(`?artifactType=${query}`), {
      manifests: [{ ...spdx, artifactType: 'application/spdx+json' }],
      filters: 'artifactType',
    })
  }
  await pusher.ok(202, 'DELETE', `${name}/manifests/${spdx.digest}`)

  await pusher.ok(202, 'DELETE', `${name}/manifests/${sbom.digest}`)
  assert.equal((await list()).manifests.length, 3)
  const none = await puller.ok(200, 'GET', `${name}/referrers/${digestOf('nothing refers to this')}`)
  assert.deepEqual(none.body.manifests, [])
  assert.equal(codeOf(await puller.call('GET', `${name}/referrers/v1`)), 'DIGEST_INVALID')
  const nowhere = await puller.ok(200, 'GET', `acme/none/referrers/${subject.digest}`)
  assert.deepEqual(nowhere.body.manifests, [])
  assert.equal((await puller.call('GET', `other/none/referrers/${subject.digest}`)).status, 403)
})

test('a subject can be pushed after its referrers', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const subject = { mediaType: types.image, digest: digestOf('not here yet'), size: 5 }
  await pusher.pushImage(name, 'sig', { subject })
  const { body } = await pusher.ok(200, 'GET', `${name}/referrers/${subject.digest}`)
  assert.equal(body.manifests.length, 1)
})

test('serves a long list in pages of a limited size', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const subject = await pusher.pushImage(name, 'v1')
  const empty = await pusher.pushBlob(name, '{}', types.empty)
  const digests: string[] = []
  for (let i = 0; i < 5; i++) {
    const annotations = { large: String(i).repeat(1_000_000) }
    digests.push((await pusher.pushManifest(name, imageOf(empty, [], { subject, annotations }))).digest)
  }
  const found: string[] = []
  let path: string | undefined = `${name}/referrers/${subject.digest}?artifactType=${encodeURIComponent(types.empty)}`
  for (let pages = 0; path !== undefined; pages++) {
    assert.ok(pages < 5)
    const page = await puller.ok(200, 'GET', path)
    assert.ok(page.bytes.length < 4 * 1024 * 1024)
    found.push(...(page.body.manifests as { digest: string }[]).map(({ digest }) => digest))
    path = /^<([^>]*)>; rel="next"$/.exec(String(page.headers.link ?? ''))?.[1]
  }
  assert.deepEqual(found, digests.sort())
})
