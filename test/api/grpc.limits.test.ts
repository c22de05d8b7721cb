// Limits on the messages of calls over gRPC, which arrive compressed, in parts and from every client.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { after, test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { readMessage } from '#api/grpc-messages.ts'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { StatusSchema } from '#gen/google/rpc/status_pb.ts'
import { EventStreamService } from '#gen/pinfold/control/events/v1/stream_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { startPinfold } from '../support/pinfold.ts'

const pinfold = await startPinfold()
after(() => pinfold[Symbol.asyncDispose]())

const { createGroup, listGroups } = GroupsService.method
const pathOf = ({ parent, name }: { parent: { typeName: string }; name: string }) => `/${parent.typeName}/${name}`
const health = '/grpc.health.v1.Health/Check'
const watch = '/grpc.health.v1.Health/Watch'
const reflection = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
const ping = pathOf(PingService.method.ping)
const endpoints = buildEndpoints(services)
const needTokens = endpoints.filter(({ method }) => method.access.mode !== 'open').map(({ desc }) => pathOf(desc))
const open = endpoints.filter(({ method }) => method.access.mode === 'open').map(({ desc }) => pathOf(desc))

/** Field 1023, a number that no message declares. */
const unknown = Buffer.from('f83f01', 'hex')
const unknownFields = (count: number) => Buffer.alloc(count * unknown.length, unknown)

