// Requests of other clients while the body of a push arrives.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import http2 from 'node:http2'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '#api/server.ts'
import type { Blobs } from '#blobs/blobs.ts'
import type { Config } from '#config.ts'
import { requestCollection, waitForCollection } from '#domains/registry/blobs/collection.service.ts'
import { captureLog } from '../support/log.ts'
import { connectRaw } from '../support/raw-http.ts'
import { codeOf, digestOf, registryClient, startRegistry, type TestRegistry } from '../support/registry.ts'

const name = 'acme/app'
const uploads = `/v2/${name}/blobs/uploads/`

/** The same app with another blob store, and a function that sends a body in two parts. */
async function serveWith(registry: TestRegistry, blobs: Partial<Blobs>, config: Partial<Config> = {}) {
  const app = { ...registry.app, blobs: { ...registry.app.blobs, ...blobs } }
  const server = await startServer({ ...app, config: { ...app.config, ...config, url: registry.url } })
  const client = registryClient(`http://127.0.0.1:${server.port}`, registry.pusher.token)
  return { client, port: server.port, [Symbol.asyncDispose]: () => server.close() }
}

/** Sends the first part and waits until the server has read it. `end` sends the rest and returns the status. */
async function beginBody(registry: TestRegistry, method: string, path: string, first: string) {
  const begun = Promise.withResolvers<void>()
  const server = await serveWith(registry, {
    async begin(expected, owner) {
      begun.resolve()
      return registry.app.blobs.begin(expected, owner)
    },
  })
  const headers = { authorization: `Bearer ${registry.pusher.token}` }
  const req = request({ host: '127.0.0.1', port: server.port, method, path, headers })
  const answered = once(req, 'response')
  req.write(first)
  await begun.promise
  return async (rest: string): Promise<number> => {
    req.end(rest)
    const [res] = await answered
    res.resume()
    await server[Symbol.asyncDispose]()
    return res.statusCode
  }
}

test('a part that arrives while the last part is sent counts in the size of the blob', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const content = 'first half, second half'
  const digest = digestOf(content)
  const location = String((await pusher.ok(202, 'POST', uploads)).headers.location)
  const end = await beginBody(registry, 'PUT', `${location}?digest=${digest}`, 'second')
  await pusher.ok(202, 'PATCH', location, { body: 'first half, ' })
  assert.equal(await end(' half'), 201)
  // All repositories with the same content would return a wrong size.
  await pusher.ok(201, 'POST', `/v2/acme/other/blobs/uploads/?mount=${digest}&from=${name}`)
  assert.equal((await pusher.ok(200, 'GET', `acme/other/blobs/${digest}`)).bytes.toString(), content)
})

test('a push to a repository that is deleted meanwhile writes to no other repository', async () => {
  await using registry = await startRegistry()
  const { pusher, operator, org, seed } = registry
  const own = await seed.repo(org.uid, { name: 'app' })
  const content = 'not for others'
  const end = await beginBody(registry, 'POST', `${uploads}?digest=${digestOf(content)}`, 'not for')
  assert.equal((await operator.delete(`/registry/v2/repos/${own.uid}`)).status, 200)
  // SQLite gives the new repo the number of the deleted one.
  await seed.repo((await seed.group('', { name: 'secret' })).uid, { name: 'app' })
  assert.equal(await end(' others'), 404)
  await registry.registryOperator.ok(404, 'HEAD', `secret/app/blobs/${digestOf(content)}`)
  assert.equal((await pusher.call('HEAD', `${name}/blobs/${digestOf(content)}`)).status, 404)
})

