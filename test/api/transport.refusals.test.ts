// Requests refused at the port before a method is found: exact bytes, and errors in the format of the API or the registry.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import grpc from '@grpc/grpc-js'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { connectRaw, takeResponse } from '../support/raw-http.ts'
import { startScene } from '../support/scene.ts'

const short = { requestTimeoutMs: 300, headersTimeoutMs: 300 }
const { pinfold, operator } = await startScene(short)
const { port } = pinfold
after(() => pinfold[Symbol.asyncDispose]())

const info = 'type.googleapis.com/google.rpc.ErrorInfo'

/** The error body that each API error has. */
function assertStructured(text: string, code: number): void {
  const body = JSON.parse(text) as Json
  assert.equal(body.code, code, text)
  assert.ok(body.message.length > 10)
  assert.equal(body.details[0]['@type'], info)
  assert.equal(body.details[0].domain, 'pinfold.dev')
  assert.match(body.details[0].metadata.requestId, /^[0-9a-f-]{36}$/)
}

const get = 'GET /ping/v2/ping HTTP/1.1\r\nhost: a\r\n'
const patch = `PATCH /iam/v2/groups/${'0'.repeat(40)} HTTP/1.1\r\nhost: a\r\n`

/** The bytes of the request, the status of the response, and the error code in its body. */
const refusals: Record<string, [text: string, status: number, code: number]> = {
  'no request at all': ['nonsense\r\n\r\n', 400, 3],
  'a line without a version': ['GET /healthz\r\n\r\n', 505, 12],
  'a greeting of TLS': ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 3],
  'no Host': ['GET /ping/v2/ping HTTP/1.1\r\n\r\n', 400, 3],
  'two Hosts': ['GET /ping/v2/ping HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n', 400, 3],
  'two Hosts with other fields between': ['GET /ping/v2/ping HTTP/1.1\r\nhost: a\r\nx: y\r\nHOST: b\r\n\r\n', 400, 3],
  'two Hosts over HTTP/1.0': ['GET /ping/v2/ping HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n', 400, 3],
  'a Host that is not the host of the target': ['GET http://b/ping/v2/ping HTTP/1.1\r\nhost: a\r\n\r\n', 400, 3],
  'a length that is no number': [`${get}content-length: x\r\n\r\n`, 400, 3],
  'two lengths': [`${get}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400, 3],
  'a length and chunks': [`${get}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`, 400, 3],
  'a chunk without a size': [`POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno\r\n`, 400, 3],
  'a header without a name': [`${get}: x\r\n\r\n`, 400, 3],
  'a head that does not end': [`${get}x: y`, 408, 4],
  'a first line that does not end': ['GET /pi', 408, 4],
  'a word that could begin HTTP/2': ['PR', 408, 4],
  'extensions of a chunk': [
    `POST /ping HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1;${'x'.repeat(17_000)}\r\n`,
    413,
    3,
  ],
  'a long path': [`GET /${'y'.repeat(17_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, 414, 3],
  'a long path with a query': [`GET /${'y'.repeat(17_000)}?a=b HTTP/1.1\r\nhost: a\r\n\r\n`, 414, 3],
  'a long query': [`GET /ping/v2/ping?${'y'.repeat(132_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, 414, 3],
  'something expected': [`${get}expect: the-unexpected\r\n\r\n`, 417, 3],
  'large headers': [`${get}x: ${'y'.repeat(17_000)}\r\n\r\n`, 431, 3],
  'many headers': [`${get}${Array.from({ length: 1500 }, (_, i) => `x-${i}: yyyyyyyy\r\n`).join('')}\r\n`, 431, 3],
  'a head without an end': [`${get}x: ${'y'.repeat(400_000)}`, 431, 3],
  'a line without an end': [`GET /${'y'.repeat(400_000)}`, 431, 3],
  'a tunnel': ['CONNECT example.com:443 HTTP/1.1\r\nhost: a\r\n\r\n', 501, 12],
  'HTTP/3': ['GET /ping/v2/ping HTTP/3.0\r\nhost: a\r\n\r\n', 505, 12],
  'HTTP/2 by name': ['GET /ping/v2/ping HTTP/2.0\r\nhost: a\r\n\r\n', 505, 12],
  'HTTP/2 by name, with a body': ['POST /x HTTP/2.0\r\nhost: a\r\ncontent-length: 5\r\n\r\n12', 505, 12],
  'HTTP/0.9 by name': ['GET /ping/v2/ping HTTP/0.9\r\n\r\n', 505, 12],
}

for (const [what, [text, status, code]] of Object.entries(refusals)) {
  test(`HTTP/1.1: ${what} returns ${status}`, async () => {
    using connection = await connectRaw(port)
    connection.write(Buffer.from(text, 'latin1'))
    const answer = await takeResponse(connection)
    assert.equal(answer.status, status, answer.head)
    assert.match(answer.head, /^content-type: application\/json\r$/im)
    assert.match(answer.head, /^x-content-type-options: nosniff\r$/im)
    assertStructured(answer.body, code)
    if (![417].includes(status)) {
      connection.end()
      await connection.closed
    }
    assert.equal((await operator.get('/ping/v2/ping')).status, 200)
  })
}

test('refuses a body with more than 16,384 small chunks before reading all of it', async () => {
  // The time limit of the other server could expire while a busy machine reads two MiB.
  const { pinfold: patient, operator } = await startScene()
  await using _ = patient
  const small = `1\r\n \r\n`
  const send = async (chunk: string, count: number) => {
    using connection = await connectRaw(patient.port)
    const head = `POST /iam/v2/groups/ HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${operator.token}\r\n`
    connection.write(`${head}transfer-encoding: chunked\r\n\r\n${chunk.repeat(count)}0\r\n\r\n`)
    return await takeResponse(connection)
  }
  assert.equal((await send(small, 16_384)).status, 400)
  const { status, head, body } = await send(small, 16_385)
  assert.equal(status, 413)
  assert.match(head, /connection: close/i)
  assertStructured(body, 3)
  assert.equal((await send(`80\r\n${' '.repeat(128)}\r\n`, 17_000)).status, 400)
})

test('returns 408 for a body that never arrives', async () => {
  const token = `authorization: Bearer ${operator.token}\r\n`
  for (const rest of ['content-length: 100\r\n\r\n{"des', 'transfer-encoding: chunked\r\n\r\n5\r\n{"des\r\n']) {
    using connection = await connectRaw(port)
    connection.write(patch + token + rest)
    const answer = await takeResponse(connection)
    assert.ok([408, 504].includes(answer.status), answer.head)
    assertStructured(answer.body, 4)
    await connection.closed
  }
})

test('the registry refuses in its own format', async () => {
  for (const [status, path, more] of [
    [414, `/v2/${'y'.repeat(17_000)}`, ''],
    [431, '/v2/', `x: ${'y'.repeat(17_000)}\r\n`],
    [417, '/v2/', 'expect: the-unexpected\r\n'],
  ] as const) {
    using connection = await connectRaw(port)
    connection.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n${more}\r\n`)
    const answer = await takeResponse(connection)
    assert.equal(answer.status, status)
    assert.equal(JSON.parse(answer.body).errors[0].code, 'UNSUPPORTED')
  }
})

