// Common properties of responses: errors over both transports, request IDs, log lines, and documents of the server.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { create, type DescMethod } from '@bufbuild/protobuf'
import { startServer } from '#api/server.ts'
import { services } from '#api/services.ts'
import type { App } from '#app.ts'
import { type Config, readConfig } from '#config.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { createFailureLog } from '#lib/batches/failure-log.ts'
import { busy, isBusy } from '#lib/errors.ts'
import { captureLog } from '../support/log.ts'
import { clientOf, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { openGrpc, type RawGrpc } from '../support/raw-grpc.ts'
import { reflectionOf } from '../support/reflection.ts'

let pinfold: Pinfold
let grpc: RawGrpc
let group: Json
let repo: Json
const { getRepo, createRepo, updateRepo, listRepos } = ReposService.method

before(async () => {
  pinfold = await startPinfold()
  grpc = openGrpc(pinfold.port)
  group = await pinfold.seed.group()
  repo = await pinfold.seed.repo(group.uid, { name: 'web' })
})

after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

/** Another server on the same application, with other settings or parts. */
async function serve(settings: Partial<Config>, parts: Partial<App> = {}) {
  const { app, tokenFor } = pinfold
  const server = await startServer({ ...app, ...parts, config: { ...app.config, ...settings } })
  const token = await tokenFor(operatorUid, { issuer: server.url, audience: server.url })
  return {
    port: Number(new URL(server.url).port),
    url: server.url,
    metricsUrl: server.metricsUrl,
    token,
    operator: clientOf(server.url, token),
    [Symbol.asyncDispose]: () => server.close(),
  }
}

test('an error has the same code, message and details over gRPC and REST', async () => {
  const missing = `${group.uid}/0123456789abcdef`
  const path = '/registry/v2/repos'
  const stranger = await pinfold.tokenFor((await pinfold.seed.person()).uid)
  const { token } = pinfold.operator
  const cases: [name: string, rest: [string, string, Json?], rpc: [DescMethod, Json], http: number, token?: string][] =
    [
      ['no token', ['GET', `${path}/${repo.uid}`], [getRepo, { uid: repo.uid }], 401, ''],
      ['not allowed', ['GET', `${path}/${repo.uid}`], [getRepo, { uid: repo.uid }], 403, stranger],
      ['missing', ['GET', `${path}/${missing}`], [getRepo, { uid: missing }], 404],
      ['not a uid', ['GET', `${path}/nonsense`], [getRepo, { uid: 'nonsense' }], 400],
      [
        'a bad name',
        ['POST', `${path}/${group.uid}`, { name: 'A B' }],
        [createRepo, { parent: group.uid, repo: { name: 'A B' } }],
        400,
      ],
      [
        'a name taken',
        ['POST', `${path}/${group.uid}`, { name: 'web' }],
        [createRepo, { parent: group.uid, repo: { name: 'web' } }],
        409,
      ],
      [
        'a bad mask',
        ['PATCH', `${path}/${repo.uid}?update_mask=nonsense`, {}],
        [updateRepo, { repo: { uid: repo.uid }, updateMask: { paths: ['nonsense'] } }],
        400,
      ],
      ['a bad page size', ['GET', `${path}?page_size=-1`], [listRepos, { pageSize: -1 }], 400],
      [
        'not empty',
        ['DELETE', `/iam/v2/groups/${group.uid}`],
        [GroupsService.method.deleteGroup, { uid: group.uid }],
        400,
      ],
    ]
  for (const [name, [verb, url, body], [desc, request], http, as = token!] of cases) {
    const requestId = `case-${name.replaceAll(' ', '-')}`
    const client = clientOf(pinfold.url, as === '' ? undefined : as)
    const rest = await client.call(verb, url, body, { 'x-request-id': requestId })
    const metadata = { 'x-request-id': requestId }
    const rpc = await grpc.call(desc, create(desc.input, request as never), { token: as || undefined, metadata })
    assert.equal(rest.status, http, `${name}: ${rest.text}`)
    assert.ok(rest.body.details.length > 0, name)
    assert.deepEqual({ code: rpc.code, message: rpc.message, details: rpc.details }, rest.body, name)
  }
})

test('returns the request id of the client in the header, the error and the log line', async () => {
  const logged = captureLog()
  await using server = await serve({}, { log: logged.log })
  const given = 'trace.4bf92f35-77b3_01'
  const answer = await server.operator.call('GET', '/registry/v2/repos/nonsense', undefined, { 'x-request-id': given })
  assert.equal(answer.headers.get('x-request-id'), given)
  assert.equal(answer.body.details[0].metadata.requestId, given)
  const { time, ms, remoteAddress, ...line } = await logged.until(({ requestId }) => requestId === given)
  assert.deepEqual(line, {
    level: 'info',
    message: 'request',
    requestId: given,
    transport: 'rest',
    method: 'pinfold.platform.registry.v2.ReposService/GetRepo',
    code: 'INVALID_ARGUMENT',
    caller: operatorUid,
  })
  assert.equal(new Date(time).toISOString(), time)
  assert.equal(typeof ms, 'number')
  assert.match(remoteAddress, /127\.0\.0\.1$/)
})

test('a request without a valid request id gets a new one', async () => {
  const seen = new Set<string>()
  for (const given of [undefined, 'short', 'x'.repeat(65), 'with space in it', '<script>alert(1)</script>']) {
    const headers: Record<string, string> = given === undefined ? {} : { 'x-request-id': given }
    const answer = await pinfold.anonymous.call('GET', '/registry/v2/repos', undefined, headers)
    const id = answer.headers.get('x-request-id')!
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
    assert.equal(answer.body.details[0].metadata.requestId, id)
    seen.add(id)
  }
  assert.equal(seen.size, 5)
})

test('gRPC returns the request id with an error, and logs it', async () => {
  const logged = captureLog()
  await using server = await serve({}, { log: logged.log })
  using client = openGrpc(server.port)
  const request = create(getRepo.input, { uid: 'nonsense' })
  const metadata = { 'x-request-id': 'given-over-grpc' }
  const answer = await client.call(getRepo, request, { token: server.token, metadata })
  assert.equal(answer.trailers.get('x-request-id')[0], 'given-over-grpc')
  assert.equal(answer.details[0]!.metadata.requestId, 'given-over-grpc')
  const line = await logged.until(({ requestId }) => requestId === 'given-over-grpc')
  assert.deepEqual([line.transport, line.code, line.caller], ['grpc', 'INVALID_ARGUMENT', operatorUid])
})

test('a log line contains no token and no body', async () => {
  const logged = captureLog('debug')
  await using server = await serve({}, { log: logged.log })
  await server.operator.patch(`/registry/v2/repos/${repo.uid}`, { description: 'between you and me' })
  await server.operator.post(`/registry/v2/repos/${group.uid}?x=between-you-and-me`, '{"between you and me"')
  await logged.until(({ method, code }) => method?.endsWith('/CreateRepo') && code === 'INVALID_ARGUMENT')
  const text = JSON.stringify(logged.lines)
  assert.ok(!text.includes('you and me') && !text.includes('you-and-me'), text)
  assert.ok(!text.includes(server.token.slice(-20)))
})

test('a setting determines the domain of an ErrorInfo', async () => {
  await using server = await serve({ errorDomain: 'errors.example.com' })
  const { body } = await server.operator.get('/nowhere')
  assert.equal(body.details[0].domain, 'errors.example.com')
  assert.equal((await pinfold.operator.get('/nowhere')).body.details[0].domain, 'pinfold.dev')
})

test('returns NOT_FOUND as JSON for an unknown path, with and without a token', async () => {
  for (const path of ['/nowhere', '/registry/v3/repos', '/registry/v2', '/registry/v2/repos:nothing', '/%', '//']) {
    for (const client of [pinfold.operator, pinfold.anonymous]) {
      const { status, headers, body } = await client.get(path)
      assert.equal(status, 404, path)
      assert.equal(headers.get('content-type'), 'application/json')
      assert.equal(body.code, 5)
      assert.equal(body.details[0].reason, 'NOT_FOUND')
    }
  }
})

test('an error for the wrong HTTP method names the allowed methods', async () => {
  const cases: Record<string, [method: string, allow: string]> = {
    '/registry/v2/repos': ['PUT', 'DELETE, GET, HEAD, PATCH, POST'],
    [`/registry/v2/repos/${repo.uid}`]: ['PUT', 'DELETE, GET, HEAD, PATCH, POST'],
    '/ping/v2/ping': ['POST', 'GET, HEAD'],
    '/iam/v2/roleBindings:batchCreate': ['GET', 'POST'],
  }
  for (const [path, [method, allow]] of Object.entries(cases)) {
    const { status, headers, body } = await pinfold.operator.call(method, path, method === 'GET' ? undefined : {})
    assert.equal(status, 405, path)
    assert.equal(headers.get('allow'), allow, path)
    assert.equal(body.code, 12)
    assert.ok(body.message.includes(allow))
  }
})

test('reads a body as JSON with any content type', async () => {
  const path = `/registry/v2/repos/${repo.uid}`
  for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'application/xml', '']) {
    const description = `as ${type}`
    const body = JSON.stringify({ description })
    const answer = await pinfold.operator.call('PATCH', path, body, { 'content-type': type })
    assert.equal(answer.body.description, description, answer.text)
    assert.equal(answer.headers.get('content-type'), 'application/json')
  }
  const bytes = await pinfold.operator.call('PATCH', path, '\ufeff{}')
  assert.ok([200, 400].includes(bytes.status))
  const wrong = await pinfold.operator.call('PATCH', path, 'description=form', { 'content-type': 'application/json' })
  assert.equal(wrong.status, 400)
  assert.equal(wrong.body.details[1].fieldViolations[0].field, 'body')
})

