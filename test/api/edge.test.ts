// Properties of each response at each entry point: safe headers, a request ID, one log line, and one measurement with labels of a
// closed set.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { after, before, test } from 'node:test'
import { startServer } from '#api/server.ts'
import type { App } from '#app.ts'
import type { Config } from '#config.ts'
import { captureLog } from '../support/log.ts'
import type { Json } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { connectRaw, takeResponse } from '../support/raw-http.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'

type Ask = { method?: string; path: string; headers?: Record<string, string>; body?: string }
type Head = { status: number; headers: Record<string, string | string[] | undefined> }
type Send = (ask: Ask) => Promise<Head>

let registry: TestRegistry
let repo: Json
let digest: string

before(async () => {
  registry = await startRegistry()
  digest = (await registry.pusher.pushImage('acme/app', 'v1')).digest
  repo = await registry.seed.repo(registry.org.uid)
})

after(() => registry[Symbol.asyncDispose]())

async function serve(settings: Partial<Config> = {}, parts: Partial<App> = {}) {
  const { app } = registry
  const server = await startServer({ ...app, ...parts, config: { ...app.config, ...settings } })
  return { ...server, [Symbol.asyncDispose]: () => server.close() }
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const bearer = (token: string | undefined) => ({ authorization: `Bearer ${token}` })

/** One request for each possible response status. */
function everyKind(): [status: number, ask: Ask][] {
  const api = bearer(registry.operator.token)
  const push = bearer(registry.pusher.token)
  const blobs = '/v2/acme/app/blobs'
  const manifest = '/v2/acme/app/manifests'
  return [
    [200, { path: '/ping/v2/ping' }],
    [200, { path: `/registry/v2/repos/${repo.uid}`, headers: api }],
    [200, { path: '/events/v2/stream', headers: api }],
    [401, { path: '/registry/v2/repos' }],
    [404, { path: '/nowhere' }],
    [405, { method: 'DELETE', path: '/ping/v2/ping' }],
    [400, { method: 'PATCH', path: `/registry/v2/repos/${repo.uid}`, headers: api, body: '{' }],
    [200, { path: '/healthz' }],
    [200, { method: 'HEAD', path: '/readyz' }],
    [405, { method: 'POST', path: '/healthz' }],
    [200, { path: '/metrics', headers: api }],
    [401, { path: '/metrics' }],
    [200, { path: '/openapi.json' }],
    [200, { path: '/openapi-v1.json' }],
    [200, { path: '/.well-known/jwks.json' }],
    [405, { path: '/oauth/token' }],
    [400, { method: 'POST', path: '/oauth/token', headers: form, body: 'grant_type=x' }],
    [405, { path: '/mcp' }],
    [401, { method: 'POST', path: '/mcp', body: '{}' }],
    [401, { path: '/token' }],
    [405, { method: 'POST', path: '/token' }],
    [401, { path: '/v2/' }],
    [200, { path: '/v2/', headers: push }],
    [404, { path: '/v2/nothing-here', headers: push }],
    [200, { path: `${manifest}/v1`, headers: push }],
    [200, { method: 'HEAD', path: `${manifest}/v1`, headers: push }],
    [304, { path: `${manifest}/v1`, headers: { ...push, 'if-none-match': `"${digest}"` } }],
    [404, { path: `${manifest}/v2`, headers: push }],
    [405, { method: 'POST', path: `${manifest}/v1`, headers: push }],
    [202, { method: 'POST', path: `${blobs}/uploads/`, headers: push }],
    [404, { path: `${blobs}/sha256:${'0'.repeat(64)}`, headers: push }],
    [200, { path: '/v2/acme/app/tags/list', headers: push }],
    [200, { path: `/v2/acme/app/referrers/${digest}`, headers: push }],
  ]
}

const overHttp1: Send = async ({ method = 'GET', path, headers = {}, body = '' }) => {
  const length = body === '' ? {} : { 'content-length': Buffer.byteLength(body) }
  const options = { port: registry.listenPort, host: '127.0.0.1', method, path, headers: { ...headers, ...length } }
  const req = http.request(options)
  req.end(body)
  const [res] = (await once(req, 'response')) as [http.IncomingMessage]
  res.destroy()
  return { status: res.statusCode!, headers: res.headers }
}

function overHttp2(session: http2.ClientHttp2Session): Send {
  return async ({ method = 'GET', path, headers = {}, body = '' }) => {
    const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: body === '' })
    if (body !== '') stream.end(body)
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    stream.close()
    return { status: Number(head[':status']), headers: head as Head['headers'] }
  }
}

