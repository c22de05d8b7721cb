// Streamed uploads and downloads: time limits, and HTTP/2.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http2 from 'node:http2'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectRaw, takeResponse } from '../support/raw-http.ts'
import { digestOf, startHasty, startRegistry, types } from '../support/registry.ts'

const name = 'acme/app'

test('an upload has no time limit, but ends if no more bytes arrive', async () => {
  await using registry = await startRegistry()
  await using hasty = await startHasty(registry, { requestTimeoutMs: 1000, headersTimeoutMs: 1000 })
  const { pusher } = registry
  const { headers } = await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
  const head = `PATCH ${headers.location} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${pusher.token}\r\n`
  using slow = await connectRaw(hasty.port)
  slow.write(`${head}transfer-encoding: chunked\r\n\r\n`)
  const until = performance.now() + 2500
  let size = 0
  while (performance.now() < until) {
    slow.write('1\r\nx\r\n')
    size++
    await sleep(50)
  }
  slow.write('0\r\n\r\n')
  const { status, head: answer } = await takeResponse(slow)
  assert.equal(status, 202)
  assert.match(answer, new RegExp(`range: 0-${size - 1}\r\n`, 'i'))

  using silent = await connectRaw(hasty.port)
  silent.write(`${head}content-length: 100\r\n\r\n0123456789`)
  await silent.closed
  const range = async () => (await pusher.ok(204, 'GET', String(headers.location))).headers.range
  for (let tries = 0; (await range()) === `0-${size - 1}` && tries < 3000; tries++) await sleep(10)
  assert.equal(await range(), `0-${size + 9}`, 'what came before the silence counts')
})

test('refuses a manifest that is not completed in time', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushBlob(name, 'makes the repo')
  await using hasty = await startHasty(registry, { requestTimeoutMs: 300, headersTimeoutMs: 300 })
  using slow = await connectRaw(hasty.port)
  slow.write(`PUT /v2/${name}/manifests/v1 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${registry.pusher.token}\r\n`)
  slow.write(`content-type: ${types.image}\r\ncontent-length: 100\r\n\r\n{`)
  const { status, body } = await takeResponse(slow)
  assert.deepEqual([status, JSON.parse(body).errors[0].code], [408, 'UNSUPPORTED'])
  await slow.closed
})

test('pushes and pulls images over HTTP/2 too', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const session = http2.connect(`http://127.0.0.1:${registry.port}`)
  const ask = async (method: string, path: string, body?: Buffer | string, more: Record<string, string> = {}) => {
    const authorization = `Bearer ${pusher.token}`
    const stream = session.request({ ':method': method, ':path': path, authorization, ...more }, { endStream: !body })
    stream.end(body)
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    await once(stream, 'end')
    return { status: headers[':status'], headers, bytes: Buffer.concat(chunks) }
  }
  try {
    const content = randomBytes(5_000_000)
    const digest = digestOf(content)
    const started = await ask('POST', `/v2/${name}/blobs/uploads/`)
    assert.equal(started.status, 202)
    assert.equal((await ask('PATCH', String(started.headers.location), content)).status, 202)
    assert.equal((await ask('PUT', `${started.headers.location}?digest=${digest}`)).status, 201)
    assert.deepEqual((await ask('GET', `/v2/${name}/blobs/${digest}`)).bytes, content)
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: types.image,
      config: { mediaType: types.config, digest, size: content.length },
      layers: [],
    })
    const put = await ask('PUT', `/v2/${name}/manifests/v1`, manifest, { 'content-type': types.image })
    assert.equal(put.status, 201, put.bytes.toString())
    assert.equal((await ask('GET', `/v2/${name}/manifests/v1`)).bytes.toString(), manifest)
    assert.equal((await ask('PUT', `/v2/${name}/manifests/v1`, 'x'.repeat(5_000_000))).status, 413)
    assert.equal((await ask('GET', '/v2/')).status, 200)
  } finally {
    session.destroy()
  }
})
