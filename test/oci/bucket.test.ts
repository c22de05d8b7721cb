// Blobs in a bucket: object keys, requests to the bucket, and responses to clients while the bucket fails.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, statSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseBucket } from '#blobs/s3/bucket.ts'
import { openBucket } from '#blobs/s3/store.ts'
import { readConfig } from '#config.ts'
import { sql } from '#db/sql.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { createApp } from '../../src/create-app.ts'
import { noBucket, startBucket, type TestBucket } from '../support/bucket.ts'
import { type Fault, startFaultProxy } from '../support/fault-proxy.ts'
import type { Json } from '../support/pinfold.ts'
import { codeOf, digestOf, type RegistryClient, startRegistry, type TestRegistry } from '../support/registry.ts'

const name = 'acme/app'
const uploads = `${name}/blobs/uploads/`
const skip = noBucket
let bucket: TestBucket

before(async () => {
  if (!skip) bucket = await startBucket()
})
after(() => bucket?.[Symbol.asyncDispose]())

/** A registry whose bucket is behind a proxy that can fail. */
async function scene(more = '&timeout=10', settings: Parameters<typeof startRegistry>[0] = {}) {
  const proxy = await startFaultProxy(bucket.origin)
  const blobs = bucket.url(proxy.origin, more)
  const registry = await startRegistry({ ...settings, blobs, aws: bucket.aws })
  const locationOf = async (digest: string) => {
    const row = await registry.app.db.get<{ location: string }>(
      sql`SELECT location FROM blobs WHERE digest = ${digest}`,
    )
    return row!.location
  }
  return {
    registry,
    proxy,
    blobs,
    fileOf: async (digest: string) => bucket.fileOf(blobs, await locationOf(digest)),
    async [Symbol.asyncDispose]() {
      await registry[Symbol.asyncDispose]()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

const begin = async (client: RegistryClient): Promise<string> =>
  String((await client.ok(202, 'POST', uploads)).headers.location)

async function everything({ app }: TestRegistry): Promise<string[]> {
  const found = []
  for await (const { location } of app.blobs.list()) found.push(location)
  return found
}

async function pushInPieces(client: RegistryClient, pieces: Buffer[]): Promise<string> {
  const location = await begin(client)
  for (const body of pieces) await client.ok(202, 'PATCH', location, { body })
  const digest = digestOf(Buffer.concat(pieces))
  await client.ok(201, 'PUT', `${location}?digest=${digest}`)
  return digest
}

test('each kind of upload writes a blob once, at its final key, and leaves no other object', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { registry, proxy } = fixture
  const { pusher } = registry
  const small = randomBytes(1000)
  proxy.asked.length = 0
  await pusher.pushBlob(name, small)
  await pushInPieces(pusher, [randomBytes(2_000_000)])
  assert.deepEqual(
    proxy.asked.map((line) => line.replace(/ .*/, '')),
    ['PUT', 'PUT'],
  )
  await pushInPieces(pusher, [randomBytes(1000), randomBytes(2000), randomBytes(3000)])
  assert.equal((await everything(registry)).length, 3)
  // The blob has already arrived, so it is not sent to the bucket again.
  proxy.asked.length = 0
  await pusher.pushBlob(name, small)
  await pusher.ok(200, 'HEAD', `${name}/blobs/${digestOf(small)}`)
  assert.deepEqual(
    proxy.asked.map((line) => line.replace(/ .*/, '')),
    ['HEAD'],
  )
})

test('uploads a large blob in parts of one size, of known or unknown length, and serves ranges of it', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { registry, proxy } = fixture
  const content = randomBytes(40 * 1024 * 1024 + 17)
  const digest = digestOf(content)
  const pieces = () => proxy.asked.filter((line) => line.includes('partNumber')).length
  await registry.pusher.pushBlob(name, content)
  assert.equal(pieces(), 3)
  const got = await registry.puller.ok(200, 'GET', `${name}/blobs/${digest}`)
  assert.equal(digestOf(got.bytes), digest)
  const range = await registry.puller.ok(206, 'GET', `${name}/blobs/${digest}`, {
    headers: { range: 'bytes=20000000-20000999' },
  })
  assert.deepEqual(range.bytes, content.subarray(20_000_000, 20_001_000))
  const other = Buffer.concat([content, Buffer.from('!')])
  const location = await begin(registry.pusher)
  await registry.pusher.ok(202, 'PATCH', location, { body: other, headers: { 'transfer-encoding': 'chunked' } })
  await registry.pusher.ok(201, 'PUT', `${location}?digest=${digestOf(other)}`)
  assert.equal(pieces(), 6)
  assert.equal((await everything(registry)).length, 2)
})

test('an upload continues on another server', { skip }, async () => {
  await using fixture = await scene()
  const { registry } = fixture
  const { startServer } = await import('#api/server.ts')
  const { app } = registry
  const other = await startServer({ ...app, config: { ...app.config, url: registry.url } })
  try {
    const origin = `http://127.0.0.1:${other.port}`
    const there = (await import('../support/registry.ts')).registryClient(origin, registry.pusher.token)
    const location = await begin(registry.pusher)
    await registry.pusher.ok(202, 'PATCH', location, { body: 'first, ' })
    await there.ok(202, 'PATCH', location, { body: 'second, ' })
    const digest = digestOf('first, second, third')
    await registry.pusher.ok(201, 'PUT', `${location}?digest=${digest}`, { body: 'third' })
    assert.equal((await there.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes.toString(), 'first, second, third')
  } finally {
    await other.close()
  }
})

for (const fault of ['500', 'SlowDown', 'error inside 200', 'lost answer', 'hangs', 'cut', 'away'] as const) {
  test(`a failed first request of any kind to the bucket (${fault}) loses nothing`, { skip }, async () => {
    // On a busy machine, all connections can be silent for a while.
    await using fixture = await scene(fault === 'hangs' ? '&timeout=2' : undefined)
    const { registry, proxy } = fixture
    const { pusher } = registry
    const seen = new Set<string>()
    const kindOf = (method: string, url: string) =>
      `${method}${/[?&](uploads|partNumber|uploadId|list-type)/.exec(url)?.[1] ?? ''}`
    // S3 reports an error inside a 200 response only if the response takes a while.
    const applies = (kind: string): boolean => fault !== 'error inside 200' || kind === 'POSTuploadId'
    proxy.fail(({ method, url }) => {
      const kind = kindOf(method, url)
      if (seen.has(kind) || !applies(kind)) return undefined
      seen.add(kind)
      return fault
    })
    const contents = [randomBytes(100_000), randomBytes(17 * 1024 * 1024)]
    for (const content of contents) await pusher.pushBlob(name, content)
    const pieces = [randomBytes(50_000), randomBytes(50_000)]
    contents.push(Buffer.concat(pieces))
    await pushInPieces(pusher, pieces)
    for (const content of contents) {
      const got = await registry.puller.ok(200, 'GET', `${name}/blobs/${digestOf(content)}`)
      assert.equal(digestOf(got.bytes), digestOf(content))
    }
    assert.ok(seen.has('POSTuploadId') && (fault === 'error inside 200' || seen.has('PUTpartNumber')), [...seen].join())
  })
}

test('while the bucket is unavailable, blob requests return 503 with Retry-After, and other requests work', {
  skip,
}, async () => {
  await using fixture = await scene('&timeout=1')
  const { registry, proxy } = fixture
  const { pusher, puller } = registry
  const content = randomBytes(5000)
  const { digest } = await pusher.pushBlob(name, content)
  const image = await pusher.pushImage(name, 'v1')
  const location = await begin(pusher)
  await pusher.ok(202, 'PATCH', location, { body: 'first, ' })
  const metrics = async () => (await registry.operator.get('/metrics')).text
  const up = async () => /^pinfold_blob_store_up (\d)$/m.exec(await metrics())?.[1]
  assert.equal(await up(), '1')
  for (const fault of ['SlowDown', 'away', 'hangs'] satisfies Fault[]) {
    proxy.fail(() => fault)
    const other = randomBytes(3000)
    const refused = [
      await pusher.call('POST', `${uploads}?digest=${digestOf(other)}`, { body: other }),
      await pusher.call('PATCH', location, { body: 'second' }),
      await puller.call('GET', `${name}/blobs/${digest}`),
    ]
    for (const reply of refused) {
      assert.deepEqual([reply.status, codeOf(reply)], [503, 'UNAVAILABLE'], fault)
      assert.match(String(reply.headers['retry-after']), /^\d+$/)
      assert.ok(!/127\.0\.0\.1|AWS/.test(reply.bytes.toString()), 'says nothing of the bucket')
    }
    await puller.ok(200, 'GET', `${name}/manifests/v1`)
    await puller.ok(200, 'HEAD', `${name}/blobs/${digest}`)
    await pusher.ok(201, 'PUT', `${name}/manifests/v2`, {
      body: (await puller.ok(200, 'GET', `${name}/manifests/${image.digest}`)).bytes,
      headers: { 'content-type': image.mediaType },
    })
    assert.equal((await registry.anonymous.get('/readyz')).status, 200)
    assert.equal(await up(), '0')
    proxy.fail(undefined)
    assert.deepEqual((await puller.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes, content)
    assert.equal(await up(), '1')
  }
  await pusher.ok(201, 'PUT', `${location}?digest=${digestOf('first, third')}`, { body: 'third' })
  const tries = (await metrics()).matchAll(/^pinfold_blob_store_request_duration_seconds_count\{(.+)\} [1-9]\d*$/gm)
  const results = new Set([...tries].map(([, labels]) => /result="(\w+)"/.exec(labels!)?.[1]))
  for (const result of ['ok', 'retried', 'away']) assert.ok(results.has(result), result)
  assert.match(await metrics(), /^nodejs_eventloop_lag_p99_seconds [\d.e-]+$/m)
})

test('a push of existing content continues after credentials expire, and returns 503 if new credentials fail', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { registry, proxy } = fixture
  const content = randomBytes(1000)
  const { digest } = await registry.pusher.pushBlob(name, content)
  const push = () => registry.pusher.call('POST', `${uploads}?digest=${digest}`, { body: content })
  let left = 1
  proxy.fail(({ method }) => (method === 'HEAD' && left-- > 0 ? '400' : undefined))
  assert.equal((await push()).status, 201)
  proxy.fail(({ method }) => (method === 'HEAD' ? '400' : undefined))
  for (const reply of [await push(), await push()]) {
    assert.deepEqual([reply.status, codeOf(reply)], [503, 'UNAVAILABLE'])
    assert.match(String(reply.headers['retry-after']), /^\d+$/)
  }
  proxy.fail(undefined)
  assert.equal((await push()).status, 201)
})

test('a bucket that is full or has a size limit makes pushes fail, but does not count as unavailable', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { registry, proxy } = fixture
  const { pusher, puller } = registry
  const content = randomBytes(5000)
  const { digest } = await pusher.pushBlob(name, content)
  const location = await begin(pusher)
  for (const [fault, status, code] of [
    ['507', 507, 'UNAVAILABLE'],
    ['QuotaExceeded', 507, 'UNAVAILABLE'],
    ['413', 413, 'SIZE_INVALID'],
  ] as const) {
    proxy.fail(({ method }) => (method === 'PUT' || method === 'POST' ? fault : undefined))
    const other = randomBytes(3000)
    for (const reply of [
      await pusher.call('POST', `${uploads}?digest=${digestOf(other)}`, { body: other }),
      await pusher.call('PATCH', location, { body: 'more' }),
      await pusher.call('PATCH', location, { body: randomBytes(17 * 1024 * 1024) }),
    ]) {
      assert.deepEqual([reply.status, codeOf(reply)], [status, code], fault)
    }
    assert.ok(registry.app.blobs.isUp())
    assert.deepEqual((await puller.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes, content)
  }
  proxy.fail(undefined)
  await pusher.ok(201, 'PUT', `${location}?digest=${digestOf('late')}`, { body: 'late' })
})

test('neither lists nor removes objects of others, such as those of another store in the same bucket', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { registry } = fixture
  await registry.pusher.pushBlob(name, 'ours')
  const folder = bucket.fileOf(registry.app.config.blobs, '')
  const theirs = ['c/ab/notes', `c/ab/c/ab/${'0'.repeat(32)}`, `c/c/${'0'.repeat(32)}`, 'sha256/readme.txt']
  for (const key of theirs) {
    mkdirSync(dirname(join(folder, key)), { recursive: true })
    writeFileSync(join(folder, key), 'theirs')
  }
  assert.equal((await everything(registry)).length, 1)
  // Keys that a bucket would not delete, and a key with characters that have a meaning in XML.
  assert.deepEqual(await registry.app.blobs.removeAll(['c/<&>', ...(await everything(registry))]), [])
  assert.deepEqual(await everything(registry), [])
  for (const key of theirs) assert.ok(existsSync(join(folder, key)), key)
})

test('returns 404 for an object that is missing or has another size, until the blob is pushed again', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { pusher, puller } = fixture.registry
  const content = randomBytes(5000)
  const { digest } = await pusher.pushBlob(name, content)
  for (const spoil of [unlinkSync, (file: string) => truncateSync(file, 4000)]) {
    const file = await fixture.fileOf(digest)
    assert.equal(statSync(file).size, 5000)
    spoil(file)
    const got = await puller.call('GET', `${name}/blobs/${digest}`)
    assert.deepEqual([got.status, codeOf(got)], [404, 'BLOB_UNKNOWN'])
    await puller.ok(404, 'HEAD', `${name}/blobs/${digest}`)
    await pusher.pushBlob(name, content)
    assert.deepEqual((await puller.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes, content)
  }
  const { text } = await fixture.registry.operator.get('/metrics')
  assert.ok(Number(/^pinfold_blob_missing_total (\d+)$/m.exec(text)?.[1]) >= 4)
})

test('redirects clients in the configured networks to the bucket for larger blobs', { skip }, async () => {
  const byName = bucket.origin.replace('127.0.0.1', 'localhost')
  await using fixture = await scene(`&public=${byName}`, { blobRedirects: ['127.0.0.0/8', '!127.0.0.9'] })
  const { pusher, puller, app } = fixture.registry
  const [small, large] = [randomBytes(64 * 1024), randomBytes(64 * 1024 + 1)]
  for (const content of [small, large]) await pusher.pushBlob(name, content)
  const path = `${name}/blobs/${digestOf(large)}`
  const got = await puller.ok(307, 'GET', path)
  assert.equal(got.headers['docker-content-digest'], digestOf(large))
  assert.deepEqual([got.headers['cache-control'], got.bytes.length], ['no-store', 0])
  const address = String(got.headers.location)
  assert.match(address, /^http:\/\/localhost:\d+\/.*X-Amz-Expires=300/)
  assert.match(address, /X-Amz-Date=\d{8}T\d{4}00Z/, 'by the minute, so that others are given the same')
  const content = await fetch(address)
  assert.deepEqual([content.status, digestOf(Buffer.from(await content.arrayBuffer()))], [200, digestOf(large)])
  const range = await fetch(address, { headers: { range: 'bytes=10-19' } })
  assert.deepEqual(Buffer.from(await range.arrayBuffer()), large.subarray(10, 20))
  const longer = await fetch(address.replace('X-Amz-Expires=300', 'X-Amz-Expires=9000'))
  assert.equal(longer.status, 403)
  // The server itself serves small blobs, HEAD, conditional requests, excluded callers, and callers without pull permission.
  assert.deepEqual((await puller.ok(200, 'GET', `${name}/blobs/${digestOf(small)}`)).bytes, small)
  await puller.ok(200, 'HEAD', path)
  assert.equal((await fixture.registry.nobody.call('GET', path)).status, 401)
  await puller.ok(304, 'GET', path, { headers: { 'if-none-match': `"${digestOf(large)}"` } })
  app.blobRedirects.has = () => false
  assert.deepEqual((await puller.ok(200, 'GET', path)).bytes, large)
})

test('does not redirect to a missing object, and returns 404 until the blob is pushed again', {
  skip,
}, async () => {
  const byName = bucket.origin.replace('127.0.0.1', 'localhost')
  await using fixture = await scene(`&public=${byName}`, { blobRedirects: ['127.0.0.0/8'] })
  const { pusher, puller, app } = fixture.registry
  // A bucket with too little time to respond counts as unavailable, and this machine may be busy.
  const { close } = app.blobs
  Object.assign(app.blobs, await openBucket(parseBucket(fixture.blobs), { env: bucket.aws, lookMs: 10_000 }))
  await using _first = { [Symbol.asyncDispose]: async () => close() }
  const [seen, unseen] = [randomBytes(100_000), randomBytes(100_000)]
  for (const content of [seen, unseen]) await pusher.pushBlob(name, content)
  const path = `${name}/blobs/${digestOf(unseen)}`
  unlinkSync(await fixture.fileOf(digestOf(unseen)))
  const got = await puller.call('GET', path)
  assert.deepEqual([got.status, codeOf(got)], [404, 'BLOB_UNKNOWN'])
  await puller.ok(404, 'HEAD', path)
  // The server does not ask the bucket while it knows that the object is missing.
  fixture.proxy.asked.length = 0
  await puller.ok(404, 'GET', path)
  assert.deepEqual(
    fixture.proxy.asked.filter((asked) => asked.startsWith('HEAD')),
    [],
  )
  await pusher.pushBlob(name, unseen)
  await puller.ok(307, 'GET', path)
  // The server does not ask the bucket while it knows that the object exists.
  fixture.proxy.asked.length = 0
  await puller.ok(307, 'GET', path)
  assert.deepEqual(fixture.proxy.asked, [])
  // Clients may have access to a bucket that the server cannot reach.
  fixture.proxy.fail(() => 'away')
  await puller.ok(307, 'GET', `${name}/blobs/${digestOf(seen)}`)
})

test('finds content again a minute after it was restored to the bucket', { skip }, async () => {
  let now = 0
  const blobs = await openBucket(parseBucket(bucket.url()), { env: bucket.aws, monotonic: () => now })
  const part = await blobs.begin(3, '')
  await part.write([Buffer.from('abc')])
  await part.finish()
  const [blob, other] = [
    { location: part.name, size: 3 },
    { location: 'c/00/00000000000000000000000000000000', size: 3 },
  ]
  assert.equal(await blobs.has(other, true), true, 'nobody has asked')
  assert.equal(await blobs.has({ ...blob, size: 4 }), false)
  assert.equal(await blobs.has(blob, true), false, 'known to be missing')
  now += 60_000
  assert.equal(await blobs.has(blob, true), true)
  blobs.close()
})

test('acknowledges a committed push although its temporary objects cannot be removed yet', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { registry, proxy } = fixture
  const { pusher } = registry
  const pieces = [randomBytes(1000), randomBytes(2000)]
  const content = Buffer.concat(pieces)
  const location = await begin(pusher)
  for (const body of pieces) await pusher.ok(202, 'PATCH', location, { body })
  proxy.fail(({ method }) => (method === 'DELETE' ? 'away' : undefined))
  await pusher.ok(201, 'PUT', `${location}?digest=${digestOf(content)}`)
  const other = await begin(pusher)
  await pusher.ok(202, 'PATCH', other, { body: 'a piece' })
  await pusher.ok(204, 'DELETE', other)
  proxy.fail(undefined)
  assert.deepEqual((await pusher.ok(200, 'GET', `${name}/blobs/${digestOf(content)}`)).bytes, content)
})