const policy = "default-src 'none'; frame-ancestors 'none'; sandbox"

test('each response forbids scripts and has a request ID, over HTTP/1.1 and HTTP/2', async () => {
  const session = http2.connect(`http://127.0.0.1:${registry.listenPort}`)
  const ways: Record<string, Send> = { 'HTTP/1.1': overHttp1, 'HTTP/2': overHttp2(session) }
  try {
    for (const [way, send] of Object.entries(ways)) {
      for (const [status, ask] of everyKind()) {
        const answer = await send({ ...ask, headers: { ...ask.headers, 'x-request-id': 'asked-by-a-test' } })
        const what = `${ask.method ?? 'GET'} ${ask.path} over ${way}`
        assert.equal(answer.status, status, what)
        assert.equal(answer.headers['x-content-type-options'], 'nosniff', what)
        assert.equal(answer.headers['content-security-policy'], policy, what)
        assert.equal(answer.headers['x-request-id'], 'asked-by-a-test', what)
      }
    }
  } finally {
    session.destroy()
  }
})

test('responses with a blob or a range of a blob also forbid scripts', async () => {
  const { digest: page } = await registry.pusher.pushBlob('acme/app', '<script>alert(1)</script>')
  for (const [status, range] of [
    [200, {}],
    [206, { range: 'bytes=0-7' }],
  ] as const) {
    const { headers } = await registry.pusher.ok(status, 'GET', `acme/app/blobs/${page}`, { headers: range })
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['content-security-policy'], policy)
  }
})

test('responses to malformed requests forbid scripts', async () => {
  await using server = await serve({ requestTimeoutMs: 300, headersTimeoutMs: 300 })
  const head = 'GET /ping/v2/ping HTTP/1.1\r\n'
  const bytes: [status: number, text: string][] = [
    [400, 'nonsense\r\n\r\n'],
    [400, `${head}\r\n`],
    [400, `${head}host: a\r\ncontent-length: x\r\n\r\n`],
    [413, `POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1;${'x'.repeat(17_000)}\r\n`],
    [417, `${head}host: a\r\nexpect: the-unexpected\r\n\r\n`],
    [431, `${head}host: a\r\nx: ${'y'.repeat(17_000)}\r\n\r\n`],
  ]
  for (const [status, text] of bytes) {
    using connection = await connectRaw(server.port)
    connection.write(text)
    const [answer] = await connection.take(/^HTTP\/1\.1 \d{3} [\s\S]*?\r\n\r\n/)
    assert.ok(answer!.startsWith(`HTTP/1.1 ${status} `), answer)
    assert.match(answer!, /^X-Content-Type-Options: nosniff\r$/im)
    assert.match(answer!, /^Content-Security-Policy: default-src 'none';.* sandbox\r$/im)
  }
})

test('malformed bytes after a request do not interrupt the response to the request', async () => {
  using connection = await connectRaw(registry.listenPort)
  const authorization = `authorization: Bearer ${registry.operator.token}`
  connection.write(`GET /events/v2/stream HTTP/1.1\r\nhost: a\r\n${authorization}\r\n\r\n`)
  await connection.take(/^HTTP\/1\.1 200 [\s\S]*?\r\n\r\n/)
  connection.write('nonsense\r\n\r\n')
  await connection.closed
  assert.doesNotMatch(connection.received(), /HTTP\/1\.1 400/)
})

