// All ways to push blobs, and the state after failures.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import http2 from 'node:http2'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import { type Blobs, ContentTooLarge, StoreFull } from '#blobs/blobs.ts'
import { connectRaw } from '../support/raw-http.ts'
import {
  codeOf,
  digestOf,
  imageOf,
  registryClient,
  startRegistry,
  type TestRegistry,
  types,
} from '../support/registry.ts'

const name = 'acme/app'
const uploads = `${name}/blobs/uploads/`

const begin = async ({ pusher }: TestRegistry): Promise<string> =>
  String((await pusher.ok(202, 'POST', uploads)).headers.location)

/** Files of the store: those of unfinished uploads, and those of stored blobs. */
function filesOf({ app }: TestRegistry): { uploads: string[]; kept: string[] } {
  const folder = join(app.config.data, 'blobs')
  const kept = (algorithm: string) =>
    readdirSync(join(folder, algorithm), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return {
    uploads: readdirSync(join(folder, 'uploads')),
    kept: [...kept('sha256'), ...kept('sha512')].map((entry) => join(entry.parentPath, entry.name)),
  }
}

/** The same app with another store of blobs, served on a port of its own. */
async function serveWith(registry: TestRegistry, blobs: Partial<Blobs>, db: Partial<TestRegistry['app']['db']> = {}) {
  const { app: own } = registry
  const app = { ...own, blobs: { ...own.blobs, ...blobs }, db: { ...own.db, ...db } }
  const server = await startServer({ ...app, config: { ...app.config, url: registry.url } })
  const client = registryClient(`http://127.0.0.1:${server.port}`, registry.pusher.token)
  return { client, port: server.port, [Symbol.asyncDispose]: () => server.close() }
}

test('verifies a blob pushed in one request, in several parts, or as a stream', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher } = registry
  const content = randomBytes(5000)
  const digest = digestOf(content)
  const check = async (pushed: { headers: Record<string, unknown> }) => {
    assert.equal(pushed.headers.location, `/v2/${name}/blobs/${digest}`)
    assert.equal(pushed.headers['docker-content-digest'], digest)
    assert.deepEqual((await pusher.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes, content)
    await pusher.ok(202, 'DELETE', `${name}/blobs/${digest}`)
  }
  await check(await pusher.ok(201, 'POST', `${uploads}?digest=${digest}`, { body: content }))
  await check(await pusher.ok(201, 'PUT', `${await begin(registry)}?digest=${digest}`, { body: content }))

  const streamed = await begin(registry)
  const stream = { body: content, headers: { 'transfer-encoding': 'chunked' } }
  await pusher.ok(202, 'PATCH', streamed, stream)
  await check(await pusher.ok(201, 'PUT', `${streamed}?digest=${digest}`))

  for (const closing of [0, 1000]) {
    const location = await begin(registry)
    for (let at = 0; at < 5000 - closing; at += 1000) {
      const headers = { 'content-range': `${at}-${at + 999}`, 'content-type': 'application/octet-stream' }
      const sent = await pusher.ok(202, 'PATCH', location, { body: content.subarray(at, at + 1000), headers })
      assert.equal(sent.headers.range, `0-${at + 999}`)
      assert.equal(sent.headers.location, location)
    }
    const last = closing > 0 ? { body: content.subarray(4000), headers: { 'content-range': '4000-4999' } } : {}
    await check(await pusher.ok(201, 'PUT', `${location}?digest=${digest}`, last))
    await pusher.ok(404, 'GET', location)
  }
  const empty = digestOf('')
  await pusher.ok(201, 'POST', `${uploads}?digest=${empty}`)
  assert.equal((await pusher.ok(200, 'GET', `${name}/blobs/${empty}`)).headers['content-length'], '0')
  await pusher.ok(201, 'PUT', `${await begin(registry)}?digest=${empty}`)
  assert.deepEqual(filesOf(registry).uploads, [])
})