test('does not redirect to a bucket at the host name of the server or below it', { skip }, async () => {
  await using fixture = await scene('', { blobRedirects: ['on'] })
  const { pusher, puller } = fixture.registry
  const large = randomBytes(100_000)
  await pusher.pushBlob(name, large)
  assert.deepEqual((await puller.ok(200, 'GET', `${name}/blobs/${digestOf(large)}`)).bytes, large)
  const refused = { PINFOLD_BLOB_REDIRECTS: 'on', PINFOLD_URL: 'https://registry.example.com' }
  for (const [blobs, reason] of [
    [
      's3://blobs?endpoint=https://registry.example.com:9000',
      /needs a bucket at a host outside of registry.example.com/,
    ],
    [
      's3://blobs?endpoint=https://s3.registry.example.com',
      /at s3.registry.example.com, clients would send it their tokens/,
    ],
    ['/var/lib/blobs', /needs a bucket/],
  ] as const) {
    assert.throws(() => readConfig({ ...refused, PINFOLD_BLOBS: blobs }), reason)
  }
  readConfig({ ...refused, PINFOLD_BLOBS: 's3://blobs?endpoint=https://s3.example.com' })
})

test('deletes unneeded content and unfinished uploads from the bucket', { skip }, async () => {
  const clock = { now: Date.now() }
  await using fixture = await scene('', { clock: () => new Date(clock.now), blobGraceSeconds: 60 })
  const { registry, proxy } = fixture
  const collect = async (): Promise<Json> => {
    const operator = await registry.as(operatorUid)
    return (await operator.post('/control/v1/blobs:collect', { dryRun: false })).body
  }
  const kept = await registry.pusher.pushImage(name, 'v1')
  for (const text of ['a', 'b', 'c']) await registry.pusher.pushBlob(name, text)
  const stray = await registry.app.blobs.begin(0, '')
  await stray.write([Buffer.from('stray')])
  await stray.finish()
  clock.now += 3600_000
  proxy.asked.length = 0
  assert.deepEqual((await collect()).blobs, '3')
  assert.equal(proxy.asked.filter((line) => line.startsWith('POST') && line.includes('?delete')).length, 1)
  // The clock of the bucket decides if the object is young. The local clock does not.
  const left = await everything(registry)
  assert.deepEqual([left.length, left.includes(stray.name)], [3, true])
  const { clock: theirs } = registry.app.blobs
  registry.app.blobs.clock = async () => (await theirs!()) + 25 * 3600_000
  assert.deepEqual((await collect()).files, '1')
  assert.deepEqual((await everything(registry)).length, 2)
  const client = await registry.registryAs(registry.puller.uid)
  const manifest = await client.ok(200, 'GET', `${name}/manifests/${kept.digest}`)
  for (const { digest } of [manifest.body.config, ...manifest.body.layers]) {
    await client.ok(200, 'GET', `${name}/blobs/${digest}`)
  }
  // An upload that was never finished, and uploads of a copy from a folder.
  const begun = [await registry.app.blobs.begin(0, '')]
  const inFolder = [`sha256/ab/${'ab'.repeat(32)}`, `sha512/cd/${'cd'.repeat(64)}`].map(
    (path) => `${path}-${'0'.repeat(16)}`,
  )
  for (const location of [...inFolder, `uploads/${'ef'.repeat(16)}`])
    begun.push(await registry.app.blobs.beginAt(location, 0))
  for (const one of begun) await one.write([randomBytes(17 * 1024 * 1024)])
  const aborts = () => proxy.asked.filter((line) => line.startsWith('DELETE') && line.includes('uploadId')).length
  await collect()
  assert.equal(aborts(), 0)
  registry.app.blobs.clock = async () => (await theirs!()) + 49 * 3600_000
  await collect()
  assert.equal(aborts(), 4)
  for (const one of begun) await one.discard()
})