test('a path that only resembles an entry point gets 404 from the API', async () => {
  for (const path of [
    '/v2x',
    '/v22/',
    '/tokens',
    '/token/',
    '/oauth/token/',
    '/oauth/',
    '/healthz/',
    '//v2/',
    '/V2/',
  ]) {
    const answer = await registry.anonymous.get(path)
    assert.deepEqual(
      [answer.status, answer.body.message],
      [404, 'path not found; /docs lists the paths of the API'],
      path,
    )
  }
})

test('each request writes one log line and one measurement, at each entry point', async () => {
  const logged = captureLog('debug')
  await using server = await serve({}, { log: logged.log })
  const base = `http://127.0.0.1:${server.port}`
  const audience = new URL(server.url).host
  const token = await registry.tokenFor(registry.pusher.uid, { issuer: server.url, audience })
  const asks: [door: string, method: string, code: string, path: string, init?: RequestInit][] = [
    ['rest', 'pinfold.platform.ping.v2.PingService/Ping', 'OK', '/ping/v2/ping'],
    ['rest', '', 'NOT_FOUND', '/nowhere'],
    ['registry', 'GET base', '401', '/v2/'],
    ['registry', 'HEAD base', '200', '/v2/', { method: 'HEAD', headers: bearer(token) }],
    ['registry', 'GET token', '401', '/token'],
    ['documents', 'GET /healthz', '200', '/healthz?x=1'],
    ['documents', 'DELETE /healthz', '405', '/healthz', { method: 'DELETE' }],
    ['mcp', 'GET /mcp', 'UNIMPLEMENTED', '/mcp'],
    ['docs', 'GET /docs', '200', '/docs/errors'],
    ['mcp', 'POST /mcp', 'UNAUTHENTICATED', '/mcp', { method: 'POST', body: '{}' }],
    ['oauth', 'GET /oauth/token', '405', '/oauth/token'],
    ['oauth', 'POST /oauth/token', '400', '/oauth/token?x', { method: 'POST', headers: form, body: 'grant_type=x' }],
  ]
  for (const [index, [transport, method, code, path, init]] of asks.entries()) {
    const requestId = `request-${index}`
    const counted = await countOf(transport, code)
    const headers = { ...init?.headers, 'x-request-id': requestId }
    await (await fetch(base + path, { ...init, headers })).text()
    const line = await logged.until((one) => one.message === 'request' && one.requestId === requestId)
    assert.deepEqual([line.transport, line.method, line.code], [transport, method, code], path)
    assert.equal(line.level, transport === 'documents' ? 'debug' : 'info')
    assert.equal(line.remoteAddress, '127.0.0.1')
    assert.equal(line.caller, method === 'HEAD base' ? registry.pusher.uid : '')
    assert.equal(await countOf(transport, code), counted + 1, path)
  }
  assert.equal(logged.lines.filter(({ message }) => message === 'request').length, asks.length)
})

/** Number of requests that the metrics have counted for an entry point and a code. */
async function countOf(transport: string, code: string): Promise<number> {
  return (await measured())
    .filter(({ labels }) => labels.transport === transport && labels.code === code)
    .reduce((sum, { value }) => sum + value, 0)
}

type Measured = { labels: Record<string, string | number | undefined>; value: number }

/** Number of requests, by all labels. */
async function measured(): Promise<Measured[]> {
  const metric = registry.app.metrics.registry.getSingleMetric('pinfold_request_duration_seconds')!
  const { values } = (await metric.get()) as { values: (Measured & { metricName?: string })[] }
  return values.filter(({ metricName }) => metricName?.endsWith('_count'))
}

