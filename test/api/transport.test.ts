// Common behavior of all methods: connections, limits, deadlines and drain, over HTTP/1.1, HTTP/2 and gRPC.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { after, before, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { startServer } from '#api/server.ts'
import type { App } from '#app.ts'
import type { Config } from '#config.ts'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { captureLog } from '../support/log.ts'
import { clientOf, type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { connectRaw, takeResponse } from '../support/raw-http.ts'

let pinfold: Pinfold
let group: Json
let repo: Json

before(async () => {
  pinfold = await startPinfold()
  group = await pinfold.seed.group()
  repo = await pinfold.seed.repo(group.uid, { name: 'web' })
})

after(() => pinfold[Symbol.asyncDispose]())

/** Another server on the same application, with other settings or parts. */
async function serve(settings: Partial<Config>, parts: Partial<App> = {}) {
  const { app, tokenFor } = pinfold
  const server = await startServer({ ...app, ...parts, config: { ...app.config, ...settings } })
  const token = await tokenFor(operatorUid, { issuer: server.url, audience: server.url })
  return {
    ...server,
    port: Number(new URL(server.url).port),
    token,
    operator: clientOf(server.url, token),
    [Symbol.asyncDispose]: () => server.close(),
  }
}

/** A database whose single-row reads wait until `release`; `reached` counts those that have begun. */
function heldDb() {
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let reached = 0
  const wakers: (() => void)[] = []
  const { db } = pinfold.app
  const get: App['db']['get'] = async (query) => {
    reached++
    for (const wake of wakers.splice(0)) wake()
    await held
    return db.get(query)
  }
  const untilReached = async (count: number) => {
    while (reached < count) await new Promise<void>((resolve) => wakers.push(resolve))
  }
  return { db: { ...db, get }, release, untilReached }
}

const repoPath = () => `/registry/v2/repos/${repo.uid}`
const getRepo = () => create(ReposService.method.getRepo.input, { uid: repo.uid })
const ping = 'GET /ping/v2/ping HTTP/1.1\r\nhost: a\r\n\r\n'
const pong = '{"response":"pong"}'

test('one connection serves several requests', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const ports = new Set<number>()
  const texts: string[] = []
  for (const path of ['/ping/v2/ping', '/nowhere', '/ping/v2/ping']) {
    const req = http.get({ port: pinfold.port, host: '127.0.0.1', path, agent })
    const [res] = (await once(req, 'response')) as [http.IncomingMessage]
    ports.add(res.socket.localPort!)
    let text = ''
    for await (const chunk of res) text += chunk
    texts.push(text)
  }
  agent.destroy()
  assert.equal(ports.size, 1)
  assert.equal(texts[0], pong)
  assert.equal(texts[2], pong)
})

test('closes a connection that does not finish its headers in the configured time', async () => {
  await using server = await serve({ headersTimeoutMs: 200 })
  const starts = ['', 'P', 'PRI * HTTP/2.0', 'GET /ping/v2/ping HTTP/1.1\r\nho']
  await Promise.all(
    starts.map(async (text) => {
      using connection = await connectRaw(server.port)
      if (text !== '') connection.write(text)
      await connection.closed
      assert.ok(!connection.received().includes(' 200 '), text)
    }),
  )
})

test('the server starts with a header timeout above the request timeout', async () => {
  await using server = await serve({ headersTimeoutMs: 5000, requestTimeoutMs: 1000 })
  assert.equal((await server.operator.get('/ping/v2/ping')).text, pong)
})

test('refuses a body with a Content-Length above the limit, and keeps the connection usable', async () => {
  await using server = await serve({ maxBodyBytes: 1024 })
  using connection = await connectRaw(server.port)
  const head = `PATCH ${repoPath()} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${server.token}\r\n`
  connection.write(`${head}content-length: 5000\r\n\r\n`)
  const refused = await takeResponse(connection)
  assert.equal(refused.status, 413)
  const { code, details } = JSON.parse(refused.body) as Json
  assert.equal(code, 3)
  assert.deepEqual(details[1].fieldViolations, [{ field: 'body', description: 'must be at most 1024 bytes' }])

  connection.write(Buffer.alloc(5000, 'x'))
  connection.write(ping)
  assert.equal((await takeResponse(connection)).body, pong)
})

test('refuses a body that exceeds the limit while it arrives, and keeps the connection usable', async () => {
  await using server = await serve({ maxBodyBytes: 1024 })
  using connection = await connectRaw(server.port)
  const head = `PATCH ${repoPath()} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${server.token}\r\n`
  const chunk = `200\r\n${' '.repeat(512)}\r\n`
  connection.write(`${head}transfer-encoding: chunked\r\n\r\n${chunk}${chunk}${chunk}`)
  assert.equal((await takeResponse(connection)).status, 413)

  connection.write(`${chunk}0\r\n\r\n`)
  connection.write(ping)
  assert.equal((await takeResponse(connection)).body, pong)

  connection.write(`${head}transfer-encoding: chunked\r\n\r\n${chunk}2\r\n{}\r\n0\r\n\r\n`)
  assert.equal((await takeResponse(connection)).status, 200)
})

