// Hostile input: the server responds with OCI errors, stores nothing, and continues to work.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectRaw } from '../support/raw-http.ts'
import { codeOf, digestOf, imageOf, indexOf, startRegistry, types } from '../support/registry.ts'

const name = 'acme/app'

test('refuses invalid repository names', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const bad = [
    'acme',
    'acme/App',
    'acme/a..b',
    'acme/-a',
    'acme/a_',
    'acme//a',
    'acme/a%2f..%2fb',
    `acme/${'a'.repeat(255)}`,
  ]
  for (const one of [...bad, '../acme/app', 'acme/%00', 'acme/app%0d%0ax', "acme/'; DROP TABLE blobs --"]) {
    const answers = [
      await pusher.call('GET', `${encodeURI(one).replaceAll('%25', '%')}/manifests/v1`),
      await pusher.call('POST', `${encodeURI(one).replaceAll('%25', '%')}/blobs/uploads/`),
    ]
    for (const answer of answers) {
      assert.ok([400, 403, 404].includes(answer.status), `${one}: ${answer.status}`)
      assert.match(codeOf(answer), /^(NAME_INVALID|NAME_UNKNOWN|DENIED)$/)
    }
  }
})

test('refuses malformed manifests with the reason', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const config = await pusher.pushBlob(name, '{}', types.empty)
  const good = imageOf(config, [config])
  const put = (body: string | Buffer, type: string | undefined = types.image, reference = 'v1') =>
    pusher.call('PUT', `${name}/manifests/${reference}`, { body, headers: type ? { 'content-type': type } : {} })
  const invalid: (string | Buffer)[] = [
    '',
    'null',
    '[]',
    '{"schemaVersion":2',
    '{"schemaVersion":1}',
    Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
    `{"schemaVersion":2,"config":${'['.repeat(5000)}${']'.repeat(5000)},"layers":[]}`,
    JSON.stringify({ ...good, layers: undefined }),
    JSON.stringify({ ...good, layers: {} }),
    JSON.stringify({ ...good, config: 'x' }),
    JSON.stringify({ ...good, config: { ...config, digest: '../../../etc/passwd' } }),
    JSON.stringify({ ...good, config: { ...config, digest: config.digest.toUpperCase() } }),
    JSON.stringify({ ...good, config: { ...config, size: -1 } }),
    JSON.stringify({ ...good, config: { ...config, size: '2' } }),
    JSON.stringify({ ...good, config: { digest: config.digest, size: 2 } }),
    JSON.stringify({ ...good, manifests: [] }),
    JSON.stringify({ ...good, mediaType: types.index }),
    JSON.stringify({ ...good, subject: { digest: 'latest' } }),
    JSON.stringify({ ...good, annotations: { a: 1 } }),
    JSON.stringify({ ...good, annotations: ['a'] }),
    JSON.stringify({ ...good, artifactType: 'x'.repeat(300) }),
    JSON.stringify({ ...good, layers: Array.from({ length: 1001 }, () => config) }),
    JSON.stringify(good).replace('"layers"', '"layers":[],"layers"'),
    // Go's JSON parser treats each of these names as the member with similar spelling.
    JSON.stringify({ ...good, Layers: [] }),
    JSON.stringify({ ...good, config: { ...config, MediaType: types.config } }),
    JSON.stringify({ ...good, layers: [{ ...config, \u017fize: 5 }] }),
    JSON.stringify({ ...good, layers: [{ ...config, platform: { OS: 'linux' } }] }),
    JSON.stringify({ ...good, subject: { ...config, DIGEST: config.digest } }),
  ]
  for (const body of invalid) {
    const answer = await put(body)
    assert.equal(answer.status, 400, body.toString().slice(0, 200))
    assert.equal(codeOf(answer), 'MANIFEST_INVALID')
  }
  assert.equal((await put(JSON.stringify(indexOf([]).manifests), types.index)).status, 400)
  const named = { ...good, annotations: { Layers: 'as they are' } }
  assert.equal((await put(JSON.stringify(named), types.image, 'named')).status, 201)
  const unknown = [
    'application/json',
    'application/vnd.docker.distribution.manifest.v1+prettyjws',
    'constructor',
    '__proto__',
  ]
  for (const type of unknown) {
    const { mediaType: _, ...untyped } = good
    const answer = await put(JSON.stringify(untyped), type)
    assert.equal(answer.status, 415, type)
    assert.equal(codeOf(answer), 'MANIFEST_INVALID')
  }
  assert.equal((await put(JSON.stringify({ ...good, mediaType: undefined }), '')).status, 400)
  for (const tag of ['-v1', '.v1', 'a'.repeat(129), 'v 1', 'v1%00', 'ä']) {
    const answer = await put(JSON.stringify(good), types.image, encodeURI(tag).replaceAll('%25', '%'))
    assert.equal(answer.status, 400, tag)
  }
  const other = await put(JSON.stringify(good), types.image, digestOf('other'))
  assert.equal(codeOf(other), 'DIGEST_INVALID')
  assert.equal((await put(JSON.stringify(good))).status, 201)
})