const verb = '(?:GET|HEAD|PUT|POST|PATCH|DELETE|OPTIONS|other)'
const closed: Record<string, RegExp> = {
  rest: /^(?:none|(?:[A-Z][A-Za-z]+\.)?[A-Z][A-Za-z]+)$/,
  grpc: /^(?:none|(?:[A-Z][A-Za-z]+\.)?[A-Z][A-Za-z]+)$/,
  registry: new RegExp(`^(?:none|${verb} (?:token|base|manifest|blob|uploads?|tags|referrers|(?:tag-)?history))$`),
  documents: new RegExp(`^${verb} /(?:healthz|readyz|metrics|openapi(?:-v1)?\\.json|\\.well-known/[a-z.-]+(?:/mcp)?)$`),
  oauth: new RegExp(`^${verb} /oauth(?:/token)?$`),
  docs: new RegExp(`^${verb} /docs$`),
  mcp: new RegExp(`^(?:${verb} /mcp|initialize|ping|notification|server/discover|tools/(?:list|call)|[A-Z][A-Za-z]+)$`),
}

test('metric labels come from fixed sets, for any client input and over each protocol', async () => {
  const session = http2.connect(`http://127.0.0.1:${registry.listenPort}`)
  using grpc = openGrpc(registry.listenPort)
  const paths = [
    '/v2/',
    '/v2/acme/app/tags/list',
    '/token',
    '/oauth/token',
    '/healthz',
    '/mcp',
    '/ping/v2/ping',
    '/invented-1',
  ]
  const hostile = { host: 'invented-2.example', 'user-agent': 'invented-3', 'x-forwarded-for': 'invented-4' }
  const overHttp2Hostile = (ask: Ask) => {
    return overHttp2(session)({ ...ask, headers: { ...ask.headers, ':authority': hostile.host, ...hostile } })
  }
  try {
    for (const method of ['BREW', 'PROPFIND', 'get', 'x'.repeat(100), 'invented-5']) {
      for (const path of paths) {
        const { status } = await overHttp2Hostile({ method, path })
        assert.ok([401, 404, 405].includes(status), `${method} ${path}: ${status}`)
      }
    }
    // The HTTP/1.1 parser knows the set of methods.
    for (const method of ['PROPFIND', 'MKCALENDAR', 'UNLINK']) {
      for (const path of paths) await overHttp1({ method, path: `${path}?invented-6=1`, headers: hostile })
    }
    for (const path of ['/invented.v7.Service/Do', '/pinfold.platform.ping.v2.PingService/Invented', '/invented-8']) {
      await grpc.send(path, Buffer.alloc(0), { metadata: { 'user-agent': 'invented-9' } })
    }
  } finally {
    session.destroy()
  }
  for (const { labels } of await measured()) {
    assert.match(String(labels.method), closed[String(labels.transport)]!)
    const isRpc = ['rest', 'grpc', 'mcp'].includes(String(labels.transport))
    assert.match(String(labels.code), isRpc ? /^[A-Z_]{2,}$/ : /^[2-5]\d\d$/)
  }
  const shown = await registry.app.metrics.registry.metrics()
  assert.doesNotMatch(shown, /invented|BREW|PROPFIND|xxxx/i)
})

test('a form that is not sent in time gets an error response, also over HTTP/2', async () => {
  await using server = await serve({ requestTimeoutMs: 200, headersTimeoutMs: 200 })
  const session = http2.connect(server.localUrl)
  try {
    const stream = session.request({ ':method': 'POST', ':path': '/oauth/token', ...form })
    stream.write('grant_type=')
    const closed = once(stream, 'close')
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    assert.equal(head[':status'], 408)
    let text = ''
    stream.on('data', (chunk) => {
      text += chunk
    })
    await closed
    assert.deepEqual(JSON.parse(text), { error: 'invalid_request' })
  } finally {
    session.destroy()
  }
  using http1 = await connectRaw(server.port)
  http1.write('POST /oauth/token HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n')
  http1.write(`content-type: ${form['content-type']}\r\n\r\ngrant`)
  const { status, head, body } = await takeResponse(http1)
  assert.equal(status, 408, head)
  assert.deepEqual(JSON.parse(body), { error: 'invalid_request' })
  await http1.closed
})
