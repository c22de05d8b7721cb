// Traces: spans that a collector gets, for every entry point. No request waits for the collector.
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { ConfigError, readConfig } from '#config.ts'
import { sql } from '#db/sql.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Json, startPinfold } from '../support/pinfold.ts'
import { localSinks, startReceiver } from '../support/receiver.ts'
import { startRegistry } from '../support/registry.ts'

type Span = { name: string; traceId: string; spanId: string; parentSpanId?: string; attributes: Json; failed: boolean }

async function startCollector(status = 200) {
  const spans: Span[] = []
  const headers: IncomingHttpHeaders[] = []
  const bodies: string[] = []
  let resource: Json = {}
  const contentOf = ({ value }: Json) => Object.values(value as Json)[0]
  const attributesOf = (list: Json[]) => Object.fromEntries(list.map((one) => [one.key, contentOf(one)]))
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    headers.push(req.headers)
    const text = Buffer.concat(chunks).toString()
    bodies.push(text)
    for (const one of (JSON.parse(text) as Json).resourceSpans) {
      resource = attributesOf(one.resource.attributes)
      for (const span of one.scopeSpans.flatMap((scope: Json) => scope.spans)) {
        spans.push({ ...span, attributes: attributesOf(span.attributes), failed: span.status?.code === 2 })
      }
    }
    res.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
  return {
    url,
    spans,
    headers,
    bodies,
    resource: () => resource,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const [traceId, parentId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
const traceparent = `00-${traceId}-${parentId}-00`

test('a request is a span in the trace of its client, with its transactions as child spans', async () => {
  await using collector = await startCollector()
  const settings = { traces: collector.url, tracesPercent: 100, tracesHeaders: { authorization: 'Bearer collect' } }
  {
    await using pinfold = await startPinfold({ ...settings, jobs: [] })
    const { operator } = pinfold
    ok(await operator.call('POST', '/iam/v2/groups', { name: 'secret-name' }, { traceparent }))
    assert.equal((await operator.call('GET', `/iam/v2/groups/${'a'.repeat(40)}`, undefined, {})).status, 404)
    await operator.call('GET', '/healthz', undefined, { traceparent })
    using groups = grpcClientOf(pinfold, GroupsService, operator.token)
    await groups.listGroups({})
  }
  const made = collector.spans.find(({ name }) => name.endsWith('/CreateGroup'))!
  assert.deepEqual([made.traceId, made.parentSpanId, made.failed], [traceId, parentId, false])
  assert.equal(made.attributes['pinfold.code'], 'OK')
  const part = collector.spans.find(({ name, traceId: of }) => name === 'transaction' && of === traceId)!
  assert.equal(part.parentSpanId, made.spanId)
  const doors = collector.spans.filter(({ attributes }) => attributes['pinfold.transport'] !== undefined)
  assert.deepEqual(doors.map(({ attributes }) => attributes['pinfold.transport']).sort(), ['grpc', 'rest', 'rest'])
  assert.deepEqual(new Set(doors.map(({ failed }) => failed)), new Set([false]), 'a refusal is no failure of ours')
  assert.equal(collector.resource()['service.name'], 'pinfold')
  assert.equal(collector.headers[0]!.authorization, 'Bearer collect')
  assert.doesNotMatch(collector.bodies.join(''), /secret-name|aaaaaaaaaa/)
})

test('background work of a request has no span in its trace, and continues without the trace', async () => {
  await using collector = await startCollector()
  await using receiver = await startReceiver()
  {
    await using pinfold = await startPinfold({ ...localSinks, traces: collector.url, tracesPercent: 100 })
    const { operator, seed } = pinfold
    const org = await seed.group()
    await seed.subscription(org.uid, receiver.url)
    ok(await operator.call('POST', `/iam/v2/groups/${org.uid}`, { name: 'below' }, { traceparent }))
    await receiver.until((got) => got.length >= 1)
    ok(await operator.call('POST', `/iam/v2/groups/${org.uid}`, { name: 'later' }, {}))
    await receiver.until((got) => got.length >= 2)
  }
  const { spans } = collector
  const ours = spans.filter((span) => span.traceId === traceId)
  const made = ours.find(({ name }) => name.endsWith('/CreateGroup'))!
  assert.deepEqual(ours.map(({ name }) => name).sort(), [made.name, 'transaction'].sort())
  const sent = spans.filter(({ name }) => name === 'delivery')
  assert.equal(sent.length, receiver.got.length)
  for (const { parentSpanId, attributes } of sent) {
    assert.deepEqual([parentSpanId ?? '', attributes['pinfold.result']], ['', 'delivered'])
  }
})

test('an OpenMetrics scrape contains trace exemplars; other formats do not', async () => {
  await using collector = await startCollector()
  await using pinfold = await startPinfold({ traces: collector.url, tracesPercent: 100, jobs: [], metrics: true })
  const { operator } = pinfold
  ok(await operator.call('POST', '/iam/v2/groups', { name: 'acme' }, { traceparent }))
  const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'
  const open = await operator.call('GET', '/metrics', undefined, { accept })
  assert.match(String(open.headers.get('content-type')), /^application\/openmetrics-text; version=1\.0\.0/)
  const example = new RegExp(
    `^pinfold_request_duration_seconds_bucket\\{.*CreateGroup.*\\} \\d+ # \\{trace_id="${traceId}"\\}`,
    'm',
  )
  assert.match(open.text, example)
  assert.match(open.text, /^pinfold_db_commits_total [\d.]+$/m)
  assert.match(open.text, /\n# EOF\n$/)
  const plain = await operator.call('GET', '/metrics', undefined, {})
  assert.match(String(plain.headers.get('content-type')), /^text\/plain/)
  assert.doesNotMatch(plain.text, /trace_id|# EOF/)
})

test('traces a push and a pull, also if the client sends malformed trace headers', async () => {
  await using collector = await startCollector()
  {
    await using registry = await startRegistry({ traces: collector.url, tracesPercent: 100 })
    await registry.pusher.pushImage('acme/app', 'v1')
    for (const given of ['x', '00-00000000000000000000000000000000-0000000000000000-01', `${traceparent}-more`, '']) {
      await registry.puller.ok(200, 'GET', 'acme/app/manifests/v1', { headers: { traceparent: given } })
    }
  }
  const pulls = collector.spans.filter(({ name }) => /manifest/i.test(name))
  assert.ok(pulls.length >= 5, collector.spans.map(({ name }) => name).join())
  assert.ok(pulls.every((span) => /^[\da-f]{32}$/.test(span.traceId) && span.traceId !== '0'.repeat(32)))
})

test('with a sampling ratio of 0 sends no traces, whatever the client requests', async () => {
  await using collector = await startCollector()
  {
    await using pinfold = await startPinfold({ traces: collector.url, tracesPercent: 0 })
    ok(
      await pinfold.operator.call('GET', '/iam/v2/groups', undefined, {
        traceparent: traceparent.replace(/00$/, '01'),
      }),
    )
  }
  assert.deepEqual(collector.spans, [])
})

test('a collector that is unavailable or refuses traces delays no request', async () => {
  await using refusing = await startCollector(400)
  for (const traces of [refusing.url, 'http://127.0.0.1:1/v1/traces']) {
    await using pinfold = await startPinfold({ traces, tracesPercent: 100 })
    for (let i = 0; i < 20; i++) ok(await pinfold.operator.get('/iam/v2/groups'))
  }
})

test('an error names each invalid trace setting', () => {
  const read = (env: Record<string, string>) => () => readConfig(env)
  for (const url of ['collector:4318', 'ftp://collector', 'http://user:secret@collector/v1/traces']) {
    assert.throws(read({ PINFOLD_TRACES: url }), (error) => {
      return error instanceof ConfigError && /PINFOLD_TRACES /.test(error.message) && !/secret/.test(error.message)
    })
  }
  assert.throws(read({ PINFOLD_TRACES_PERCENT: '101' }), /PINFOLD_TRACES_PERCENT/)
  assert.throws(
    read({ PINFOLD_TRACES_HEADERS: 'authorization' }),
    /PINFOLD_TRACES_HEADERS must be headers as name=value/,
  )
  const { tracesHeaders } = readConfig({ PINFOLD_TRACES_HEADERS: 'authorization=Basic dXNlcg==, x-scope = a' })
  assert.deepEqual(tracesHeaders, { authorization: 'Basic dXNlcg==', 'x-scope': 'a' })
})

test('the metrics show the delay of event routing and the clock offset', async () => {
  await using pinfold = await startPinfold({ jobs: [] })
  await pinfold.seed.group()
  await pinfold.app.db.tx((tx) =>
    tx.run(sql`UPDATE events_outbox SET create_time = ${new Date(Date.now() - 3_600_000).toISOString()}`),
  )
  const { text } = await pinfold.operator.get('/metrics')
  const behind = Number(/^pinfold_events_unrouted_oldest_seconds (\S+)$/m.exec(text)?.[1])
  assert.ok(behind >= 3600 && behind < 3700, `${behind}`)
  assert.match(text, /^pinfold_clock_offset_seconds -?[\d.e-]+$/m)
})