test('preview paths have the same meaning as the current paths', async () => {
  for (const path of [`/registry/v2/repos/${repo.uid}`, '/registry/v2/repos?name=web', '/ping/v2/ping']) {
    const preview = await pinfold.operator.get(path.replace('/v2/', '/v2beta1/'))
    assert.equal(preview.status, 200)
    assert.deepEqual(preview.body, (await pinfold.operator.get(path)).body)
  }
  assert.equal((await pinfold.operator.get('/v2beta1/registry/repos')).status, 404)
})

test('preview packages have the same meaning as the current packages', async () => {
  const { getRepo } = ReposService.method
  const request = create(getRepo.input, { uid: repo.uid })
  const named = (typeName: string) => ({ ...getRepo, parent: { ...getRepo.parent, typeName } }) as typeof getRepo
  const call = (typeName: string) => grpc.call(named(typeName), request, { token: pinfold.operator.token })
  const today = await call(ReposService.typeName)
  assert.equal(today.code, 0)
  const preview = await call('pinfold.platform.registry.v2beta1.ReposService')
  assert.deepEqual([preview.code, preview.response], [0, today.response])
  assert.equal((await call('pinfold.platform.registry.v2beta2.ReposService')).code, 12)
})

test('a uid can be percent-encoded, and permissions are checked for its decoded form', async () => {
  const viewer = await pinfold.as((await pinfold.seed.person()).uid)
  const [parent, child] = repo.uid.split('/') as [string, string]
  const spelled = [
    `${parent}%2F${child}`,
    `${parent}%2f${child}`,
    `${parent}/%${child.charCodeAt(0).toString(16)}${child.slice(1)}`,
  ]
  for (const uid of spelled) {
    assert.equal((await pinfold.operator.get(`/registry/v2/repos/${uid}`)).body.uid, repo.uid, uid)
    assert.equal((await viewer.get(`/registry/v2/repos/${uid}`)).status, 403, uid)
  }
  for (const uid of [
    `${parent}%`,
    `${parent}%2`,
    `${parent}%zz${child}`,
    `${parent}%C0%AF${child}`,
    `${parent}%252F${child}`,
  ]) {
    assert.equal((await pinfold.operator.get(`/registry/v2/repos/${uid}`)).status, 400, uid)
  }
})

