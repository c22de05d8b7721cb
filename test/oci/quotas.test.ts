// Quotas at the registry: pushes above a quota are refused with the reason, and stored content stays.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import http2 from 'node:http2'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import { meterOf } from '#domains/registry/blobs/usage.service.ts'
import { checkUsage } from '../support/check-usage.ts'
import { ok } from '../support/expect.ts'
import { connectRaw } from '../support/raw-http.ts'
import {
  codeOf,
  digestOf,
  imageOf,
  type RegistryClient,
  type Reply,
  registryClient,
  startRegistry,
  type TestRegistry,
  types,
} from '../support/registry.ts'

const name = 'acme/app'
const uploads = `${name}/blobs/uploads/`
const text = (size: number, letter = 'x') => letter.repeat(size)

const set = async ({ operator, org }: TestRegistry, limits: Record<string, number>): Promise<void> => {
  const named = Object.entries(limits).map(([quota, limit]) => ({ name: quota, limit: String(limit) }))
  ok(await operator.post('/control/v1/quotas:set', { organization: org.uid, limits: named }))
}

/** Used amount of each quota, as the API shows it. */
async function used({ operator, org }: TestRegistry): Promise<Record<string, number>> {
  const { quotas } = ok(await operator.get(`/iam/v2/quotas/${org.uid}`)) as {
    quotas: { name: string; used?: string }[]
  }
  return Object.fromEntries(quotas.map((quota) => [quota.name, Number(quota.used ?? 0)]))
}

function assertRefused(reply: Reply, quota: string, inUse: number, limit: number): void {
  assert.equal(reply.status, 403, reply.bytes.toString())
  assert.equal(codeOf(reply), 'DENIED')
  const { detail, message } = reply.body.errors[0]
  assert.deepEqual(detail, { quota, used: inUse, limit })
  assert.match(message, /^quota exceeded: /)
  assert.equal(reply.headers['retry-after'], undefined)
}

const begin = async ({ pusher }: TestRegistry): Promise<string> =>
  String((await pusher.ok(202, 'POST', uploads)).headers.location)

const partsOnDisk = ({ app }: TestRegistry): string[] => readdirSync(join(app.config.data, 'blobs', 'uploads'))

test('counts the content of an organization once, and refuses bytes above the quota', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher } = registry
  await pusher.pushBlob(name, text(600))
  await pusher.pushBlob('acme/other', text(600))
  assert.equal((await used(registry)).bytes, 600)
  await set(registry, { bytes: 1000 })
  const over = text(401, 'y')
  const refusals = [
    await pusher.call('POST', `${uploads}?digest=${digestOf(over)}`, { body: over }),
    await pusher.call('PUT', `${await begin(registry)}?digest=${digestOf(over)}`, { body: over }),
    await pusher.call('PATCH', await begin(registry), { body: over }),
  ]
  for (const reply of refusals) assertRefused(reply, 'bytes', 600, 1000)
  assert.deepEqual(await used(registry), { ...(await used(registry)), bytes: 600, uploads: 0 })
  assert.deepEqual(partsOnDisk(registry), [])
  await pusher.ok(404, 'HEAD', `${name}/blobs/${digestOf(over)}`)

  await pusher.pushBlob(name, text(400, 'z'))
  assert.equal((await used(registry)).bytes, 1000)
  const again = { body: text(400, 'z') }
  assertRefused(await pusher.call('POST', `${uploads}?digest=${digestOf(again.body)}`, again), 'bytes', 1000, 1000)
  // Mounting content that the organization already has adds no usage.
  await pusher.ok(201, 'POST', `acme/third/blobs/uploads/?mount=${digestOf(text(600))}&from=${name}`)
  await pusher.ok(202, 'DELETE', `${name}/blobs/${digestOf(text(600))}`)
  assert.equal((await used(registry)).bytes, 1000, 'two more repos have it')
  for (const other of ['acme/other', 'acme/third'])
    await pusher.ok(202, 'DELETE', `${other}/blobs/${digestOf(text(600))}`)
  assert.equal((await used(registry)).bytes, 400)
  await checkUsage(registry)
})