test('the token exchange refuses in the format of OAuth', async () => {
  using connection = await connectRaw(port)
  connection.write(`POST /oauth/token HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(17_000)}\r\ncontent-length: 0\r\n\r\n`)
  const answer = await takeResponse(connection)
  assert.equal(answer.status, 431)
  assert.equal(JSON.parse(answer.body).error, 'invalid_request')
})

type Answer = { status: number; type: string; text: string }

/** One request over HTTP/2; `end` is false for a body that never ends. */
async function ask(headers: http2.OutgoingHttpHeaders, { body = '', end = true, to = port } = {}): Promise<Answer> {
  const session = http2.connect(`http://127.0.0.1:${to}`, { maxSendHeaderBlockLength: 1024 * 1024 })
  try {
    const stream = session.request(headers, { endStream: body === '' && end })
    if (body !== '') end ? stream.end(body) : stream.write(body)
    const [answer] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader]
    let text = ''
    stream.on('data', (chunk) => {
      text += chunk
    })
    await once(stream, 'close')
    return { status: answer[':status']!, type: String(answer['content-type']), text }
  } finally {
    session.destroy()
  }
}

test('HTTP/2 refuses the same requests', async () => {
  const authorization = `Bearer ${operator.token}`
  const many = Object.fromEntries(Array.from({ length: 800 }, (_, i) => [`x-${i}`, 'y'.repeat(20)]))
  const cases: [http2.OutgoingHttpHeaders, status: number, code: number, body?: object][] = [
    [{ ':path': `/${'y'.repeat(17_000)}` }, 414, 3],
    [{ ':path': '/ping/v2/ping', x: 'y'.repeat(17_000) }, 431, 3],
    [{ ':path': '/ping/v2/ping', ...many }, 431, 3],
    [{ ':path': '/ping/v2/ping', expect: 'the-unexpected' }, 417, 3],
    [
      { ':path': `/iam/v2/groups/${'0'.repeat(40)}`, ':method': 'PATCH', authorization },
      408,
      4,
      { body: '{', end: false },
    ],
    [{ ':path': '/ping/v2/ping', ':authority': 'a', host: 'b' }, 400, 3],
    [{ ':path': '/ping/v2/ping', ':authority': `127.0.0.1:${port}`, host: `127.0.0.2:${port}` }, 400, 3],
    [{ ':path': '/nowhere' }, 404, 5],
    [{ ':path': '/ping/v2/ping', ':method': 'BREW' }, 405, 12],
  ]
  for (const [headers, status, code, sent] of cases) {
    const answer = await ask(headers, sent)
    const which = JSON.stringify(headers).slice(0, 80)
    assert.ok(answer.status === status || (status === 408 && answer.status === 504), `${which}: ${answer.status}`)
    assert.equal(answer.type, 'application/json', which)
    assertStructured(answer.text, code)
  }
  const registry = await ask({ ':path': `/v2/${'y'.repeat(17_000)}` })
  assert.deepEqual([registry.status, JSON.parse(registry.text).errors[0].code], [414, 'UNSUPPORTED'])
})