test('accepts a body of exactly the limit, and refuses one byte more', async () => {
  await using server = await serve({ maxBodyBytes: 1024 })
  const body = (length: number) => `{}${' '.repeat(length - 2)}`
  assert.equal((await server.operator.patch(repoPath(), body(1024))).status, 200)
  assert.equal((await server.operator.patch(repoPath(), body(1025))).status, 413)
})

test('a client that continues to send after a refusal can read the reason', async () => {
  await using server = await serve({ maxBodyBytes: 1024 })
  const body = 'x'.repeat(16 * 1024 * 1024)
  assert.equal((await server.operator.patch(repoPath(), body)).status, 413)
  assert.equal((await clientOf(server.url, undefined).patch(repoPath(), body)).status, 401)
  assert.equal((await server.operator.post('/nowhere', body)).status, 404)
})

test('refuses headers that are too large, and keeps the connection usable', async () => {
  using connection = await connectRaw(pinfold.port)
  connection.write(`GET /ping/v2/ping HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(17_000)}\r\n\r\n`)
  assert.equal((await takeResponse(connection)).status, 431)
  connection.write(ping)
  assert.equal((await takeResponse(connection)).body, pong)
})

test('closes a connection whose body is too slow, and continues to serve others', async () => {
  await using server = await serve({ requestTimeoutMs: 300, headersTimeoutMs: 300 })
  const head = `PATCH ${repoPath()} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${server.token}\r\n`
  await Promise.all(
    ['content-length: 100\r\n\r\n{"des', 'transfer-encoding: chunked\r\n\r\n5\r\n{"des\r\n'].map(async (rest) => {
      using connection = await connectRaw(server.port)
      connection.write(head + rest)
      const { status, body } = await takeResponse(connection)
      assert.equal(status, 408)
      assert.equal((JSON.parse(body) as Json).code, 4)
      await connection.closed
    }),
  )
  assert.equal((await server.operator.get(repoPath())).status, 200)
})

