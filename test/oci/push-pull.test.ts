// Manifests: pushing and pulling by tag and digest, conditions, deletes.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { codeOf, digestOf, imageOf, indexOf, startRegistry, types } from '../support/registry.ts'

const name = 'acme/team/app'
const path = (reference: string) => `${name}/manifests/${reference}`

test('a pushed image can be pulled by tag and by digest', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const layer = await pusher.pushBlob(name, randomBytes(3000))
  const config = await pusher.pushBlob(name, '{"architecture":"amd64"}', types.config)
  const text = JSON.stringify(imageOf(config, [layer]), null, 2)
  const { digest } = await pusher.pushManifest(name, text, 'v1')

  for (const reference of ['v1', digest]) {
    const got = await puller.ok(200, 'GET', path(reference))
    assert.equal(got.bytes.toString(), text)
    assert.equal(got.headers['content-type'], types.image)
    assert.equal(got.headers['docker-content-digest'], digest)
    assert.equal(got.headers.etag, `"${digest}"`)
    const head = await puller.ok(200, 'HEAD', path(reference))
    assert.equal(head.headers['content-length'], String(text.length))
    assert.equal(head.bytes.length, 0)
  }
  const blob = await puller.ok(200, 'GET', `${name}/blobs/${layer.digest}`)
  assert.equal(digestOf(blob.bytes), layer.digest)
  assert.equal(blob.headers['docker-content-digest'], layer.digest)
  assert.equal((await puller.ok(200, 'HEAD', `${name}/blobs/${layer.digest}`)).headers['content-length'], '3000')
})

test('returns the error code for each kind of missing content', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  await pusher.pushImage(name, 'v1')
  const absent = digestOf('absent')
  const code = async (method: string, route: string) => codeOf(await puller.call(method, `${name}/${route}`))
  assert.equal(await code('GET', 'manifests/v2'), 'MANIFEST_UNKNOWN')
  assert.equal(await code('GET', `manifests/${absent}`), 'MANIFEST_UNKNOWN')
  assert.equal(await code('GET', `blobs/${absent}`), 'BLOB_UNKNOWN')
  assert.equal(await code('GET', 'manifests/sha256:short'), 'DIGEST_INVALID')
  assert.equal(await code('GET', 'blobs/md5:abc'), 'DIGEST_INVALID')
  assert.equal(await code('GET', 'blobs/..%2f..%2fmaster.key'), 'DIGEST_INVALID')
  assert.equal(await code('GET', 'manifests/..%2f..%2fv1'), 'MANIFEST_UNKNOWN')
  assert.equal(codeOf(await puller.call('GET', 'acme/other/manifests/v1')), 'NAME_UNKNOWN')
  const refused = await puller.call('PUT', path('v1'), { body: '{}', headers: { 'content-type': types.image } })
  assert.equal(refused.status, 403)
  assert.equal(codeOf(refused), 'DENIED')
})

test('a tag response has the time of its last update, and supports conditional requests with it', async () => {
  let now = Date.parse('2026-03-01T10:00:00.500Z')
  await using registry = await startRegistry({ clock: () => new Date(now) })
  const { pusher, puller } = registry
  const first = await pusher.pushImage(name, 'v1')
  now += 600_000
  const second = await pusher.pushImage(name, 'v1')
  now += 600_000
  await pusher.pushManifest(name, (await pusher.ok(200, 'GET', path('v1'))).bytes.toString(), 'v1')

  const got = await puller.ok(200, 'GET', path('v1'))
  assert.equal(got.headers['docker-content-digest'], second.digest)
  assert.equal(got.headers['last-modified'], 'Sun, 01 Mar 2026 10:10:00 GMT', 'pushing the same again moves nothing')
  const status = async (headers: Record<string, string>) => (await puller.call('GET', path('v1'), { headers })).status
  assert.equal(await status({ 'if-none-match': `"${second.digest}"` }), 304)
  assert.equal(await status({ 'if-none-match': `"other", W/"${second.digest}"` }), 304)
  assert.equal(await status({ 'if-none-match': `"${first.digest}"` }), 200)
  assert.equal(await status({ 'if-modified-since': 'Sun, 01 Mar 2026 10:10:00 GMT' }), 304)
  assert.equal(await status({ 'if-modified-since': 'Sun, 01 Mar 2026 10:09:59 GMT' }), 200)
  const byDigest = await puller.ok(200, 'GET', path(first.digest))
  assert.equal(byDigest.headers['last-modified'], undefined)
})