test('refuses and ends an upload in many parts once it exceeds the quota, and stops counting it', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher } = registry
  await set(registry, { bytes: 1000 })
  const location = await begin(registry)
  for (let sent = 0; sent < 900; sent += 100) await pusher.ok(202, 'PATCH', location, { body: text(100) })
  assert.deepEqual(await used(registry), { ...(await used(registry)), bytes: 900, uploads: 1 })
  const other = await begin(registry)
  const stream = { body: text(101), headers: { 'transfer-encoding': 'chunked' } }
  assertRefused(await pusher.call('PATCH', other, stream), 'bytes', 900, 1000)
  await pusher.ok(404, 'GET', other)
  await pusher.ok(204, 'GET', location)
  assertRefused(
    await pusher.call('PUT', `${location}?digest=${digestOf(text(1001))}`, { body: text(101) }),
    'bytes',
    900,
    1000,
  )
  await pusher.ok(404, 'GET', location)
  assert.deepEqual(await used(registry), { ...(await used(registry)), bytes: 0, uploads: 0 })
  assert.deepEqual(partsOnDisk(registry), [])

  const fits = await begin(registry)
  for (let sent = 0; sent < 1000; sent += 100) await pusher.ok(202, 'PATCH', fits, { body: text(100) })
  await pusher.ok(201, 'PUT', `${fits}?digest=${digestOf(text(1000))}`)
  assert.equal((await used(registry)).bytes, 1000)
  await checkUsage(registry)
})

test('refuses a length above the quota before the body arrives, and a body without a length while it arrives', async () => {
  await using registry = await startRegistry({ blobs: '', requestTimeoutMs: 3000 })
  const { pusher, port } = registry
  await set(registry, { bytes: 100_000 })
  const raw = await connectRaw(port)
  const head = (location: string) =>
    `PATCH ${location} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${pusher.token}\r\n`
  raw.write(`${head(await begin(registry))}expect: 100-continue\r\ncontent-length: 100001\r\n\r\n`)
  await raw.closed
  assert.match(raw.received(), /^HTTP\/1\.1 (?:100 Continue\r\n\r\nHTTP\/1\.1 )?403 /)

  const session = http2.connect(`http://127.0.0.1:${port}`)
  const stream = session.request(
    { ':method': 'PATCH', ':path': await begin(registry), authorization: `Bearer ${pusher.token}` },
    { endStream: false },
  )
  const answered = new Promise<number>((resolve) => {
    stream.once('response', (headers) => resolve(Number(headers[':status'])))
    // Without a response, the server closes the stream at its own timeout.
    stream.once('close', () => resolve(0))
  })
  stream.on('error', () => {})
  // An endless body, larger than the quota.
  stream.write(Buffer.alloc(100_001))
  const status = await answered
  session.destroy()
  assert.equal(status, 403)
  assert.deepEqual(partsOnDisk(registry), [])
  assert.equal((await used(registry)).bytes, 0)
})

test('only one of several concurrent pushes succeeds if they fit into the quota alone but not together', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  await pusher.pushBlob(name, 'a')
  for (let round = 0; round < 8; round++) {
    const limit = (await used(registry)).bytes! + 100
    await set(registry, { bytes: limit })
    const locations = await Promise.all([begin(registry), begin(registry), begin(registry)])
    const bodies = locations.map((_, i) => text(60, String.fromCharCode(97 + i)) + round)
    const replies = await Promise.all(
      locations.map((location, i) =>
        pusher.call('PUT', `${location}?digest=${digestOf(bodies[i]!)}`, { body: bodies[i]! }),
      ),
    )
    const statuses = replies.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [201, 403, 403], `round ${round}`)
    assert.equal((await used(registry)).bytes, limit - 100 + 61)
  }
  // A mount has no body, so only the database check applies.
  const { registryOperator } = registry
  await registry.seed.group('', { name: 'other' })
  const layers = await Promise.all(
    ['1', '2', '3'].map((letter) => registryOperator.pushBlob('other/app', text(60, letter))),
  )
  await set(registry, { bytes: (await used(registry)).bytes! + 100 })
  const mounts = await Promise.all(
    layers.map(({ digest }) => registryOperator.call('POST', `${uploads}?mount=${digest}&from=other/app`)),
  )
  assert.deepEqual(mounts.map(({ status }) => status).sort(), [201, 403, 403])
  await checkUsage(registry)
})

/** Serves the same app with a disk. The given disk operation waits until the test continues it. */
async function serveSlow(
  { app, url, pusher }: TestRegistry,
  step: 'hold' | 'keep',
  own: Partial<TestRegistry['app']> = {},
) {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow = async <T>(work: () => Promise<T>): Promise<T> => {
    reached.resolve()
    await opened.promise
    return work()
  }
  const { hold, keep } = app.blobs
  const blobs = {
    ...app.blobs,
    ...(step === 'hold' ? { hold: (part: string) => slow(() => hold(part)) } : {}),
    ...(step === 'keep' ? { keep: (part: string, digest: string) => slow(() => keep(part, digest)) } : {}),
  }
  const server = await startServer({ ...app, ...own, blobs, config: { ...app.config, url } })
  const client = registryClient(`http://127.0.0.1:${server.port}`, pusher.token)
  return { client, reached, opened, [Symbol.asyncDispose]: () => server.close() }
}