/** A database of which one function fails as `error`. */
function brokenDb(error: Error): App['db'] {
  const fail = () => Promise.reject(error)
  return { ...pinfold.app.db, get: fail, ping: fail }
}

test('a bug returns INTERNAL over both transports, and its cause is only in the log, with the request id', async () => {
  const logged = captureLog()
  const bug = new Error('no such column: hunter2', { cause: new TypeError('deeper hunter2') })
  await using server = await serve({}, { log: logged.log, db: brokenDb(bug) })
  using client = openGrpc(server.port)

  const rest = await server.operator.get(`/registry/v2/repos/${repo.uid}`)
  const metadata = { 'x-request-id': rest.headers.get('x-request-id')! }
  const rpc = await client.call(getRepo, create(getRepo.input, { uid: repo.uid }), { token: server.token, metadata })
  assert.equal(rest.status, 500)
  assert.equal(rest.body.code, 13)
  assert.equal(rest.body.details[0].reason, 'INTERNAL')
  assert.deepEqual({ code: rpc.code, message: rpc.message, details: rpc.details }, rest.body)
  for (const text of [rest.text, JSON.stringify([...rest.headers]), JSON.stringify([rpc, rpc.trailers.getMap()])]) {
    assert.ok(!text.includes('hunter2'), text)
  }
  await logged.until(({ transport }) => transport === 'grpc')
  const failures = logged.lines.filter(({ level }) => level === 'error')
  assert.equal(failures.length, 2)
  for (const { requestId, message, error } of failures) {
    assert.deepEqual([requestId, message], [metadata['x-request-id'], 'request failed'])
    assert.equal(error.message, 'no such column: hunter2')
    assert.equal(error.cause.message, 'deeper hunter2')
  }
})

