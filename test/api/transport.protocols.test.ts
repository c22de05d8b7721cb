// Requests in protocols and codings that the API does not have: gRPC-Web, Connect, gRPC over HTTP/1 and compressed bodies.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { startPinfold } from '../support/pinfold.ts'

const pinfold = await startPinfold()
after(() => pinfold[Symbol.asyncDispose]())

const { createGroup } = GroupsService.method
const path = `/${GroupsService.typeName}/${createGroup.name}`
const message = toBinary(createGroup.input, create(createGroup.input, { group: { name: 'made' } }))
const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
const authorization = `Bearer ${pinfold.operator.token}`

const session = http2.connect(`http://127.0.0.1:${pinfold.port}`)
after(() => session.destroy())

type Got = { status: number; type: string | undefined; text: string }

async function overHttp2(method: string, type: string): Promise<Got> {
  const headers = { ':method': method, ':path': path, 'content-type': type, authorization }
  const stream = session.request(headers, { endStream: false })
  stream.end(framed)
  const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader]
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return { status: head[':status']!, type: head['content-type'], text: Buffer.concat(chunks).toString() }
}

async function overHttp1(type: string): Promise<Got> {
  const headers = { 'content-type': type, authorization }
  const answer = await fetch(pinfold.url + path, { method: 'POST', headers, body: framed })
  return { status: answer.status, type: answer.headers.get('content-type') ?? undefined, text: await answer.text() }
}

async function countGroups(): Promise<number> {
  return (await pinfold.operator.get('/iam/v2/groups?name=made')).body.groups.length
}

test('answers gRPC-Web, Connect and unknown types with 415, and does not run the method', async () => {
  const types = [
    'application/grpc-web',
    'application/grpc-web+proto',
    'application/grpc-web-text',
    'application/grpc+json',
    'application/grpcfoo',
    'application/proto',
    'application/json',
    'application/connect+proto',
  ]
  for (const type of types) {
    for (const got of [await overHttp2('POST', type), await overHttp1(type)]) {
      assert.deepEqual([got.status, got.type], [415, 'application/json'], type)
      const { code, message, details } = JSON.parse(got.text)
      assert.deepEqual([code, details[0].reason], [12, 'UNIMPLEMENTED'])
      assert.match(message, /^this path is only for gRPC over HTTP\/2 with the content type application\/grpc; /)
    }
  }
  assert.equal(await countGroups(), 0)
})

test('says that gRPC needs HTTP/2 if a proxy sends a call over HTTP/1', async () => {
  for (const type of ['application/grpc', 'application/grpc+proto']) {
    const { status, text } = await overHttp1(type)
    assert.equal(status, 415)
    assert.match(JSON.parse(text).message, /^a gRPC call needs HTTP\/2, and this one came over HTTP\/1; /)
  }
  assert.equal(await countGroups(), 0)
})

test('runs no gRPC method for an HTTP method other than POST', async () => {
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const { status, text } = await overHttp2(method, 'application/grpc')
    assert.deepEqual([status, JSON.parse(text).code], [405, 12])
  }
  assert.equal(await countGroups(), 0)
})

test('runs calls with each spelling of the content type of gRPC', async () => {
  for (const type of ['application/grpc', 'application/grpc+proto', 'application/grpc; a=b']) {
    assert.equal((await overHttp2('POST', type)).status, 200)
    assert.equal(await countGroups(), 1, type)
  }
})

test('answers a compressed body with 415 and the reason', async () => {
  const send = (encoding: string, body: Buffer) =>
    fetch(`${pinfold.url}/iam/v2/groups`, {
      method: 'POST',
      headers: { authorization, 'content-encoding': encoding },
      body,
    })
  const json = Buffer.from('{"name":"packed"}')
  for (const encoding of ['gzip', 'zstd', 'identity, gzip', 'GZIP']) {
    const answer = await send(encoding, gzipSync(json))
    const { code, message } = (await answer.json()) as { code: number; message: string }
    assert.deepEqual([answer.status, answer.headers.get('accept-encoding'), code], [415, 'identity', 3], encoding)
    assert.match(
      message,
      /^the body has the Content-Encoding ".+", which the API does not accept; send it uncompressed$/,
    )
  }
  assert.equal((await send('identity', json)).status, 200)
})

test('refuses a body with a repeated member', async () => {
  const headers = { authorization }
  const body = '{"name":"first","name":"second"}'
  const answer = await fetch(`${pinfold.url}/iam/v2/groups`, { method: 'POST', headers, body })
  assert.equal(answer.status, 400)
  const { message } = (await answer.json()) as { message: string }
  assert.equal(message, 'Invalid argument: body: is ambiguous: the member "name" occurs twice')
})

test('an error about a mask shows the path as it was sent', async () => {
  const { uid } = (await pinfold.operator.post('/iam/v2/groups', { name: 'masked' })).body
  const { body } = await pinfold.operator.post(`/registry/v2/repos/${uid}`, { name: 'web' })
  for (const mask of ['Description', 'syncConfig.fooBar', 'sync_config.foo_bar', 'syncConfig.Foo']) {
    const answer = await pinfold.operator.patch(`/registry/v2/repos/${body.uid}?updateMask=${mask}`, {})
    assert.equal(answer.body.message, `Invalid argument: updateMask: ${mask} is not a known field`)
  }
})