test('accepts a Host header that equals the authority over HTTP/2', async () => {
  for (const host of ['pinfold.example.com', 'Pinfold.Example.com', 'pinfold.example.com:80']) {
    const answer = await ask({ ':path': '/ping/v2/ping', ':authority': 'pinfold.example.com', host })
    assert.equal(answer.status, 200, answer.text)
  }
})

test('gRPC refuses a call with a Host header that differs from its authority', async () => {
  const session = http2.connect(`http://127.0.0.1:${port}`)
  const call = (host: string) =>
    session.request({
      ...{ ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', ':authority': 'a', host },
      ...{ 'content-type': 'application/grpc', te: 'trailers' },
    })
  for (const [host, status] of [
    ['a', undefined],
    ['b', '3'],
  ] as const) {
    const stream = call(host).end(Buffer.alloc(5))
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    assert.equal(head['grpc-status'], status, host)
    stream.close()
  }
  session.destroy()
})

test('gRPC returns a call error for metadata that is too large', async () => {
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
  const metadata = new grpc.Metadata()
  metadata.set('authorization', `Bearer ${operator.token}`)
  for (const name of ['a', 'b', 'c']) metadata.set(`x-${name}`, 'y'.repeat(24_000))
  const code = await new Promise<number | undefined>((resolve) => {
    const path = `/${GroupsService.typeName}/ListGroups`
    client.makeUnaryRequest(
      path,
      () => Buffer.alloc(0),
      (bytes) => bytes,
      {},
      metadata,
      (error) => resolve(error?.code),
    )
  })
  client.close()
  assert.equal(code, 8)
})

test('accepts a thousand values of one filter over HTTP/1.1 and HTTP/2, and refuses one more by name', async () => {
  // Uses the default limits, because a busy machine needs more time than the limits above.
  const { pinfold: patient, operator } = await startScene()
  await using _ = patient
  const uids = Array.from({ length: 1001 }, (_, i) => i.toString(16).padStart(40, '0'))
  const pathOf = (count: number, name: string, values: readonly string[]) =>
    `/iam/v2/groups?${values
      .slice(0, count)
      .map((value) => `${name}=${value}`)
      .join('&')}`
  assert.deepEqual(ok(await operator.get(pathOf(1000, 'uidp.ids', uids))).groups, [])
  assertInvalid(await operator.get(pathOf(1001, 'uidp.ids', uids)), 'uidp.ids')
  const long = (count: number) =>
    Array.from({ length: count }, (_, i) => `artifact_names=${'n'.repeat(80)}${i}`).join('&')
  for (const version of ['v1', 'v2']) {
    const path = (count: number) =>
      `/vulnerabilities/${version}/advisories?${version === 'v1' ? long(count).replaceAll('names', 'name') : long(count)}`
    assert.equal(ok(await operator.get(path(1000))).totalCount, '0')
    assertInvalid(await operator.get(path(1001)), version === 'v1' ? 'artifact_name' : 'artifact_names')
  }
  const authorization = `Bearer ${operator.token}`
  const over2 = await ask({ ':path': pathOf(1000, 'uidp.ids', uids), authorization }, { to: patient.port })
  assert.equal(over2.status, 200, over2.text)
  assertInvalid(await operator.get(`/iam/v2/groups?${'name=a&'.repeat(2001)}`), 'query')
  assertInvalid(await operator.get('/iam/v2/groups?name=a&name=b'), 'name')
})

test('resetting a refused connection affects no other connection', async () => {
  const heads = [
    'CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n',
    'GET / HTTP/2.0\r\nhost: a\r\n\r\n',
    'GET / HTTP/1.1\r\nx: \0\r\n\r\n',
    'P',
  ]
  for (const head of heads) {
    for (const wait of [0, 5, 310]) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.write(head)
      await sleep(wait)
      socket.resetAndDestroy()
    }
  }
  await sleep(200)
  assert.equal((await operator.get('/ping/v2/ping')).status, 200)
})
