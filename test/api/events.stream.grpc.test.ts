// The stream of events over gRPC and over HTTP/2, which share nothing with HTTP/1.1 but the handler.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { after, before, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import {
  EventStreamService,
  type StreamEventsRequest,
  type StreamEventsResponse,
} from '#gen/pinfold/control/events/v1/stream_pb.ts'
import { ok } from '../support/expect.ts'
import { GrpcError } from '../support/grpc.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'

const { input, output, name } = EventStreamService.method.streamEvents
const path = `/${EventStreamService.typeName}/${name}`
const repos = ['dev.pinfold.api.platform.registry.*']

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold({ deliver: true, streamIdleMs: 100, requestTimeoutMs: 1500, streamsPerCaller: 3 })
})
after(() => pinfold[Symbol.asyncDispose]())

type Request = Partial<Pick<StreamEventsRequest, 'group' | 'types' | 'after'>>

function follow(server: Pinfold, request: Request, token = server.operator.token) {
  const client = new grpc.Client(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': -1,
  })
  const metadata = new grpc.Metadata()
  metadata.set('authorization', `Bearer ${token}`)
  const call = client.makeServerStreamRequest<StreamEventsRequest, StreamEventsResponse>(
    path,
    (message) => Buffer.from(toBinary(input, message)),
    (bytes) => fromBinary(output, bytes),
    create(input, request),
    metadata,
  )
  const got: StreamEventsResponse[] = []
  const wakers = new Set<() => void>()
  call.on('data', (message: StreamEventsResponse) => {
    got.push(message)
    for (const wake of wakers) wake()
  })
  const failed = new Promise<GrpcError>((resolve) =>
    call.on('error', (error) => resolve(new GrpcError(error as never))),
  )
  const events = () => got.filter(({ data }) => data !== '')
  return {
    call,
    got,
    events,
    failed,
    until: (isTrue: () => boolean) =>
      new Promise<void>((resolve, reject) => {
        const look = () => {
          if (!isTrue()) return
          wakers.delete(look)
          resolve()
        }
        wakers.add(look)
        look()
        void failed.then(reject)
      }),
    [Symbol.dispose]() {
      call.cancel()
      client.close()
    },
  }
}

test('streams events over gRPC beyond the request timeout, and resumes after the last event', async () => {
  const org = (await pinfold.seed.group()).uid
  using first = follow(pinfold, { group: org, types: repos })
  await first.until(() => first.got.length > 16)
  const made = [await pinfold.seed.repo(org), await pinfold.seed.repo(org)]
  await first.until(() => first.events().length === 2)
  const [event] = first.events()
  assert.deepEqual(
    [event!.id, event!.attributes.subject, event!.attributes.group, JSON.parse(event!.data).body.uid],
    [event!.attributes.id, made[0]!.uid, org, made[0]!.uid],
  )
  using second = follow(pinfold, { group: org, after: event!.id })
  await second.until(() => second.events().length === 1)
  assert.equal(second.events()[0]!.attributes.subject, made[1]!.uid)
})

test('errors have details, and a disconnected client no longer counts for the stream limit', async () => {
  const bad = follow(pinfold, { after: 'x' })
  const { code, fields } = await bad.failed
  assert.deepEqual([code, fields], [3, ['after']])
  assert.deepEqual(
    (await follow(pinfold, { after: '00000000-0000-4000-8000-000000000000' }).failed).reason,
    'EVENT_NOT_KEPT',
  )
  assert.equal((await follow(pinfold, {}, 'nonsense').failed).code, 16)

  const someone = await pinfold.tokenFor((await pinfold.seed.person()).uid)
  const open = [1, 2, 3].map(() => follow(pinfold, {}, someone))
  for (const one of open) await one.until(() => one.got.length > 0)
  assert.equal((await follow(pinfold, {}, someone).failed).reason, 'TOO_MANY_STREAMS')
  open[0]![Symbol.dispose]()
  for (let entered = false; !entered; ) {
    using again = follow(pinfold, {}, someone)
    entered = await Promise.race([
      again.until(() => again.got.length > 0).then(() => true),
      again.failed.then(() => false),
    ])
  }
  for (const one of open) one[Symbol.dispose]()
})

test('a server stop ends a gRPC stream with UNAVAILABLE', async () => {
  const stopped = await startPinfold({ drainMs: 60_000 })
  using stream = follow(stopped, {})
  await stream.until(() => stream.got.length > 0)
  await stopped[Symbol.asyncDispose]()
  assert.equal((await stream.failed).code, 14)
})

test('ends a gRPC stream whose client does not read', async () => {
  const org = (await pinfold.seed.group()).uid
  const repo = await pinfold.seed.repo(org)
  using lazy = follow(pinfold, { group: org })
  await lazy.until(() => lazy.got.length > 0)
  lazy.call.pause()
  const content = 'x'.repeat(400_000)
  for (let i = 0; i < 30; i++) ok(await pinfold.operator.patch(`/registry/v2/repos/${repo.uid}/readme`, { content }))
  const inFlight = () => pinfold.app.metrics.registry.getSingleMetricAsString('pinfold_requests_in_flight')
  while (!/in_flight 0$/m.test(await inFlight())) await new Promise((resolve) => setImmediate(resolve))
  lazy.call.resume()
  assert.equal((await lazy.failed).code, 1)
})

test('sends server-sent events over HTTP/2 too', async () => {
  const org = (await pinfold.seed.group()).uid
  const session = http2.connect(pinfold.url)
  const stream = session.request({
    ':path': `/events/v2/stream?group=${org}&types=${repos}`,
    authorization: `Bearer ${pinfold.operator.token}`,
  })
  const [headers] = (await once(stream, 'response')) as [Record<string, string>]
  assert.deepEqual([headers[':status'], headers['content-type']], [200, 'text/event-stream'])
  stream.setEncoding('utf8')
  const { uid } = await pinfold.seed.repo(org)
  let text = ''
  for await (const chunk of stream) {
    text += chunk
    if (text.includes(uid)) break
  }
  assert.match(text, /^: still here\nid: [^\n]+\n\n(?:[\s\S]*\n)?id: [0-9a-f-]{36}\ndata: \{"id":"/)
  session.close()
})