function framed(message: Uint8Array, isCompressed = false): Buffer {
  const head = Buffer.alloc(5)
  head[0] = isCompressed ? 1 : 0
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

type Ended = { status: string | undefined; types: string[]; message: string }
type Open = { stream: http2.ClientHttp2Stream; ended: Promise<Ended> }

/** A connection on which the test makes raw calls. */
function connect(port = pinfold.port) {
  const session = http2.connect(`http://127.0.0.1:${port}`)
  const begin = (
    path: string,
    { token, encoding, from }: { token?: string; encoding?: string; from?: string } = {},
  ): Open => {
    const stream = session.request({
      ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(encoding === undefined ? {} : { 'grpc-encoding': encoding }),
      ...(from === undefined ? {} : { 'x-forwarded-for': from }),
    })
    const said: http2.IncomingHttpHeaders = {}
    const note = (headers: http2.IncomingHttpHeaders) => void Object.assign(said, headers)
    stream
      .on('error', () => {})
      .on('response', note)
      .on('trailers', note)
      .resume()
    const ended = once(stream, 'close').then((): Ended => {
      const bin = said['grpc-status-details-bin']
      const details = bin === undefined ? [] : fromBinary(StatusSchema, Buffer.from(String(bin), 'base64')).details
      return {
        status: said['grpc-status']?.toString(),
        types: details.map(({ typeUrl }) => typeUrl.replace(/^.*\./, '')),
        message: decodeURIComponent(String(said['grpc-message'] ?? '')),
      }
    })
    return { stream, ended }
  }
  return {
    begin,
    /** Resolves once the server has seen all that was sent. */
    seen: () => new Promise<void>((resolve) => void session.ping(() => resolve())),
    async call(path: string, bytes: Buffer, options: Parameters<typeof begin>[1] = {}): Promise<Ended> {
      const { stream, ended } = begin(path, options)
      stream.end(bytes)
      return ended
    },
    [Symbol.dispose]: () => session.destroy(),
  }
}

test('refuses a call without a valid token before its message arrives', async () => {
  using connection = connect()
  assert.ok(needTokens.length > 100)
  for (const path of needTokens) {
    // The request stays open, and sends no message.
    assert.equal((await connection.begin(path).ended).status, '16', path)
  }
  assert.equal((await connection.begin(needTokens[0]!, { token: 'wrong' }).ended).status, '16')
})

test('refuses a method of the operator to others before the message arrives', async () => {
  using connection = connect()
  const token = await pinfold.tokenFor((await pinfold.seed.person()).uid)
  const methods = endpoints.filter(({ method }) => method.access.mode === 'everywhere')
  assert.ok(methods.length > 5)
  for (const { desc } of methods) {
    assert.equal((await connection.begin(pathOf(desc), { token }).ended).status, '7', desc.name)
  }
})

test('stops decompressing a message at the size limit of each open method', async () => {
  using connection = connect()
  const bomb = framed(gzipSync(unknownFields(1_400_000)), true)
  assert.ok(bomb.length < 8192)
  const libraries = [health, watch, reflection]
  for (const path of [...open, ...libraries]) {
    const most = libraries.includes(path) ? 4096 : 65_536
    for (const token of [undefined, pinfold.operator.token!]) {
      const { status, message, types } = await connection.call(path, bomb, {
        encoding: 'gzip',
        ...(token && { token }),
      })
      assert.deepEqual([status, message], ['8', `the message is too large; at most ${most} bytes are allowed`], path)
      assert.deepEqual(types, ['ErrorInfo'])
    }
  }
})

test('limits messages of open methods to 64 KiB, and of a library to 4 KiB, compressed or not', async () => {
  using connection = connect()
  const field = (bytes: number) =>
    Buffer.concat([Buffer.from('fa3f', 'hex'), lengthOf(bytes - 5), Buffer.alloc(bytes - 5)])
  for (const [path, most] of [
    [ping, 65_536],
    [health, 4096],
  ] as const) {
    for (const encoding of ['identity', 'gzip', 'deflate']) {
      const pack = (message: Buffer) => {
        if (encoding === 'identity') return framed(message)
        return framed(encoding === 'gzip' ? gzipSync(message) : deflateSync(message), true)
      }
      assert.equal((await connection.call(path, pack(field(most)), { encoding })).status, '0', encoding)
      assert.equal((await connection.call(path, pack(field(most + 1)), { encoding })).status, '8', encoding)
    }
  }
})

/** The length field has three bytes. */
const lengthOf = (value: number) => Buffer.from([(value & 0x7f) | 0x80, ((value >> 7) & 0x7f) | 0x80, value >> 14])

test('limits messages of methods with a token to 4 MiB, compressed or not', async () => {
  using connection = connect()
  const token = pinfold.operator.token!
  const ask = (length: number) =>
    toBinary(createGroup.input, create(createGroup.input, { group: { name: 'x'.repeat(length) } }))
  const path = pathOf(createGroup)
  const large = await connection.call(path, framed(ask(4_000_000)), { token })
  assert.match(large.message, /^Invalid argument: name: /)
  const packed = framed(gzipSync(ask(4_000_000)), true)
  assert.match((await connection.call(path, packed, { token, encoding: 'gzip' })).message, /^Invalid argument: name: /)
  for (const [bytes, encoding] of [
    [framed(ask(4_200_000)), 'identity'],
    [framed(gzipSync(ask(4_200_000)), true), 'gzip'],
  ] as const) {
    assert.deepEqual((await connection.call(path, bytes, { token, encoding })).status, '8')
  }
})

test('a message can have at most 20,000 fields, including unknown fields, which are ignored', async () => {
  using connection = connect()
  const token = pinfold.operator.token!
  for (const [path, options] of [
    [pathOf(listGroups), { token }],
    [ping, {}],
  ] as const) {
    assert.equal((await connection.call(path, framed(unknownFields(20_000)), options)).status, '0', path)
    const refused = await connection.call(path, framed(unknownFields(20_001)), options)
    assert.equal(refused.status, '3', path)
    assert.equal(refused.message, 'Invalid argument: message: has more than 20000 fields and elements')
    assert.deepEqual(refused.types, ['ErrorInfo', 'BadRequest'])
  }
  assert.equal(readMessage(listGroups.input, unknownFields(2)).$unknown, undefined)
})

test('refuses a message that cannot be decompressed', async () => {
  using connection = connect()
  const wrong = framed(Buffer.from('no archive'), true)
  assert.match((await connection.call(ping, wrong, { encoding: 'gzip' })).message, /message: is not valid gzip data/)
  assert.match(
    (await connection.call(ping, wrong, { encoding: 'deflate' })).message,
    /message: is not valid deflate data/,
  )
  assert.equal(
    (await connection.call(ping, framed(gzipSync(Buffer.alloc(0)).subarray(0, 15), true), { encoding: 'gzip' })).status,
    '3',
  )
  assert.equal((await connection.call(ping, wrong, { encoding: 'br' })).status, '12')
})

test('a stream of requests ends at the first message that is too large', async () => {
  using connection = connect()
  const { stream, ended } = connection.begin(reflection)
  stream.write(framed(Buffer.from([0x3a, 0])))
  await once(stream, 'data')
  stream.write(framed(Buffer.alloc(4097)))
  await once(stream, 'trailers')
  // A client ends its stream after receiving the status.
  stream.close()
  assert.equal((await ended).status, '8')
})

test('limits the bytes in flight of one network address, and frees them when a call ends', async () => {
  await using small = await startPinfold({ maxBodyBytes: 65_536, messageBytesPerSource: 65_536, messageBytes: 65_536 })
  using connection = connect(small.port)
  // 192 KiB: two messages of 64 KiB, and 64 KiB more. Each of these is never finished.
  const part = framed(Buffer.alloc(65_536)).subarray(0, 60_000)
  const begin = async (): Promise<Open> => {
    const call = connection.begin(ping)
    call.stream.write(part)
    await connection.seen()
    return call
  }
  const open = [await begin(), await begin(), await begin()]
  const refused = await (await begin()).ended
  assert.deepEqual([refused.status, refused.types], ['8', ['ErrorInfo', 'RetryInfo']])
  assert.match(refused.message, /too many request bytes/)
  open[0]!.stream.close(http2.constants.NGHTTP2_CANCEL)
  await open[0]!.ended
  await connection.seen()
  const again = await begin()
  again.stream.end(framed(Buffer.alloc(65_536)).subarray(60_000))
  assert.notEqual((await again.ended).status, '8')
  for (const { stream } of open) stream.close(http2.constants.NGHTTP2_CANCEL)
})

test('limits the bytes in flight of all network addresses together', async () => {
  const sizes = { maxBodyBytes: 65_536, messageBytesPerSource: 65_536, messageBytes: 65_536 }
  await using small = await startPinfold({ ...sizes, trustedProxies: ['127.0.0.1'] })
  using connection = connect(small.port)
  const part = framed(Buffer.alloc(65_536)).subarray(0, 60_000)
  const open: Open[] = []
  for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']) {
    const call = connection.begin(ping, { from })
    call.stream.write(part)
    await connection.seen()
    open.push(call)
  }
  assert.equal((await open[3]!.ended).status, '8')
})