test('refuses content with a wrong digest, and stores nothing', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher } = registry
  const wrong = digestOf('something else')
  const refused = [
    await pusher.call('POST', `${uploads}?digest=${wrong}`, { body: 'abc' }),
    await pusher.call('PUT', `${await begin(registry)}?digest=${wrong}`, { body: 'abc' }),
  ]
  const chunked = await begin(registry)
  await pusher.ok(202, 'PATCH', chunked, { body: 'ab' })
  await pusher.ok(202, 'PATCH', chunked, { body: 'c' })
  refused.push(await pusher.call('PUT', `${chunked}?digest=${wrong}`))
  refused.push(await pusher.call('PUT', await begin(registry), { body: 'abc' }))
  refused.push(await pusher.call('POST', `${uploads}?digest=sha256:zz`, { body: 'abc' }))
  for (const answer of refused) {
    assert.equal(answer.status, 400)
    assert.equal(codeOf(answer), 'DIGEST_INVALID')
  }
  assert.equal((await pusher.call('GET', `${name}/blobs/${wrong}`)).status, 404)
  assert.equal(codeOf(await pusher.call('GET', chunked)), 'BLOB_UPLOAD_UNKNOWN')
  assert.deepEqual(filesOf(registry), { uploads: [], kept: [] })
})

test('an error for a part at a wrong offset contains the offset to continue at', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const location = await begin(registry)
  assert.equal((await pusher.ok(204, 'GET', location)).headers.range, '0-0')
  const send = (body: string, range: string, method = 'PATCH', to = location) =>
    pusher.call(method, to, { body, headers: { 'content-range': range } })
  assert.equal((await send('abc', '0-2')).status, 202)
  for (const range of ['0-2', '4-6', '2-4']) {
    const refused = await send('xyz', range)
    assert.equal(refused.status, 416, range)
    assert.equal(refused.headers.range, '0-2')
    assert.equal(refused.headers.location, location)
  }
  assert.equal((await send('xyz', '9-11', 'PUT', `${location}?digest=${digestOf('x')}`)).status, 416)
  for (const range of ['3-9', '3-4']) assert.equal((await send('xyz', range)).status, 400, range)
  assert.equal((await send('xyz', 'three to five')).status, 400)
  const got = await pusher.ok(204, 'GET', location)
  assert.equal(got.headers.range, '0-2')
  assert.ok(got.headers['docker-upload-uuid'])
  assert.equal((await send('def', '3-5')).status, 202)
  await pusher.ok(201, 'PUT', `${location}?digest=${digestOf('abcdef')}`)
})

test('refuses a range whose end is before its start, with any body', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const location = await begin(registry)
  await pusher.ok(202, 'PATCH', location, { body: 'abc' })
  for (const range of ['3-2', '3-1', '3-0']) {
    const headers = { 'content-range': range }
    const sent = [
      { headers },
      { headers, body: 'd' },
      { headers: { ...headers, 'transfer-encoding': 'chunked' }, body: 'd' },
    ]
    for (const send of sent) {
      const refused = [
        await pusher.call('PATCH', location, send),
        await pusher.call('PUT', `${location}?digest=${digestOf('abcd')}`, send),
      ]
      for (const reply of refused) {
        assert.equal(reply.status, 416, range)
        assert.equal(codeOf(reply), 'BLOB_UPLOAD_INVALID')
        assert.equal(reply.headers.range, '0-2')
      }
    }
  }
  await pusher.ok(201, 'PUT', `${location}?digest=${digestOf('abc')}`)
})

test('accepts parts of an upload one at a time, and refuses a part sent during another one with 416', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher } = registry
  const location = await begin(registry)
  const bodies = ['aaaa', 'bbbb', 'cccc', 'dddd']
  const answers = await Promise.all(bodies.map((body) => pusher.call('PATCH', location, { body })))
  const winners = bodies.filter((_, i) => answers[i]!.status === 202)
  // Parts sent after the end of another part may be appended to it.
  assert.ok(winners.length >= 1)
  assert.ok(answers.every(({ status }) => status === 202 || status === 416))
  const { range } = (await pusher.ok(204, 'GET', location)).headers
  assert.equal(range, `0-${winners.length * 4 - 1}`)
  assert.equal(filesOf(registry).uploads.length, winners.length)
})