test('accepts each kind of manifest that clients push, if all of its children exist', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const image = await pusher.pushImage(name)
  const docker = await pusher.pushImage(name, 'docker', { mediaType: types.dockerImage })
  const inner = await pusher.pushManifest(name, indexOf([image]))
  await pusher.pushManifest(name, indexOf([inner, image]), 'nested')
  await pusher.pushManifest(name, indexOf([docker], { mediaType: types.dockerList }), 'list')
  await pusher.pushManifest(name, indexOf([]), 'empty')
  const config = await pusher.pushBlob(name, '{}', types.empty)
  await pusher.pushManifest(name, imageOf(config, [config], { artifactType: 'application/x-thing' }), 'artifact')
  await pusher.pushManifest(name, imageOf(config, []), 'no-layers')
  const elsewhere = {
    mediaType: 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip',
    digest: digestOf('elsewhere'),
    size: 9,
    urls: ['https://example.com/layer'],
  }
  await pusher.pushManifest(name, imageOf(config, [elsewhere]), 'foreign')

  const absent = { mediaType: types.layer, digest: digestOf('absent'), size: 1 }
  const headers = (mediaType: string) => ({ 'content-type': mediaType })
  const put = (manifest: object, mediaType: string) =>
    pusher.call('PUT', path('v1'), { body: JSON.stringify(manifest), headers: headers(mediaType) })
  for (const [manifest, type] of [
    [imageOf(config, [absent]), types.image],
    [imageOf(absent, []), types.image],
    [indexOf([{ ...absent, mediaType: types.image }]), types.index],
  ] as const) {
    const refused = await put(manifest, type)
    assert.equal(refused.status, 404)
    assert.equal(codeOf(refused), 'MANIFEST_BLOB_UNKNOWN')
    assert.ok(JSON.stringify(refused.body).includes(absent.digest))
  }
  assert.equal((await pusher.call('GET', path('v1'))).status, 404)
})

test('a setting allows pushes of manifests before their children', async () => {
  const absent = { mediaType: types.image, digest: digestOf('absent'), size: 1 }
  for (const [sparseManifests, index, image] of [
    ['indexes', 201, 404],
    ['all', 201, 201],
  ] as const) {
    await using registry = await startRegistry({ sparseManifests })
    const put = async (tag: string, manifest: object, type: string) =>
      (
        await registry.pusher.call('PUT', path(tag), {
          body: JSON.stringify(manifest),
          headers: { 'content-type': type },
        })
      ).status
    assert.equal(await put('index', indexOf([absent]), types.index), index)
    assert.equal(await put('image', imageOf(absent, [absent]), types.image), image)
  }
})

test('a push by digest sets all tags of its parameters, or none', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const config = await pusher.pushBlob(name, '{}', types.empty)
  const body = JSON.stringify(imageOf(config, []))
  const digest = digestOf(body)
  const headers = { 'content-type': types.image }
  const bad = await pusher.call('PUT', `${path(digest)}?tag=good&tag=-bad`, { body, headers })
  assert.equal(bad.status, 400)
  assert.equal(codeOf(bad), 'MANIFEST_INVALID')
  assert.equal((await pusher.call('GET', path('good'))).status, 404)

  const pushed = await pusher.ok(201, 'PUT', `${path(digest)}?tag=a&tag=b&tag=a`, { body, headers })
  assert.equal(pushed.headers['oci-tag'], 'a, b')
  assert.equal(pushed.headers['docker-content-digest'], digest)
  for (const tag of ['a', 'b']) {
    assert.equal((await pusher.ok(200, 'HEAD', path(tag))).headers['docker-content-digest'], digest)
  }
  const many = Array.from({ length: 101 }, (_, i) => `tag=t${i}`).join('&')
  assert.equal((await pusher.call('PUT', `${path(digest)}?${many}`, { body, headers })).status, 414)
})