test('counts small frames of HTTP/2 with the memory that they use', async () => {
  await using small = await startPinfold({ maxBodyBytes: 65_536, messageBytesPerSource: 65_536, messageBytes: 65_536 })
  using connection = connect(small.port)
  const begin = async (): Promise<Open> => {
    const call = connection.begin(ping)
    call.stream.write(framed(Buffer.alloc(65_536)).subarray(0, 60_000))
    await connection.seen()
    return call
  }
  const open = [await begin(), await begin()]
  const { stream, ended } = connection.begin(ping)
  const bytes = framed(Buffer.alloc(65_536))
  // 400 frames of one byte count as 100 KiB. Each frame is sent before the next one is written.
  for (let at = 0; at < 400 && !stream.destroyed; at++) {
    await new Promise((resolve) => stream.write(bytes.subarray(at, at + 1), resolve))
  }
  const { status, message } = await ended
  assert.deepEqual([status, message.includes('too many request bytes')], ['8', true])
  for (const one of open) one.stream.close(http2.constants.NGHTTP2_CANCEL)
})

const smallBudgets = { maxBodyBytes: 65_536, messageBytesPerSource: 65_536, messageBytes: 65_536 }
/** A message of 60,000 bytes, all of one unknown field. */
const bulky = framed(Buffer.concat([Buffer.from('fa3f', 'hex'), lengthOf(59_995), Buffer.alloc(59_995)]))