test('a signed URL stays readable although its blob is deleted without a waiting time', {
  skip,
}, async () => {
  const clock = { now: Date.now() }
  await using fixture = await scene(`&public=${bucket.origin.replace('127.0.0.1', 'localhost')}`, {
    clock: () => new Date(clock.now),
    blobGraceSeconds: 60,
    blobTrashSeconds: 0,
    blobRedirects: ['127.0.0.0/8'],
  })
  const { registry } = fixture
  const collect = async (): Promise<Json> => {
    return (await (await registry.as(operatorUid)).post('/control/v1/blobs:collect', { dryRun: false })).body
  }
  const { digest } = await registry.pusher.pushBlob(name, randomBytes(100_000))
  await registry.pusher.pushImage(name, 'v1')
  const { headers } = await registry.puller.ok(307, 'GET', `${name}/blobs/${digest}`)
  const read = async () => {
    return digestOf(Buffer.from(await (await fetch(String(headers.location))).arrayBuffer()))
  }
  clock.now += 61_000
  assert.equal((await collect()).blobs, '1')
  assert.equal(await read(), digest)
  clock.now += 64 * 60_000
  await collect()
  assert.equal(await read(), digest)
  clock.now += 61_000
  await collect()
  assert.notEqual(await read(), digest)
})