test('accepts content with a sha512 digest', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const content = randomBytes(2000)
  const layer = { mediaType: types.layer, digest: digestOf(content, 'sha512'), size: content.length }
  await pusher.ok(201, 'POST', `${name}/blobs/uploads/?digest=${layer.digest}`, { body: content })
  const { headers } = await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
  await pusher.ok(202, 'PATCH', String(headers.location), { body: '{"a":1}' })
  const config = { mediaType: types.config, digest: digestOf('{"a":1}', 'sha512'), size: 7 }
  await pusher.ok(201, 'PUT', `${headers.location}?digest=${config.digest}`)
  assert.deepEqual((await pusher.ok(200, 'GET', `${name}/blobs/${layer.digest}`)).bytes, content)

  const body = JSON.stringify(imageOf(config, [layer]))
  const digest = digestOf(body, 'sha512')
  const pushed = await pusher.ok(201, 'PUT', `${path(digest)}?tag=v1`, {
    body,
    headers: { 'content-type': types.image },
  })
  assert.equal(pushed.headers['docker-content-digest'], digest)
  assert.equal((await pusher.ok(200, 'GET', path('v1'))).headers['docker-content-digest'], digest)
  await pusher.ok(404, 'GET', path(digestOf(body)))
})

test('a digest can be pulled after its tag is updated or deleted, until the digest itself is deleted', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const first = await pusher.pushImage(name, 'v1')
  const second = await pusher.pushImage(name, 'v1')
  const text = (await puller.ok(200, 'GET', path('v1'))).bytes.toString()
  await pusher.pushManifest(name, text, 'v1.0')
  await pusher.ok(202, 'DELETE', path('v1.0'))
  await puller.ok(404, 'GET', path('v1.0'))
  await pusher.ok(404, 'DELETE', path('v1.0'))
  await puller.ok(200, 'GET', path(first.digest))
  await puller.ok(200, 'GET', path(second.digest))

  await pusher.pushManifest(name, text, 'stable')
  assert.equal((await puller.call('DELETE', path(second.digest))).status, 403)
  await pusher.ok(202, 'DELETE', path(second.digest))
  for (const reference of [second.digest, 'v1', 'stable']) await puller.ok(404, 'GET', path(reference))
  await puller.ok(200, 'GET', path(first.digest))
  await pusher.ok(404, 'DELETE', path(second.digest))
  await pusher.pushManifest(name, text, 'v1')
  await puller.ok(200, 'GET', path('v1'))
})

test('a blob that a manifest needs cannot be deleted; other blobs can', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const layer = await pusher.pushBlob(name, randomBytes(10))
  const config = await pusher.pushBlob(name, '{}', types.empty)
  const { digest } = await pusher.pushManifest(name, imageOf(config, [layer]))
  const refused = await pusher.call('DELETE', `${name}/blobs/${layer.digest}`)
  assert.equal(refused.status, 409)
  assert.deepEqual(refused.body.errors[0].detail, { manifests: [digest] })
  await puller.ok(200, 'GET', `${name}/blobs/${layer.digest}`)

  await pusher.ok(202, 'DELETE', path(digest))
  assert.equal((await puller.call('DELETE', `${name}/blobs/${layer.digest}`)).status, 403)
  await pusher.ok(202, 'DELETE', `${name}/blobs/${layer.digest}`)
  await pusher.ok(404, 'GET', `${name}/blobs/${layer.digest}`)
  await pusher.ok(404, 'DELETE', `${name}/blobs/${layer.digest}`)
})

test('deleting a repository deletes all its content, and it can be pushed again', async () => {
  await using registry = await startRegistry()
  const { pusher, operator } = registry
  const image = await pusher.pushImage(name, 'v1')
  await pusher.pushImage(name, 'sig', { subject: image })
  const { headers } = await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
  await pusher.ok(202, 'PATCH', String(headers.location), { body: 'abc' })
  const listed = await operator.get(`/registry/v2/repos?uidp.descendants_of=${registry.org.uid}&name=app`)
  assert.equal((await operator.delete(`/registry/v2/repos/${listed.body.repos[0].uid}`)).status, 200)
  assert.equal(codeOf(await pusher.call('GET', path('v1'))), 'NAME_UNKNOWN')
  await pusher.pushImage(name, 'v2')
  for (const reference of ['v1', image.digest]) await pusher.ok(404, 'GET', path(reference))
  await pusher.ok(404, 'GET', String(headers.location))
})
