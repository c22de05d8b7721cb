// Hostile requests that try to end the process, to fill its memory or to keep it busy.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { noMinutePasses } from '../support/times.ts'

const { exchange } = SecurityTokenService.method
const path = `/${SecurityTokenService.typeName}/${exchange.name}`

test('an error with half a surrogate pair is sent, and does not stop the process', async () => {
  await using pinfold = await startPinfold()
  using grpc = openGrpc(pinfold.port)
  const request = create(exchange.input, { aud: [pinfold.url], cap: [`${'x'.repeat(63)}😀`] })
  const { code, message } = await grpc.call(exchange, request)
  assert.deepEqual([code, message.isWellFormed()], [3, true])
})

test('an error about a very long text keeps the connection usable', async () => {
  await using pinfold = await startPinfold()
  using grpc = openGrpc(pinfold.port)
  const { createGroup } = GroupsService.method
  const token = pinfold.operator.token
  const ask = (parent: string) => {
    return grpc.call(createGroup, create(createGroup.input, { parent, group: { name: 'web' } }), { token })
  }
  assert.equal((await ask('x'.repeat(300_000))).code, 5)
  assert.equal((await ask('x')).code, 5)
  assert.equal((await ask('')).code, 0)
})

test('stops a request that never ends', async () => {
  await using pinfold = await startPinfold({ requestTimeoutMs: 200 })
  const session = http2.connect(`http://127.0.0.1:${pinfold.port}`)
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
  const stream = session.request(headers)
  stream.on('error', () => {})
  stream.write(Buffer.from([0, 0, 0, 16, 0, 1, 2, 3]))
  await once(stream, 'close')
  assert.equal(stream.rstCode, http2.constants.NGHTTP2_CANCEL)
  session.destroy()
})

test('verifies the token again if the message of a call arrives long after its headers', async () => {
  await using pinfold = await startPinfold()
  const { uid } = await pinfold.seed.group()
  const member = await pinfold.seed.member(uid, roleUids.viewer)
  const { getGroup } = GroupsService.method
  const session = http2.connect(`http://127.0.0.1:${pinfold.port}`)
  const headers = {
    ':method': 'POST',
    ':path': `/${GroupsService.typeName}/${getGroup.name}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${await pinfold.tokenFor(member.uid)}`,
  }
  const message = toBinary(getGroup.input, create(getGroup.input, { uid }))
  const begin = async () => {
    const stream = session.request(headers)
    await new Promise((resolve) => session.ping(resolve))
    return stream
  }
  const finish = async (stream: http2.ClientHttp2Stream) => {
    let status: unknown
    const note = (said: http2.IncomingHttpHeaders) => {
      status = said['grpc-status'] ?? status
    }
    stream.on('response', note).on('trailers', note).resume()
    stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]))
    await once(stream, 'close')
    return status
  }
  assert.equal(await finish(await begin()), '0')
  const late = await begin()
  await pinfold.operator.delete(`/iam/v2/identities/${member.uid}`)
  await sleep(200)
  assert.equal(await finish(late), '16')
  session.destroy()
})

const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ family }) => family === 'IPv6'))

test('counts exchanges by the network address of the client, in any notation', { skip: !hasIPv6 }, async () => {
  await using pinfold = await startPinfold({
    ...noMinutePasses,
    listen: { host: '::', port: 0 },
    exchangesPerSource: 2,
  })
  const seen: number[] = []
  for (let connection = 0; connection < 3; connection++) {
    using grpc = openGrpc(pinfold.port)
    const { code } = await grpc.call(exchange, create(exchange.input, { aud: [pinfold.url] }))
    seen.push(code)
  }
  assert.deepEqual(seen, [16, 16, 8])
})

test('an error names the first hundred of many invalid values', async () => {
  await using pinfold = await startPinfold()
  const { uid } = await pinfold.seed.group()
  const environment = Object.fromEntries(Array.from({ length: 15_000 }, (_, i) => [`PINFOLD_${i}`, '']))
  const contents = { runtimeKeyring: Array.from({ length: 5000 }, () => ({ name: '.', content: 'x' })) }
  for (const customOverlay of [{ environment }, { contents }]) {
    const { status, body } = await pinfold.operator.post(`/registry/v2/repos/${uid}`, { name: 'a', customOverlay })
    const named = body.details.find((detail: { fieldViolations?: unknown[] }) => detail.fieldViolations)
    assert.deepEqual([status, named.fieldViolations.length], [400, 100])
  }
})

test('reads a form up to 64 KiB', async () => {
  await using pinfold = await startPinfold()
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const { status } = await pinfold.anonymous.call('POST', '/sts/exchange', `cap=${'x'.repeat(65_536)}`, type)
  assert.equal(status, 413)
})

test('concurrently reset calls do not stop the process, whatever the method', async () => {
  await using pinfold = await startPinfold()
  const session = http2.connect(`http://127.0.0.1:${pinfold.port}`)
  await once(session, 'connect')
  const type = { 'content-type': 'application/grpc', te: 'trailers' }
  const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_PROTOCOL_ERROR } = http2.constants
  for (const called of ['/nobody.Service/Do', path, '/grpc.health.v1.Health/Check', '/ping/v2/ping']) {
    for (const headers of [{}, type, { 'content-type': 'application/grpc+x' }, { ...type, 'grpc-timeout': 'x' }]) {
      for (const code of [NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_PROTOCOL_ERROR]) {
        const stream = session.request({ ':method': 'POST', ':path': called, ...headers })
        stream.on('error', () => {}).close(code)
      }
    }
  }
  // One packet contains the calls and their resets. A response to the next request proves that the server processed them.
  await new Promise((resolve) => session.ping(resolve))
  assert.equal((await pinfold.anonymous.get('/healthz')).status, 200)
  session.destroy()
})

test('drops an HTTP/2 response that the client does not read, for REST, gRPC and reflection', async () => {
  // Long enough for a busy machine to answer the headers.
  await using pinfold = await startPinfold({ requestTimeoutMs: 2000 })
  const grpcHeaders = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' }
  const empty = Buffer.alloc(5)
  const reflect = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
  const asks: [http2.OutgoingHttpHeaders, Buffer | undefined][] = [
    [{ ':path': '/openapi.json' }, undefined],
    [{ ':path': '/ping/v2/ping' }, undefined],
    [{ ...grpcHeaders, ':path': `/${PingService.typeName}/Ping` }, empty],
    // Asks for the list of services.
    [{ ...grpcHeaders, ':path': reflect }, Buffer.from([0, 0, 0, 0, 2, 0x3a, 0])],
  ]
  const closed = asks.map(async ([headers, message]) => {
    const session = http2.connect(`http://127.0.0.1:${pinfold.port}`, { settings: { initialWindowSize: 0 } })
    session.on('error', () => {})
    await once(session, 'remoteSettings')
    const stream = session.request(headers, { endStream: message === undefined }).on('error', () => {})
    const over = new Promise((resolve) => stream.once('close', resolve))
    if (message) stream.end(message)
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    assert.equal(head[':status'], 200, String(headers[':path']))
    await over
    session.destroy()
  })
  await Promise.all(closed)
  assert.equal((await pinfold.anonymous.get('/healthz')).status, 200)
})