test('an upload belongs to its repository, and cannot continue after it is canceled', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher, puller } = registry
  await pusher.pushBlob('acme/other', 'x')
  const location = await begin(registry)
  await pusher.ok(202, 'PATCH', location, { body: 'abc' })
  const elsewhere = location.replace(name, 'acme/other')
  assert.equal(codeOf(await pusher.call('GET', elsewhere)), 'BLOB_UPLOAD_UNKNOWN')
  assert.equal((await puller.call('GET', location)).status, 403)
  assert.equal((await puller.call('POST', uploads)).status, 403)
  await pusher.ok(204, 'DELETE', location)
  for (const method of ['GET', 'PATCH', 'PUT', 'DELETE']) {
    assert.equal((await pusher.call(method, `${location}?digest=${digestOf('abc')}`, {})).status, 404, method)
  }
  assert.deepEqual(filesOf(registry).uploads, [])
})

test('keeps the bytes that arrived before a client disconnected, and continues after them', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const location = await begin(registry)
  const content = randomBytes(3_000_000)
  const raw = await connectRaw(registry.port)
  const head = `PATCH ${location} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${pusher.token}\r\ncontent-length: 3000000\r\n\r\n`
  raw.write(head)
  raw.write(content.subarray(0, 2_000_000))
  raw.end()
  await raw.closed
  let done = 0
  // The server takes some time to notice that the client has disconnected.
  for (let tries = 0; done === 0 && tries < 500; tries++) {
    done = Number(/^0-(\d+)$/.exec(String((await pusher.ok(204, 'GET', location)).headers.range))![1])
  }
  assert.ok(done > 0 && done < 2_000_000)
  const rest = content.subarray(done + 1)
  const headers = { 'content-range': `${done + 1}-2999999` }
  await pusher.ok(202, 'PATCH', location, { body: rest, headers })
  const digest = digestOf(content)
  await pusher.ok(201, 'PUT', `${location}?digest=${digest}`)
  assert.equal(digestOf((await pusher.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes), digest)
})

test('stores an existing blob once, and each repository sees only its own blobs', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher } = registry
  const content = randomBytes(1000)
  const digest = digestOf(content)
  await pusher.pushBlob(name, content)
  await pusher.pushBlob(name, content)
  await pusher.ok(404, 'GET', `acme/other/blobs/${digest}`)
  const pushes = Array.from({ length: 5 }, () => pusher.pushBlob('acme/other', content))
  await Promise.all(pushes)
  const { kept, uploads: left } = filesOf(registry)
  assert.equal(kept.length, 1)
  assert.deepEqual(left, [])
  assert.ok(kept[0]!.includes(`/sha256/${digest.slice(7, 9)}/${digest.slice(7)}-`))
  assert.deepEqual(readFileSync(kept[0]!), content)
})

test('on a full disk, pushes fail without leaving files, and reads continue', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const content = randomBytes(100_000)
  await registry.pusher.pushBlob(name, content)
  let fails: 'write' | 'finish' | 'keep' = 'write'
  const full = () => Promise.reject(new StoreFull('full'))
  await using server = await serveWith(registry, {
    async begin(expected, owner) {
      const part = await registry.app.blobs.begin(expected, owner)
      if (fails === 'write') return { ...part, write: full }
      return fails === 'finish' ? { ...part, finish: full } : part
    },
    keep: (part, digest) => (fails === 'keep' ? full() : registry.app.blobs.keep(part, digest)),
  })
  const { client } = server
  const other = randomBytes(3_000_000)
  for (const stage of ['write', 'finish', 'keep'] as const) {
    fails = stage
    const start = async () => String((await client.ok(202, 'POST', uploads)).headers.location)
    const answers = [
      await client.call('POST', `${uploads}?digest=${digestOf(other)}`, { body: other }),
      await client.call('PUT', `${await start()}?digest=${digestOf(other)}`, { body: other }),
    ]
    if (stage !== 'keep') answers.push(await client.call('PATCH', await start(), { body: other }))
    for (const answer of answers) {
      assert.equal(answer.status, 507, stage)
      assert.equal(codeOf(answer), 'UNAVAILABLE')
    }
    assert.deepEqual((await client.ok(200, 'GET', `${name}/blobs/${digestOf(content)}`)).bytes, content)
    assert.deepEqual(filesOf(registry).uploads, [], stage)
    assert.equal(filesOf(registry).kept.length, 1, stage)
  }
})