test('a scheduled garbage collection checks a part of the bucket each hour, and the whole bucket in a week', {
  skip,
}, async () => {
  await using fixture = await scene()
  const { blobs } = fixture.registry.app
  for (let i = 0; i < 3; i++) await fixture.registry.pusher.pushBlob(name, randomBytes(10))
  const copied = await blobs.beginAt(`uploads/${randomBytes(16).toString('hex')}`, 5)
  await copied.write([Buffer.from('piece')])
  await copied.finish()
  fixture.proxy.asked.length = 0
  const found = []
  for (let hour = 0; hour < 168; hour++) for await (const { location } of blobs.list(hour)) found.push(location)
  assert.deepEqual(found.sort(), (await everything(fixture.registry)).sort())
  assert.deepEqual([found.length, found.includes(copied.name)], [4, true])
  assert.equal(fixture.proxy.asked.length, 4 * 256 + 4)
})

test('a server starts only with its own bucket, and otherwise prints the reason', { skip }, async () => {
  await using registry = await startRegistry({ blobs: bucket.url(), aws: bucket.aws })
  await registry.pusher.pushImage(name, 'v1')
  const { config } = registry.app
  const open = async (other: Partial<typeof config>): Promise<void> => {
    await (await createApp({ ...config, ...other })).close()
  }
  await open({})
  const wrong = { ...bucket.aws, AWS_SECRET_ACCESS_KEY: 'mistaken' }
  for (const [other, reason] of [
    [{ blobs: bucket.url() }, /has none of the blobs of the database; set --blobs \(PINFOLD_BLOBS\) to the bucket/],
    [{ blobs: '' }, /has none of the blobs of the database/],
    [{ blobs: bucket.url().replace('//pinfold', '//elsewhere') }, /s3:\/\/elsewhere\/\w+: .*404 NoSuchBucket/],
    [{ aws: wrong }, /the bucket refused the request: GetObject was refused: 403 SignatureDoesNotMatch/],
    [{ aws: { AWS_EC2_METADATA_DISABLED: 'true' } }, /there are no credentials for the bucket/],
    [{ blobs: bucket.url('http://127.0.0.1:1', '&timeout=1') }, /the bucket is unavailable: .*ECONNREFUSED/],
  ] as const) {
    await assert.rejects(open(other), (error: Error) => {
      assert.match(error.message, reason)
      assert.ok(!error.message.includes('mistaken') && !error.message.includes(bucket.aws.AWS_SECRET_ACCESS_KEY))
      return true
    })
  }
  await assert.rejects(startRegistry({ blobs: config.blobs, aws: bucket.aws }), /belong to another database/)
})