test('open health streams do not use bytes that other calls need', async () => {
  await using small = await startPinfold({ ...smallBudgets, trustedProxies: ['127.0.0.1'] })
  using connection = connect(small.port)
  const name = Buffer.concat([Buffer.from('0a', 'hex'), lengthOf(4000), Buffer.alloc(4000, 'x')])
  // 240 kB, with a limit of 192 KiB.
  const open = Array.from({ length: 60 }, (_, i) => connection.begin(watch, { from: `192.0.2.${i % 4}` }))
  for (const { stream, ended } of open) {
    stream.end(framed(name))
    await Promise.race([once(stream, 'data'), ended])
  }
  for (const from of ['192.0.2.1', '192.0.2.9']) {
    assert.equal((await connection.call(ping, bulky, { from })).status, '0', from)
    const { status } = await connection.call(pathOf(listGroups), bulky, { from, token: small.operator.token! })
    assert.equal(status, '0', from)
  }
  assert.ok(open.every(({ stream }) => !stream.closed))
})

test('messages without a token do not use the bytes of callers with a token', async () => {
  await using small = await startPinfold(smallBudgets)
  using connection = connect(small.port)
  const begin = async (): Promise<Open> => {
    const call = connection.begin(ping)
    call.stream.write(bulky.subarray(0, 60_000))
    await connection.seen()
    return call
  }
  const open = [await begin(), await begin(), await begin()]
  assert.equal((await (await begin()).ended).status, '8')
  const token = small.operator.token!
  assert.equal((await connection.call(pathOf(listGroups), bulky, { token })).status, '0')
  for (const { stream } of open) stream.close(http2.constants.NGHTTP2_CANCEL)
})

test('an open event stream does not use bytes that other calls need', async () => {
  await using small = await startPinfold({ ...smallBudgets, streamIdleMs: 100 })
  using connection = connect(small.port)
  const token = small.operator.token!
  const open = Array.from({ length: 5 }, () =>
    connection.begin(pathOf(EventStreamService.method.streamEvents), { token }),
  )
  for (const { stream, ended } of open) {
    stream.end(bulky)
    await Promise.race([once(stream, 'data'), ended])
  }
  assert.equal((await connection.call(pathOf(listGroups), bulky, { token })).status, '0')
  assert.ok(open.every(({ stream }) => !stream.closed))
})

/** Requests a type that does not exist, so that the response is small. */
const question = framed(Buffer.from('220178', 'hex'))

/** Sends `count` messages on one stream, and returns the responses and the status. */
async function askOften(connection: ReturnType<typeof connect>, count: number): Promise<Ended & { answers: number }> {
  const { stream, ended } = connection.begin(reflection)
  let [answers, bytes] = [0, Buffer.alloc(0)]
  stream.on('data', (data: Buffer) => {
    bytes = Buffer.concat([bytes, data])
    for (; bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1); answers++) {
      bytes = bytes.subarray(5 + bytes.readUInt32BE(1))
    }
  })
  stream.on('trailers', () => stream.close())
  for (let sent = 1; sent <= count && !stream.closed; sent++) {
    stream.write(question)
    while (answers < sent && !stream.closed) await Promise.race([once(stream, 'data'), ended])
  }
  stream.end()
  return { ...(await ended), answers }
}

test('a reflection stream accepts at most 1,000 messages', async () => {
  using connection = connect()
  assert.deepEqual(await askOften(connection, 1000), { answers: 1000, status: '0', types: [], message: 'OK' })
  const { answers, status, message } = await askOften(connection, 1001)
  assert.deepEqual(
    [answers, status, message],
    [1000, '8', 'the stream has reached its limit of 1000 messages; open a new one'],
  )
})

test('counts each message of a reflection stream as a request of its network address', async () => {
  await using small = await startPinfold({ requestsPerSource: 20 })
  using connection = connect(small.port)
  const { answers, status, types, message } = await askOften(connection, 1000)
  assert.ok(answers >= 20 && answers < 1000)
  assert.deepEqual([status, types], ['8', ['ErrorInfo', 'RetryInfo']])
  assert.match(message, /too many requests/)
})