test('the last-use time of an uploaded blob is the end of its upload', async () => {
  let time = Date.parse('2026-03-01T12:00:00.000Z')
  await using registry = await startRegistry({ clock: () => new Date(time), blobGraceSeconds: 600 })
  const { pusher, app } = registry
  const whole = await beginBody(registry, 'POST', `${uploads}?digest=${digestOf('a long push')}`, 'a long')
  const location = String((await pusher.ok(202, 'POST', uploads)).headers.location)
  const piece = await beginBody(registry, 'PATCH', location, 'a long')
  time += 1200_000
  assert.equal(await whole(' push'), 201)
  assert.equal(await piece(' piece'), 202)
  const id = await requestCollection(app, false)
  const { collected } = await waitForCollection(app, id, { waitMs: 60_000, signal: new AbortController().signal })
  assert.deepEqual([collected.links, collected.uploads], [0, 0])
})

test('an upload whose parts another request took is unknown', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { pusher, app } = registry
  const location = String((await pusher.ok(202, 'POST', uploads)).headers.location)
  await pusher.ok(202, 'PATCH', location, { body: 'first half, ' })
  const folder = join(app.config.data, 'blobs', 'uploads')
  for (const file of readdirSync(folder)) rmSync(join(folder, file))
  for (const body of ['second half', undefined]) {
    const digest = digestOf(`first half, ${body ?? ''}`)
    const answer = await pusher.call('PUT', `${location}?digest=${digest}`, body === undefined ? {} : { body })
    assert.equal(answer.status, 404)
    assert.equal(codeOf(answer), 'BLOB_UPLOAD_UNKNOWN')
    assert.deepEqual(readdirSync(folder), [])
  }
})

test('only one of several concurrent requests to complete an upload reads and copies it', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { app, pusher } = registry
  let copies = 0
  let reads = 0
  await using server = await serveWith(registry, {
    begin(expected, owner) {
      copies++
      return app.blobs.begin(expected, owner)
    },
    read(blob) {
      reads++
      return app.blobs.read(blob)
    },
  })
  const { client } = server
  const closeAll = async (pieces: string[], digest: string): Promise<number[]> => {
    const location = String((await pusher.ok(202, 'POST', uploads)).headers.location)
    for (const body of pieces) await pusher.ok(202, 'PATCH', location, { body })
    copies = 0
    reads = 0
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => client.call('PUT', `${location}?digest=${digest}`)),
    )
    for (const reply of replies) if (reply.status === 404) assert.equal(codeOf(reply), 'BLOB_UPLOAD_UNKNOWN')
    return replies.map(({ status }) => status).sort()
  }
  const others = Array<number>(7).fill(404)
  assert.deepEqual(await closeAll(['first, ', 'second'], digestOf('something else')), [400, ...others])
  assert.deepEqual([copies, reads], [1, 2])
  assert.deepEqual(await closeAll(['first, ', 'second'], digestOf('first, second')), [201, ...others])
  assert.deepEqual([copies, reads], [1, 2])
  assert.deepEqual(await closeAll(['whole'], digestOf('whole', 'sha512')), [201, ...others])
  assert.deepEqual([copies, reads], [0, 1])
  assert.equal(app.closing.size, 0)
  assert.deepEqual(readdirSync(join(app.config.data, 'blobs', 'uploads')), [])
})

test('a disconnected client stops the reading of its content, unless the server itself needs the content', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { app, pusher } = registry
  const clients: (AbortSignal | undefined)[] = []
  let isFull = false
  await using server = await serveWith(registry, {
    async read(blob, reading) {
      const client = reading?.client
      clients.push(client)
      if (isFull) return once(client!, 'abort').then(() => Promise.reject(client!.reason))
      return app.blobs.read(blob, reading)
    },
  })
  const { client, port } = server
  const location = String((await client.ok(202, 'POST', uploads)).headers.location)
  for (const body of ['first, ', 'second']) await client.ok(202, 'PATCH', location, { body })
  const digest = digestOf('first, second')
  await client.ok(201, 'PUT', `${location}?digest=${digest}`)
  assert.deepEqual(clients.splice(0), [undefined, undefined])
  const path = `/v2/${name}/blobs/${digest}`
  assert.equal((await client.ok(200, 'GET', path)).bytes.toString(), 'first, second')
  isFull = true
  const req = request({ host: '127.0.0.1', port, path, headers: { authorization: `Bearer ${pusher.token}` } })
  req.on('error', () => {})
  req.end()
  while (clients.length < 2) await sleep(5)
  assert.ok(!clients[1]!.aborted)
  req.destroy()
  while (!clients[1]!.aborted) await sleep(5)
})