test('a client that disconnects in the middle of its body is not logged as a server error', async () => {
  const logged = captureLog()
  await using server = await serve({}, { log: logged.log })
  const head = `PATCH ${repoPath()} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${server.token}\r\n`
  using connection = await connectRaw(server.port)
  connection.write(`${head}content-length: 100\r\n\r\n{"des`)
  connection.end()
  const line = await logged.until((one) => one.message === 'request')
  assert.equal(line.code, 'CANCELLED')
  assert.deepEqual(
    logged.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

test('returns an error for a handler that takes too long, over REST and gRPC', async () => {
  const slow = heldDb()
  await using server = await serve({ requestTimeoutMs: 200, headersTimeoutMs: 200 }, { db: slow.db })
  using grpc = openGrpc(server.port)
  const [rest, rpc] = await Promise.all([
    server.operator.get(repoPath()),
    grpc.call(ReposService.method.getRepo, getRepo(), { token: server.token }),
  ])
  assert.equal(rest.status, 504)
  assert.equal(rest.body.code, 4)
  assert.equal(rpc.code, 4)
  assert.equal(rpc.details[0]!.reason, 'DEADLINE_EXCEEDED')
  slow.release()
  assert.equal((await server.operator.get(repoPath())).status, 200)
})

test('gRPC: serves a call with and without a token', async () => {
  using grpc = openGrpc(pinfold.port)
  const pinged = await grpc.call(PingService.method.ping, create(PingService.method.ping.input))
  assert.equal(pinged.code, 0)
  assert.equal((pinged.response as unknown as Json).response, 'pong')
  const got = await grpc.call(ReposService.method.getRepo, getRepo(), { token: pinfold.operator.token! })
  assert.equal((got.response as unknown as Json).name, 'web')
})

test('gRPC: refuses a message over the limit, and serves the next call on the connection', async () => {
  await using server = await serve({ maxBodyBytes: 1024 })
  using grpc = openGrpc(server.port)
  const { updateRepo } = ReposService.method
  const message = (length: number) =>
    create(updateRepo.input, { repo: { uid: repo.uid, description: 'x'.repeat(length) } })
  const { token } = server
  assert.equal((await grpc.call(updateRepo, message(2000), { token })).code, 8)
  assert.equal((await grpc.call(updateRepo, message(100), { token })).code, 0)
})

test("gRPC: the client's deadline ends a call", async () => {
  const slow = heldDb()
  await using server = await serve({}, { db: slow.db })
  using grpc = openGrpc(server.port)
  const deadline = new Date(Date.now() + 200)
  const { code } = await grpc.call(ReposService.method.getRepo, getRepo(), { token: server.token, deadline })
  assert.equal(code, 4)
  slow.release()
  assert.equal((await grpc.call(ReposService.method.getRepo, getRepo(), { token: server.token })).code, 0)
})

type H2Answer = { status: number; headers: http2.IncomingHttpHeaders; text: string }

async function h2Request(
  session: http2.ClientHttp2Session,
  path: string,
  more: http2.OutgoingHttpHeaders = {},
  body?: string,
): Promise<H2Answer> {
  const stream = session.request({ ':path': path, ...more }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
  let text = ''
  for await (const chunk of stream) text += chunk
  return { status: Number(headers[':status']), headers, text }
}

test('REST works the same over cleartext HTTP/2 as over HTTP/1.1', async () => {
  const session = http2.connect(pinfold.url)
  const authorization = `Bearer ${pinfold.operator.token}`
  try {
    const read = await h2Request(session, repoPath(), { authorization })
    const over1 = await pinfold.operator.get(repoPath())
    assert.equal(read.status, 200)
    assert.deepEqual(JSON.parse(read.text), over1.body)
    assert.equal(read.headers['content-type'], over1.headers.get('content-type'))

    const patch = { ':method': 'PATCH', authorization, 'content-type': 'application/json' }
    const patched = await h2Request(session, repoPath(), patch, '{"description":"over h2"}')
    assert.equal((JSON.parse(patched.text) as Json).description, 'over h2')

    const refused = await h2Request(session, repoPath(), { 'x-request-id': 'over-http-2' })
    assert.equal(refused.status, 401)
    assert.equal(refused.headers['www-authenticate'], 'Bearer')
    assert.equal(refused.headers['x-request-id'], 'over-http-2')
    assert.equal((await h2Request(session, '/healthz')).text, 'ok\n')
    assert.equal((await h2Request(session, '/ping/v2/ping', { ':method': 'DELETE' })).status, 405)

    const many = await Promise.all(Array.from({ length: 50 }, () => h2Request(session, repoPath(), { authorization })))
    assert.ok(many.every(({ status }) => status === 200))
  } finally {
    session.destroy()
  }
})

test('HTTP/2: refuses a body that is too large or too slow, and keeps the connection usable', async () => {
  await using server = await serve({ maxBodyBytes: 1024, requestTimeoutMs: 1500, headersTimeoutMs: 1500 })
  const session = http2.connect(server.url)
  const headers = { ':method': 'PATCH', authorization: `Bearer ${server.token}` }
  try {
    const large = await h2Request(session, repoPath(), headers, 'x'.repeat(100_000))
    assert.equal(large.status, 413)
    assert.equal((JSON.parse(large.text) as Json).code, 3)

    const stream = session.request({ ':path': repoPath(), ...headers })
    stream.write('{"des')
    const closed = once(stream, 'close')
    const [slow] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    assert.equal(slow[':status'], 408)
    stream.resume()
    await closed
    assert.equal((await h2Request(session, '/ping/v2/ping')).text, pong)
  } finally {
    session.destroy()
  }
})

test('a shutdown lets running requests finish, reports not ready, and refuses new requests', async () => {
  const slow = heldDb()
  const server = await serve({ drainMs: 60_000 }, { db: slow.db })
  using grpc = openGrpc(server.port)
  using http1 = await connectRaw(server.port)
  const session = http2.connect(server.url)
  const authorization = `Bearer ${server.token}`

  const rpc = grpc.call(ReposService.method.getRepo, getRepo(), { token: server.token })
  const overHttp2 = h2Request(session, repoPath(), { authorization })
  http1.write('GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n')
  assert.equal((await takeResponse(http1)).status, 200)
  http1.write(`GET ${repoPath()} HTTP/1.1\r\nhost: a\r\nauthorization: ${authorization}\r\n\r\n`)
  await slow.untilReached(3)

  let drained = false
  const closing = server.close().then(() => {
    drained = true
  })
  await assert.rejects(connectRaw(server.port), /ECONNREFUSED/)
  http1.write('GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n') // pipelined after the running request
  const late = await grpc.call(PingService.method.ping, create(PingService.method.ping.input))
  assert.equal(late.code, 14)
  assert.equal(drained, false)

  slow.release()
  assert.equal((await rpc).code, 0)
  assert.equal((await overHttp2).status, 200)
  assert.equal((JSON.parse((await takeResponse(http1)).body) as Json).uid, repo.uid)
  const ready = await takeResponse(http1)
  assert.deepEqual([ready.status, ready.body], [503, 'draining\n'])
  await closing
  await http1.closed
})

test('a shutdown ends at its time limit, also with running requests', async () => {
  const slow = heldDb()
  const server = await serve({ drainMs: 100 }, { db: slow.db })
  using grpc = openGrpc(server.port)
  using http1 = await connectRaw(server.port)
  http1.write(`GET ${repoPath()} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${server.token}\r\n\r\n`)
  const rpc = grpc.call(ReposService.method.getRepo, getRepo(), { token: server.token })
  await slow.untilReached(2)
  await server.close()
  await http1.closed
  assert.notEqual((await rpc).code, 0)
  slow.release()
})