/** A part, or a blob in the request that completes its upload. */
const sendFor = (step: 'hold' | 'keep', by: RegistryClient, to: string, body: string) =>
  step === 'hold' ? by.call('PATCH', to, { body }) : by.call('PUT', `${to}?digest=${digestOf(body)}`, { body })

test('received bytes count until they are stored, however slow the disk is', async () => {
  await using registry = await startRegistry()
  const { pusher, app } = registry
  await pusher.pushBlob(name, text(40))
  for (const step of ['hold', 'keep'] as const) {
    const before = (await used(registry)).bytes!
    await set(registry, { bytes: before + 100 })
    await using slow = await serveSlow(registry, step)
    const [first, second] = [await begin(registry), await begin(registry)]
    const late = sendFor(step, slow.client, first, text(60, step[0]))
    await slow.reached.promise
    assertRefused(await sendFor(step, pusher, second, text(60, step[1])), 'bytes', before + 60, before + 100)
    slow.opened.resolve()
    assert.ok((await late).status < 300)
    assert.equal(app.incoming.size, 0)
    assert.equal((await used(registry)).bytes, before + 60)
  }
  await checkUsage(registry)
})

test('checks bytes that several servers receive at once against the quota when they are stored', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher, app } = registry
  await pusher.pushBlob(name, text(40))
  for (const step of ['hold', 'keep'] as const) {
    await set(registry, { bytes: (await used(registry)).bytes! + 100 })
    // Another server, which does not know the bytes that this one is receiving.
    await using slow = await serveSlow(registry, step, { incoming: new Map() })
    const [first, second] = [await begin(registry), await begin(registry)]
    const late = sendFor(step, slow.client, first, text(60, step[0]))
    await slow.reached.promise
    assert.ok((await sendFor(step, pusher, second, text(60, step[1]))).status < 300)
    const before = (await used(registry)).bytes!
    slow.opened.resolve()
    assertRefused(await late, 'bytes', before, before + 40)
    await pusher.ok(404, 'GET', first)
  }
  assert.equal(partsOnDisk(registry).length, 1, 'the piece of the upload that is open')
  const kept = readdirSync(join(app.config.data, 'blobs', 'sha256'), { recursive: true, withFileTypes: true })
  assert.equal(kept.filter((entry) => entry.isFile()).length, 2)
  await checkUsage(registry)
})

test('a refused body uses no space of other uploads', async () => {
  await using registry = await startRegistry()
  const { app } = registry
  await set(registry, { bytes: 100 })
  const repo = { uid: `${registry.org.uid}/0123456789abcdef` }
  const meter = async (announced = 0) => (await meterOf({ app }, repo, announced))!
  const [first, second] = [await meter(), await meter()]
  first.take(60)
  second.take(40)
  assert.throws(() => first.take(1), { reason: 'RESOURCE_LIMIT_EXCEEDED' })
  second.take(60)
  await assert.rejects(meter(1), { reason: 'RESOURCE_LIMIT_EXCEEDED' })
  assert.throws(() => second.take(1), { reason: 'RESOURCE_LIMIT_EXCEEDED' })
  for (const one of [first, second]) one.end()
  assert.equal(app.incoming.size, 0)
  const last = await meter(100)
  last.take(100)
  last.end()
  assert.equal(app.incoming.size, 0)
})

test('a mount and a manifest count for the quota like a push', async () => {
  await using registry = await startRegistry()
  const { pusher, registryOperator } = registry
  await registry.seed.group('', { name: 'other' })
  const { digest } = await registryOperator.pushBlob('other/app', text(500))
  const config = await pusher.pushBlob(name, '{}', types.config)
  const manifest = JSON.stringify(imageOf(config, []))
  await set(registry, { bytes: manifest.length + 1 })
  assertRefused(
    await registryOperator.call('POST', `${uploads}?mount=${digest}&from=other/app`),
    'bytes',
    2,
    manifest.length + 1,
  )
  await registryOperator.ok(404, 'HEAD', `${name}/blobs/${digest}`)
  const put = { body: manifest, headers: { 'content-type': types.image } }
  assertRefused(await pusher.call('PUT', `${name}/manifests/v1`, put), 'bytes', 2, manifest.length + 1)
  await pusher.ok(404, 'HEAD', `${name}/manifests/v1`)
  await set(registry, { bytes: manifest.length + 2 })
  await pusher.ok(201, 'PUT', `${name}/manifests/v1`, put)
  // The image already exists, so a second tag adds no usage.
  await pusher.ok(201, 'PUT', `${name}/manifests/v2`, put)
  assert.equal((await used(registry)).bytes, manifest.length + 2)
  await checkUsage(registry)
})