test('stops a manifest body that arrives too slowly, whatever its path looks like', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushImage(name, 'v1')
  await using server = await serveWith(registry, {}, { requestTimeoutMs: 300 })
  for (const path of [`${name}/manifests/v1?x=/blobs/uploads/`, `${name}/blobs/uploads/x/manifests/v1`]) {
    const raw = await connectRaw(server.port)
    const head = `authorization: Bearer ${registry.pusher.token}\r\ncontent-length: 100`
    raw.write(`PUT /v2/${path} HTTP/1.1\r\nhost: a\r\n${head}\r\n\r\n{`)
    await raw.closed
    assert.match(raw.received(), /^(HTTP\/1.1 408 |$)/)
  }
})

test('HTTP/2: stops a body without new bytes', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushImage(name, 'v1')
  const location = String((await registry.pusher.ok(202, 'POST', uploads)).headers.location)
  await using server = await serveWith(registry, {}, { requestTimeoutMs: 300 })
  const session = http2.connect(`http://127.0.0.1:${server.port}`)
  const authorization = `Bearer ${registry.pusher.token}`
  for (const [method, path] of [
    ['PUT', `/v2/${name}/manifests/v1`],
    ['PUT', `${location}?digest=${digestOf('abcdef')}`],
    ['PATCH', location],
  ]) {
    const stream = session.request({ ':method': method, ':path': path, authorization }, { endStream: false })
    stream.on('error', () => {}).resume()
    stream.write('abc')
    await once(stream, 'close')
  }
  session.destroy()
  // Bytes before the silence are stored, and the upload continues after them.
  const range = async () => (await registry.pusher.ok(204, 'GET', location)).headers.range
  for (let tries = 0; (await range()) !== '0-2' && tries < 3000; tries++) await sleep(10)
  await registry.pusher.ok(201, 'PUT', `${location}?digest=${digestOf('abcdef')}`, { body: 'def' })
})

test('syncing to disk can take longer than a client may be idle', async () => {
  await using registry = await startRegistry()
  const { begin } = registry.app.blobs
  const slow = async () => {
    const part = await begin(0, '')
    return { ...part, finish: () => sleep(1500).then(() => part.finish()) }
  }
  await using server = await serveWith(registry, { begin: slow }, { requestTimeoutMs: 500 })
  const content = 'a few gigabytes'
  await server.client.ok(201, 'POST', `${uploads}?digest=${digestOf(content)}`, { body: content })
  const location = String((await server.client.ok(202, 'POST', uploads)).headers.location)
  await server.client.ok(202, 'PATCH', location, { body: content })
})

test('a client that disconnects while waiting for a blob counts neither as refused nor as failed', async () => {
  const { log, lines, until } = captureLog()
  await using registry = await startRegistry()
  const digest = await registry.pusher.pushBlob(name, 'content').then((blob) => blob.digest)
  const waits = Promise.withResolvers<void>()
  const read: Blobs['read'] = (_blob, reading) =>
    new Promise((_resolve, reject) => {
      const { client } = reading!
      client!.addEventListener('abort', () => reject(client!.reason as Error))
      waits.resolve()
    })
  await using server = await serveWith({ ...registry, app: { ...registry.app, log } }, { read })
  const raw = await connectRaw(server.port)
  const path = `/v2/${name}/blobs/${digest}`
  raw.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${registry.pusher.token}\r\n\r\n`)
  await waits.promise
  raw[Symbol.dispose]()
  const line = await until(({ message }) => message === 'request')
  const failed = lines.filter(({ level }) => level !== 'info')
  assert.deepEqual([line.code, failed], ['499', []])
  const { text } = await registry.operator.get('/metrics')
  assert.doesNotMatch(text, /registry_refusals_total\{[^}]*action="pull"/)
})