test('without its database, the server is alive, not ready, and returns UNAVAILABLE', async () => {
  const logged = captureLog()
  const down = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:5432'), { code: 'ECONNREFUSED' })
  await using server = await serve({}, { log: logged.log, db: brokenDb(down) })
  using client = openGrpc(server.port)

  const rest = await server.operator.get(`/registry/v2/repos/${repo.uid}`)
  assert.equal(rest.status, 503)
  assert.equal(rest.body.code, 14)
  assert.equal(rest.headers.get('retry-after'), '1')
  assert.deepEqual(rest.body.details[1], { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1s' })
  const rpc = await client.call(getRepo, create(getRepo.input, { uid: repo.uid }), { token: server.token })
  assert.equal(rpc.code, 14)
  assert.ok(!rest.text.includes('10.0.0.1') && !rpc.message.includes('10.0.0.1'))

  assert.equal((await server.operator.get('/healthz')).status, 200)
  const ready = await server.operator.get('/readyz')
  assert.deepEqual([ready.status, ready.text], [503, 'the database is unavailable\n'])
})

test('the health check ends after 2 s if the database does not respond', async () => {
  const db = { ...brokenDb(new Error('unused')), ping: () => new Promise<never>(() => {}) }
  await using server = await serve({}, { log: captureLog().log, db })
  const ready = await server.operator.get('/readyz')
  assert.deepEqual([ready.status, ready.text], [503, 'the database did not respond within 2 s\n'])
})

test('names the full disk of its database in responses and in the health check', async () => {
  const logged = captureLog()
  const full = Object.assign(new Error('could not extend file "base/5/1": No space left on device'), { code: '53100' })
  await using server = await serve({}, { log: logged.log, db: brokenDb(full) })
  using client = openGrpc(server.port)

  const text = 'the request failed, because the disk of the database is full; retry after the operator has freed space'
  const rest = await server.operator.get(`/registry/v2/repos/${repo.uid}`)
  assert.deepEqual([rest.status, rest.body.code, rest.body.message], [503, 14, text])
  assert.equal(rest.headers.get('retry-after'), '1')
  const rpc = await client.call(getRepo, create(getRepo.input, { uid: repo.uid }), { token: server.token })
  assert.deepEqual([rpc.code, rpc.message], [14, text])
  const ready = await server.operator.get('/readyz')
  assert.deepEqual([ready.status, ready.text], [503, 'the disk of the database is full\n'])
})

test('an overloaded server returns a retry time, and logs no error', async () => {
  const logged = captureLog()
  const tooMuch = busy('all connections to the database are in use', new Error('timeout exceeded'))
  const db = { ...brokenDb(tooMuch), all: () => Promise.reject(tooMuch) }
  const failures = createFailureLog(logged.log, isBusy)
  await using server = await serve({}, { log: logged.log, failures, db })
  using client = openGrpc(server.port)
  const rest = await server.operator.get(`/registry/v2/repos/${repo.uid}`)
  assert.deepEqual([rest.status, rest.body.code, rest.headers.get('retry-after')], [503, 14, '1'])
  assert.equal(rest.body.details[0].reason, 'TOO_BUSY')
  const rpc = await client.call(getRepo, create(getRepo.input, { uid: repo.uid }), { token: server.token })
  assert.equal(rpc.code, 14)
  await logged.until(({ transport }) => transport === 'grpc')
  const told = logged.lines.filter(({ message }) => / failed$/.test(message))
  assert.deepEqual(
    told.map(({ level, count, reason }) => [level, count, reason]),
    [['warn', 1, 'timeout exceeded']],
    'the other one is counted',
  )
})

test('health and readiness need no token, and accept only read requests', async () => {
  for (const path of ['/healthz', '/readyz', '/healthz?verbose=1']) {
    const { status, text } = await pinfold.anonymous.get(path)
    assert.deepEqual([status, text], [200, 'ok\n'], path)
  }
  const posted = await pinfold.anonymous.post('/healthz', {})
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  const head = await pinfold.anonymous.call('HEAD', '/healthz')
  assert.deepEqual([head.status, head.text], [200, ''])
})

test('the metrics count requests by transport, method and code, and contain no resource names', async () => {
  const { operator, anonymous } = pinfold
  const labels = '{transport="rest",method="GetRepo",code="NOT_FOUND"}'
  const countOf = async () => {
    const { text } = await operator.get('/metrics')
    return Number(text.split(`pinfold_request_duration_seconds_count${labels} `)[1]?.split('\n')[0] ?? 0)
  }
  const earlier = await countOf()
  await operator.get(`/registry/v2/repos/${group.uid}/0123456789abcdef`)
  assert.equal(await countOf(), earlier + 1)
  await grpc.call(PingService.method.ping, create(PingService.method.ping.input))
  await anonymous.get('/nowhere/at/all')

  const { text, headers } = await operator.get('/metrics')
  assert.match(headers.get('content-type')!, /^text\/plain/)
  assert.match(text, /_count\{transport="grpc",method="Ping",code="OK"\} \d+/)
  assert.match(text, /_count\{transport="rest",method="none",code="NOT_FOUND"\} \d+/)
  assert.match(text, /^pinfold_requests_in_flight \d+$/m)
  assert.match(text, /^process_cpu_seconds_total /m)
  for (const secret of [group.uid, operatorUid, 'web', 'nowhere']) assert.ok(!text.includes(secret), secret)
})

test('only the operator and holders of the configured token can read the metrics', async () => {
  const metricsToken = 'a-scraper-reads-this'
  await using server = await serve({ metricsToken })
  const ask = async (authorization?: string) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
    const answer = await clientOf(server.url, undefined).call('GET', '/metrics', undefined, headers)
    if (answer.status !== 200) assert.doesNotMatch(answer.text, /pinfold_/)
    return answer.status
  }
  const owner = await pinfold.seed.member(group.uid, roleUids.owner)
  assert.deepEqual(
    [
      await ask(),
      await ask('Bearer nonsense'),
      await ask(`Bearer ${metricsToken}x`),
      await ask(`Basic ${metricsToken}`),
      await ask(`Bearer ${await pinfold.tokenFor(owner.uid, { issuer: server.url, audience: server.url })}`),
      await ask(`Bearer ${server.token}`),
      await ask(`Bearer ${metricsToken}`),
    ],
    [401, 401, 401, 401, 403, 200, 200],
  )
  const { headers } = await clientOf(server.url, undefined).get('/metrics')
  assert.equal(headers.get('www-authenticate'), 'Bearer')
  // Without a token in the settings, an empty token is refused.
  assert.equal((await pinfold.anonymous.call('GET', '/metrics', undefined, { authorization: 'Bearer ' })).status, 401)
})

test('the metrics can have their own address, without a token and without other endpoints', async () => {
  await using server = await serve({ metricsListen: { host: '127.0.0.1', port: 0 } })
  const own = clientOf(server.metricsUrl!.replace(/\/metrics$/, ''), undefined)
  assert.equal((await server.operator.get('/metrics')).status, 404)
  const answer = await own.get('/metrics?x=1')
  assert.equal(answer.status, 200)
  assert.match(answer.text, /^pinfold_requests_in_flight \d+$/m)
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  for (const path of ['/', '/healthz', '/registry/v2/repos', '/v2/', '/metrics/']) {
    assert.equal((await own.get(path)).status, 404, path)
  }
  assert.equal((await own.post('/metrics')).status, 405)
})

test('the metrics can be switched off', async () => {
  await using server = await serve({ metrics: false, metricsListen: { host: '127.0.0.1', port: 0 } })
  assert.deepEqual([(await server.operator.get('/metrics')).status, server.metricsUrl], [404, undefined])
})

test('security.txt contains the configured contact, and never expires', async () => {
  const path = '/.well-known/security.txt'
  assert.equal((await pinfold.anonymous.get(path)).status, 404)
  const now = new Date('2026-03-01T12:00:00.000Z')
  await using server = await serve({ securityContact: 'mailto:security@example.com' }, { clock: () => now })
  const { status, text, headers } = await clientOf(server.url, undefined).get(path)
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/plain; charset=utf-8'])
  const lines = [
    'Contact: mailto:security@example.com',
    'Expires: 2026-05-30T12:00:00.000Z',
    `Canonical: ${server.url}${path}`,
  ]
  assert.equal(text, `${lines.join('\n')}\n`)
  for (const wrong of ['security@example.com', 'http://example.com', 'mailto:a@b\nContact: x', 'javascript:1']) {
    assert.throws(() => readConfig({ PINFOLD_SECURITY_CONTACT: wrong }), /PINFOLD_SECURITY_CONTACT must be/, wrong)
  }
})

test('each version has an OpenAPI document, with the URL of this server', async () => {
  for (const [path, repos, foreign] of [
    ['/openapi.json', '/registry/v2/repos', '/registry/v1/repos'],
    ['/openapi-v1.json', '/registry/v1/repos', '/registry/v2/repos'],
  ] as const) {
    const { status, body } = await pinfold.anonymous.get(path)
    assert.equal(status, 200)
    assert.match(body.openapi, /^3\.1\./)
    assert.deepEqual(body.servers, [{ url: pinfold.url }])
    assert.ok(body.paths[repos].get)
    assert.equal(body.paths[foreign], undefined)
    assert.ok(body.paths['/sts/exchange'].post, 'both versions sign in the same way')
  }
})

test('returns UNIMPLEMENTED for an unknown gRPC method or service', async () => {
  for (const path of ['/pinfold.platform.ping.v2.PingService/Pong', '/nobody.Service/Do', '/', '/x']) {
    const { code, message, details } = await grpc.send(path, Buffer.alloc(0), { token: pinfold.operator.token })
    assert.deepEqual([code, message], [12, `the server does not implement the method ${path}`])
    assert.deepEqual(
      details.map((detail) => detail['@type']),
      ['type.googleapis.com/google.rpc.ErrorInfo'],
    )
  }
})

test('refuses bytes that are not a valid gRPC message', async () => {
  const { token } = pinfold.operator
  const path = `/${ReposService.typeName}/GetRepo`
  const answer = await grpc.send(path, Buffer.from([0x0a, 0xff]), { token })
  assert.notEqual(answer.code, 0)
  assert.equal((await grpc.call(getRepo, create(getRepo.input, { uid: repo.uid }), { token })).code, 0)
})

test('gRPC health checks return SERVING', async () => {
  const { code, bytes } = await grpc.send('/grpc.health.v1.Health/Check', Buffer.alloc(0))
  assert.equal(code, 0)
  assert.deepEqual([...bytes!], [0x08, 1])
})

test('gRPC reflection lists and describes each service, in both versions of reflection', async () => {
  for (const version of ['v1', 'v1alpha']) {
    const reflection = reflectionOf(pinfold.port, version)
    const names = await reflection.services()
    for (const { desc } of services) assert.ok(names.includes(desc.typeName), `${version}: ${desc.typeName}`)

    const protos = await reflection.files('pinfold.platform.registry.v2.ReposService')
    const found = protos.flatMap((file) => file.service).find(({ name }) => name === 'ReposService')
    assert.deepEqual(
      found?.method.map(({ name }) => name),
      ReposService.methods.map(({ name }) => name),
    )
  }
})

test('gRPC reflection can be switched off', async () => {
  await using server = await serve({ reflection: false })
  await assert.rejects(reflectionOf(server.port).services(), { code: 12 })
})

test('HEAD works wherever GET works, without a body', async () => {
  const { token } = pinfold.operator
  const headers = { authorization: `Bearer ${token}` }
  const paths = [
    `/registry/v2/repos/${repo.uid}`,
    '/registry/v2/repos',
    '/iam/v1/groups',
    '/openapi.json',
    '/token?service=x',
    '/v2/',
    '/healthz',
    '/.well-known/openid-configuration',
    '/nobody/v2/things',
  ]
  for (const path of paths) {
    const [got, head] = await Promise.all(
      ['GET', 'HEAD'].map((method) => fetch(`${pinfold.url}${path}`, { method, headers })),
    )
    assert.equal(head!.status, got!.status, path)
    for (const name of ['content-type', 'etag', 'cache-control'])
      assert.equal(head!.headers.get(name), got!.headers.get(name), `${path} ${name}`)
    const [body, none] = await Promise.all([got!.text(), head!.text()])
    assert.ok(body !== '' || path === '/healthz', path)
    assert.equal(none, '', path)
  }
  const deleted = await fetch(`${pinfold.url}/ping/v2/ping`, { method: 'DELETE', headers })
  assert.deepEqual([deleted.status, deleted.headers.get('allow')], [405, 'GET, HEAD'])
})

test('HEAD of a stream returns its headers at once', async () => {
  const headers = { authorization: `Bearer ${pinfold.operator.token}` }
  const head = await fetch(`${pinfold.url}/events/v2/stream?group=${group.uid}`, { method: 'HEAD', headers })
  assert.deepEqual([head.status, head.headers.get('content-type')], [200, 'text/event-stream'])
})

test('HEAD of a refused stream returns the status of GET', async () => {
  const headers = { authorization: `Bearer ${pinfold.operator.token}` }
  for (const [query, status] of [
    ['after=nonsense', 400],
    ['after=00000000-0000-4000-8000-000000000000', 400],
    [`group=${'0'.repeat(40)}`, 404],
  ] as const) {
    const url = `${pinfold.url}/events/v2/stream?${query}`
    const [got, head] = await Promise.all(['GET', 'HEAD'].map((method) => fetch(url, { method, headers })))
    assert.deepEqual([got!.status, head!.status], [status, status], query)
    await Promise.all([got!.text(), head!.text()])
  }
})

test('an error over REST names the field in the spelling of the request', async () => {
  const path = `/registry/v2/repos/${repo.uid}`
  const cases: [body: Json, text: string][] = [
    [{ activeTags: 5 }, 'activeTags: must be a list'],
    [{ active_tags: 5 }, 'active_tags: must be a list'],
  ]
  for (const [body, text] of cases) {
    const answer = await pinfold.operator.patch(path, body)
    assert.equal(answer.body.message, `Invalid argument: ${text}`)
    assert.equal(answer.body.details[1].fieldViolations[0].field, 'active_tags')
  }
  const listed = await pinfold.operator.get('/registry/v2/repos?pageSize=-1')
  assert.match(listed.body.message, /^Invalid argument: pageSize: /)
})