test('an upload continues after a part whose commit got no response', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { db } = registry.app
  let loses = false
  await using server = await serveWith(
    registry,
    {},
    {
      async tx(work, options) {
        const result = await db.tx(work, options)
        if (!loses || result !== true) return result
        loses = false
        throw new Error('the connection was lost')
      },
    },
  )
  const { client } = server
  const [first, second] = [randomBytes(300_000), randomBytes(1000)]
  const location = String((await client.ok(202, 'POST', uploads)).headers.location)
  loses = true
  assert.equal((await client.call('PATCH', location, { body: first })).status, 500)
  assert.equal((await client.ok(204, 'GET', location)).headers.range, `0-${first.length - 1}`)
  const content = Buffer.concat([first, second])
  await client.ok(201, 'PUT', `${location}?digest=${digestOf(content)}`, { body: second })
  assert.deepEqual((await client.ok(200, 'GET', `${name}/blobs/${digestOf(content)}`)).bytes, content)
})

test('returns 413 for a blob larger than the store accepts, and leaves nothing behind', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const tooLarge = () => Promise.reject(new ContentTooLarge('too large'))
  await using server = await serveWith(registry, {
    begin: async (expected, owner) => ({ ...(await registry.app.blobs.begin(expected, owner)), write: tooLarge }),
  })
  const body = randomBytes(1000)
  const answer = await server.client.call('POST', `${uploads}?digest=${digestOf(body)}`, { body })
  assert.equal(answer.status, 413)
  assert.equal(codeOf(answer), 'SIZE_INVALID')
  assert.deepEqual(filesOf(registry), { uploads: [], kept: [] })
})

test('mounts blobs from repositories that the caller can read', async () => {
  await using registry = await startRegistry()
  const { pusher, registryOperator } = registry
  const { digest } = await pusher.pushBlob('acme/source', 'shared layer')
  const mount = (from: string, what = digest) => pusher.call('POST', `${uploads}?mount=${what}${from}`)
  const mounted = await mount('&from=acme/source')
  assert.equal(mounted.status, 201)
  assert.equal(mounted.headers.location, `/v2/${name}/blobs/${digest}`)
  assert.equal((await pusher.ok(200, 'GET', `${name}/blobs/${digest}`)).bytes.toString(), 'shared layer')
  await pusher.ok(202, 'DELETE', `${name}/blobs/${digest}`)
  assert.equal((await mount('')).status, 201, 'without a source it is found')
  await pusher.ok(202, 'DELETE', `${name}/blobs/${digest}`)

  for (const from of ['&from=acme/none', '&from=..', '&from=', '']) {
    const fallback = await mount(from, digestOf('absent'))
    assert.equal(fallback.status, 202, from)
    assert.ok(String(fallback.headers.location).startsWith(`/v2/${name}/blobs/uploads/`))
  }
  assert.equal(codeOf(await mount('', 'sha256:no')), 'DIGEST_INVALID')
  const foreign = await registry.seed.group('', { name: 'secret' })
  assert.ok(foreign.uid)
  const theirs = await registryOperator.pushBlob('secret/app', 'their layer')
  assert.equal((await mount('&from=secret/app', theirs.digest)).status, 202)
  assert.equal((await mount('', theirs.digest)).status, 202)
  await pusher.ok(404, 'HEAD', `${name}/blobs/${theirs.digest}`)
})

