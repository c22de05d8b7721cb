// Each path stops reading endless bodies, for each caller and over each protocol.
import assert from 'node:assert/strict'
import http2 from 'node:http2'
import { after, before, test } from 'node:test'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import type { Json } from '../support/pinfold.ts'
import { connectRaw } from '../support/raw-http.ts'
import { startHasty, startRegistry, type TestRegistry, types } from '../support/registry.ts'

type Ask = { method: string; path: string; headers?: Record<string, string> }

let registry: TestRegistry
let asks: Ask[]
let hasty: Awaited<ReturnType<typeof startHasty>>
let session: http2.ClientHttp2Session

before(async () => {
  registry = await startRegistry()
  hasty = await startHasty(registry, { requestTimeoutMs: 300, headersTimeoutMs: 300 })
  session = http2.connect(`http://127.0.0.1:${hasty.port}`)
  await registry.pusher.pushImage('acme/app', 'v1')
  const { headers: started } = await registry.pusher.ok(202, 'POST', 'acme/app/blobs/uploads/')
  const upload = String(started.location)
  const repo: Json = await registry.seed.repo(registry.org.uid)
  const api = { authorization: `Bearer ${registry.operator.token}` }
  const push = { authorization: `Bearer ${registry.pusher.token}` }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  asks = [
    { method: 'GET', path: '/healthz' },
    { method: 'POST', path: '/readyz' },
    { method: 'GET', path: '/openapi.json' },
    { method: 'GET', path: '/metrics' },
    { method: 'GET', path: '/.well-known/jwks.json' },
    { method: 'GET', path: '/oauth/token' },
    { method: 'POST', path: '/oauth/token', headers: form },
    { method: 'POST', path: '/sts/exchange', headers: form },
    { method: 'POST', path: '/auth/v1/register' },
    { method: 'GET', path: '/nowhere' },
    { method: 'POST', path: '/nowhere' },
    { method: 'GET', path: '/ping/v2/ping' },
    { method: 'DELETE', path: '/ping/v2/ping' },
    { method: 'GET', path: '/registry/v2/repos' },
    { method: 'POST', path: `/registry/v2/repos/${registry.org.uid}` },
    { method: 'GET', path: `/registry/v2/repos/${repo.uid}`, headers: api },
    { method: 'POST', path: `/registry/v2/repos/${registry.org.uid}`, headers: api },
    { method: 'GET', path: '/events/v2/stream', headers: api },
    { method: 'GET', path: '/token' },
    { method: 'POST', path: '/token' },
    { method: 'GET', path: '/v2/' },
    { method: 'GET', path: '/v2/', headers: push },
    { method: 'GET', path: '/v2/acme/app/manifests/v1', headers: push },
    { method: 'PUT', path: '/v2/acme/app/manifests/v1' },
    { method: 'PUT', path: '/v2/acme/app/manifests/v1', headers: { ...push, 'content-type': types.image } },
    { method: 'DELETE', path: '/v2/acme/app/manifests/none', headers: push },
    { method: 'GET', path: '/v2/acme/app/tags/list', headers: push },
    { method: 'POST', path: '/v2/acme/app/blobs/uploads/' },
    // An upload has no time limit, but a path that only looks like an upload has one.
    { method: 'PATCH', path: upload },
    { method: 'GET', path: upload, headers: push },
    { method: 'TRACE', path: upload, headers: push },
    { method: 'PATCH', path: `${upload.slice(0, -3)}xyz`, headers: push },
  ]
})

after(async () => {
  session.destroy()
  await hasty[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
})

test('stops reading endless bodies over HTTP/1.1', async () => {
  const ended = asks.map(async ({ method, path, headers = {} }) => {
    using connection = await connectRaw(hasty.port)
    const lines = Object.entries({ host: 'a', 'transfer-encoding': 'chunked', ...headers })
    connection.write(
      `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    )
    // Sends data regularly, so only the total time limit can end the request.
    const drip = setInterval(() => connection.write('1\r\n{\r\n'), 20)
    await connection.closed.finally(() => clearInterval(drip))
  })
  await Promise.all(ended)
  await idle()
})

test('stops reading endless bodies over HTTP/2', async () => {
  const ended = asks.map(({ method, path, headers = {} }) => endless({ ':method': method, ':path': path, ...headers }))
  await Promise.all(ended)
  await idle()
})

test('stops reading endless messages over gRPC', async () => {
  const getRepo = `/${ReposService.typeName}/GetRepo`
  const calls: [path: string, token?: string | undefined][] = [
    [getRepo],
    [getRepo, registry.operator.token],
    ['/pinfold.platform.oidc.v1.SecurityTokenService/Exchange'],
    ['/nobody.Service/Do'],
    ['/grpc.health.v1.Health/Check'],
    ['/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'],
  ]
  const ended = calls.map(([path, token]) => {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const type = { 'content-type': 'application/grpc', te: 'trailers' }
    return endless({ ':method': 'POST', ':path': path, ...type, ...authorization }, Buffer.from([0, 0, 1, 0, 0]))
  })
  await Promise.all(ended)
})

/** Resolves once the server has ended the stream, although its body continues. */
function endless(headers: http2.OutgoingHttpHeaders, first: Buffer | string = '{'): Promise<void> {
  const stream = session.request(headers, { endStream: false })
  stream.on('error', () => {}) // a stopped stream also counts as ended
  stream.resume()
  stream.write(first)
  return new Promise((resolve) => {
    // `close` would wait for written data, which no one reads any more.
    const drip = setInterval(() => {
      if (stream.writable && !stream.closed) stream.write('x')
      else if (stream.closed || stream.destroyed) {
        clearInterval(drip)
        resolve()
      }
    }, 20)
    drip.unref()
  })
}

/** The server is not working on any of the requests. */
async function idle(): Promise<void> {
  const metric = registry.app.metrics.inFlight
  for (let left = 1, tries = 0; left > 0 && tries < 500; tries++) {
    left = (await metric.get()).values[0]!.value
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  assert.equal((await metric.get()).values[0]!.value, 0)
}