test('accepts a manifest of four MiB, and refuses a larger one', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const config = await pusher.pushBlob(name, '{}', types.empty)
  const most = 4 * 1024 * 1024
  const sized = (size: number) => {
    const length = size - JSON.stringify(imageOf(config, [], { annotations: { a: '' } })).length
    return JSON.stringify(imageOf(config, [], { annotations: { a: 'x'.repeat(length) } }))
  }
  const put = (body: string, headers: Record<string, string> = {}) =>
    pusher.call('PUT', `${name}/manifests/large`, { body, headers: { 'content-type': types.image, ...headers } })
  assert.equal((await put(sized(most))).status, 201)
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
    const answer = await put(sized(most + 1), headers as Record<string, string>)
    assert.equal(answer.status, 413)
    assert.equal(codeOf(answer), 'SIZE_INVALID')
  }
  assert.equal((await pusher.ok(200, 'GET', `${name}/manifests/large`)).bytes.length, most)
})

test('a body that ends early stores nothing', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher } = registry
  const content = randomBytes(100)
  const cut = async (line: string) => {
    const raw = await connectRaw(registry.port)
    raw.write(`${line} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${pusher.token}\r\ncontent-length: 100\r\n\r\n`)
    raw.write(content.subarray(0, 50))
    raw.end()
    await raw.closed
  }
  await pusher.pushBlob(name, 'makes the repo')
  await cut(`POST /v2/${name}/blobs/uploads/?digest=${digestOf(content)}`)
  const { headers } = await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
  await cut(`PUT ${headers.location}?digest=${digestOf(content)}`)
  await cut(`PUT /v2/${name}/manifests/v1`)
  await pusher.ok(404, 'GET', `${name}/blobs/${digestOf(content)}`)
  await pusher.ok(404, 'GET', `${name}/manifests/v1`)
  await pusher.ok(201, 'PUT', `${headers.location}?digest=${digestOf(content)}`, { body: content })
  const left = () => readdirSync(join(registry.app.config.data, 'blobs', 'uploads'))
  for (let tries = 0; left().length > 0 && tries < 500; tries++) await pusher.ok(200, 'GET', '/v2/')
  assert.deepEqual(left(), [])
})

test('refuses unknown paths and methods', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  await pusher.pushBlob(name, 'makes the repo')
  for (const path of [
    `${name}/manifests/`,
    `${name}/blobs/`,
    `${name}/blobs/uploads/../../x`,
    `${name}/nothing`,
    '_catalog/x',
  ]) {
    const answer = await pusher.call('GET', path)
    assert.ok(answer.status === 404 || answer.status === 400 || answer.status === 405, `${path}: ${answer.status}`)
    codeOf(answer)
  }
  for (const [method, path] of [
    ['POST', 'manifests/v1'],
    ['PATCH', `blobs/${digestOf('x')}`],
    ['GET', 'blobs/uploads/'],
    ['DELETE', `referrers/${digestOf('x')}`],
  ] as const) {
    const answer = await pusher.call(method, `${name}/${path}`)
    assert.equal(answer.status, 405, `${method} ${path}`)
    assert.equal(codeOf(answer), 'UNSUPPORTED')
    assert.ok(answer.headers.allow)
  }
})