test('a mount from an invalid name becomes an upload, and no response contains the name', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const { digest } = await pusher.pushBlob('acme/source', 'shared layer')
  const asked = await registry.withToken(pusher.token!).get(`/token?scope=repository:${name}:pull,push`)
  const narrow = registryClient(pusher.origin, asked.body.token as string)
  const hostile = [
    'acme/source" error="none',
    'acme/source:pull repository:secret/app',
    'acme/source,secret/app',
    'acme/../acme/source',
    '/acme/source',
    'acme//source',
    'acme/source/',
    'ACME/source',
    'acme/source\0',
    'acme/source\r\nset-cookie: a=b',
    `acme/${'s'.repeat(5000)}`,
    'acmé/source',
    '%61cme/source',
  ]
  for (const from of hostile) {
    const path = `${uploads}?mount=${digest}&from=${encodeURIComponent(from)}`
    for (const client of [pusher, narrow]) {
      const { headers } = await client.ok(202, 'POST', path)
      assert.match(String(headers.location), /^\/v2\/acme\/app\/blobs\/uploads\/[0-9a-f]+$/, from)
    }
    const { status, headers } = await registry.nobody.call('POST', path)
    assert.equal(status, 401, from)
    assert.match(String(headers['www-authenticate']), /,scope="repository:acme\/app:pull,push"$/, from)
    assert.equal(headers['set-cookie'], undefined)
  }
  await pusher.ok(404, 'HEAD', `${name}/blobs/${digest}`)
})

test('a token without access to the mount source gets a challenge with the correct scope', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const { digest } = await pusher.pushBlob('acme/source', 'shared layer')
  const asked = async (scope: string) => {
    const answer = await registry.withToken(pusher.token!).get(`/token?scope=${encodeURIComponent(scope)}`)
    return registryClient(pusher.origin, answer.body.token as string)
  }
  const narrow = await asked(`repository:${name}:pull,push`)
  const refused = await narrow.call('POST', `${uploads}?mount=${digest}&from=acme/source`)
  assert.equal(refused.status, 401)
  const scope = /scope="([^"]*)"/.exec(String(refused.headers['www-authenticate']))![1]!
  assert.equal(scope, `repository:${name}:pull,push repository:acme/source:pull`)
  const unnamed = await narrow.call('POST', `${uploads}?mount=${digest}`)
  assert.equal(unnamed.status, 202, 'who does not say where it is uploads it')
  const wide = await asked(scope)
  for (const from of ['&from=acme/source', '']) {
    assert.equal((await wide.call('POST', `${uploads}?mount=${digest}${from}`)).status, 201)
    await pusher.ok(202, 'DELETE', `${name}/blobs/${digest}`)
  }
  const absent = await narrow.call('POST', `${uploads}?mount=${digestOf('absent')}&from=acme/source`)
  assert.equal(absent.status, 202, 'another token would not help')
  const first = await registry.nobody.call('POST', `${uploads}?mount=${digest}&from=acme/source`)
  assert.match(String(first.headers['www-authenticate']), /push repository:acme\/source:pull"/)
})

test('an upload continues after a restart of the server', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const location = await begin(registry)
  await pusher.ok(202, 'PATCH', location, { body: 'first half, ' })
  await using again = await serveWith(registry, {})
  assert.equal((await again.client.ok(204, 'GET', location)).headers.range, '0-11')
  await again.client.ok(202, 'PATCH', location, { body: 'second half' })
  const digest = digestOf('first half, second half')
  await again.client.ok(201, 'PUT', `${location}?digest=${digest}`)
  const config = await again.client.pushBlob(name, '{}', types.empty)
  await again.client.pushManifest(name, imageOf(config, [{ mediaType: types.layer, digest, size: 23 }]), 'v1')
})

test('HTTP/2: accepts the last part of an upload without a length', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const session = http2.connect(`http://127.0.0.1:${registry.port}`)
  const ask = async (method: string, path: string, body: string) => {
    const authorization = `Bearer ${pusher.token}`
    const stream = session.request({ ':method': method, ':path': path, authorization }, { endStream: false })
    stream.end(body)
    const [headers] = (await once(stream.resume(), 'response')) as [http2.IncomingHttpHeaders]
    return headers[':status']
  }
  try {
    const location = await begin(registry)
    assert.equal(await ask('PATCH', location, 'first half, '), 202)
    const digest = digestOf('first half, second half')
    assert.equal(await ask('PUT', `${location}?digest=${digest}`, 'second half'), 201)
    assert.equal(await ask('POST', `/v2/${uploads}?digest=${digestOf('whole')}`, 'whole'), 201)
    await pusher.ok(200, 'HEAD', `${name}/blobs/${digestOf('whole')}`)
  } finally {
    session.destroy()
  }
})