test('an organization above a lowered quota keeps its content and allows pulls and deletions, but no pushes', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const image = await pusher.pushImage(name, 'v1')
  const open = await begin(registry)
  await pusher.ok(202, 'PATCH', open, { body: text(50) })
  const before = await used(registry)
  await set(registry, { bytes: 10, repositories: 1, uploads: 1 })
  await puller.ok(200, 'GET', `${name}/manifests/v1`)
  const more = await pusher.call('POST', `${uploads}?digest=${digestOf('more')}`, { body: 'more' })
  assertRefused(more, 'bytes', before.bytes!, 10)
  assertRefused(await pusher.call('POST', uploads), 'uploads', 1, 1)
  // Updates a tag to an existing digest.
  const { bytes } = await puller.ok(200, 'GET', `${name}/manifests/v1`)
  await pusher.ok(201, 'PUT', `${name}/manifests/v2`, { body: bytes, headers: { 'content-type': types.image } })
  // The received bytes of an upload are already counted, and can be stored.
  await pusher.ok(201, 'PUT', `${open}?digest=${digestOf(text(50))}`)
  assert.deepEqual(await used(registry), { ...before, uploads: 0 })
  await pusher.ok(202, 'DELETE', `${name}/manifests/${image.digest}`)
  assert.equal((await used(registry)).bytes, before.bytes! - image.size)
  await checkUsage(registry)
})

test('a push creates no more repositories and folders than the quota of the organization', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  await pusher.pushBlob('acme/team/one', 'a')
  await set(registry, { repositories: 2, groups: 1 })
  const push = (repo: string) => pusher.call('POST', `${repo}/blobs/uploads/?digest=${digestOf('a')}`, { body: 'a' })
  assertRefused(await push('acme/second/one'), 'groups', 1, 1)
  assertRefused(await push('acme/team/below/one'), 'groups', 1, 1)
  assert.equal((await push('acme/team/two')).status, 201)
  assertRefused(await push('acme/three'), 'repositories', 2, 2)
  assert.equal((await push('acme/team/one')).status, 201)
  assert.deepEqual(await used(registry), { ...(await used(registry)), repositories: 2, groups: 1 })
})

test('an organization has no more open uploads than its limit, also if many start at once', async () => {
  await using registry = await startRegistry({ quotaUploads: 3 })
  const { pusher } = registry
  await pusher.pushBlob(name, 'a')
  const replies = await Promise.all(Array.from({ length: 8 }, () => pusher.call('POST', uploads)))
  const [begun, refused] = [
    replies.filter(({ status }) => status === 202),
    replies.filter(({ status }) => status !== 202),
  ]
  assert.equal(begun.length, 3)
  for (const reply of refused) assertRefused(reply, 'uploads', 3, 3)
  // An upload in a single request is never open.
  await pusher.pushBlob(name, 'whole')
  await pusher.ok(204, 'DELETE', String(begun[0]!.headers.location))
  await pusher.ok(201, 'PUT', `${begun[1]!.headers.location}?digest=${digestOf('b')}`, { body: 'b' })
  for (const status of [202, 202, 403]) assert.equal((await pusher.call('POST', uploads)).status, status)
  await set(registry, { uploads: 0 })
  await pusher.ok(202, 'POST', uploads)
  await checkUsage(registry)
})

test('an upload has no more parts than its limit, and can still be completed', async () => {
  await using registry = await startRegistry({ quotaUploadPieces: 3 })
  const { pusher } = registry
  const location = await begin(registry)
  for (const body of ['a', 'b', 'c']) await pusher.ok(202, 'PATCH', location, { body })
  assertRefused(await pusher.call('PATCH', location, { body: 'd' }), 'upload_pieces', 3, 3)
  assert.equal((await pusher.ok(204, 'GET', location)).headers.range, '0-2')
  await pusher.ok(201, 'PUT', `${location}?digest=${digestOf('abcd')}`, { body: 'd' })
  await checkUsage(registry)
})
