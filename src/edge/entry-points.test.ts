import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { App } from '#app.ts'
import { createBudgets } from '#lib/budgets/budgets.ts'
import { ClosedSet } from '#lib/labels/closed-set.ts'
import { noTracer } from '#tracing/tracer.ts'
import { createEdge } from './arrival.ts'
import { type EntryPoint, type HttpArrival, serveEntryPoints } from './entry-points.ts'

type Line = { level: string; message: string } & Record<string, unknown>

/** HTTP request handling that keeps log lines and measurements, and counts running requests. */
function testEdge() {
  const lines: Line[] = []
  const logged = new EventEmitter()
  const log = (level: string) => (message: string, fields?: object) => {
    lines.push({ level, message, ...fields })
    logged.emit(message)
  }
  const counts = { inFlight: 0, most: 0, measured: [] as object[] }
  const app = {
    config: { hosts: [], hostPaths: new Map(), trustedProxies: ['127.0.0.1'] },
    limits: { check() {}, require() {} },
    budgets: createBudgets(
      { callerPercent: 100, organizationPercent: 100, burstMs: 1 },
      () => 0,
      () => 0,
    ),
    threadTime: { run: (_spender: unknown, work: () => unknown) => work(), settle() {} },
    tracer: noTracer,
    log: { debug: log('debug'), info: log('info'), error: log('error') },
    metrics: {
      inFlight: {
        inc: () => {
          counts.most = Math.max(counts.most, ++counts.inFlight)
        },
        dec: () => void counts.inFlight--,
      },
      entryPoints: { transports: new ClosedSet(), methods: new ClosedSet() },
      requests: { observe: (labels: object) => void counts.measured.push(labels) },
    },
  } as unknown as App
  return { edge: createEdge(app, 'http://127.0.0.1'), lines, counts, done: () => once(logged, 'request') }
}

class FakeResponse extends EventEmitter {
  statusCode = 200
  destroyed = false
  headers: Record<string, string> = {}
  setHeader(name: string, value: string): void {
    this.headers[name] = value
  }
  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

function requestFor(url: string, headers: Record<string, string> = {}) {
  const req = { url, method: 'GET', headers, rawHeaders: [], socket: { remoteAddress: '127.0.0.1' }, complete: true }
  return { req: req as unknown as IncomingMessage, res: new FakeResponse() }
}

const entryPointOf = (entryPoint: Partial<EntryPoint>): EntryPoint => {
  return { name: 'test', methods: [], matches: () => true, serve: () => {}, refuse: () => {}, ...entryPoint }
}

test('passes a request to the first entry point that matches its path, with the common request data', async () => {
  const { edge, lines, done } = testEdge()
  const seen: HttpArrival[] = []
  const listen = serveEntryPoints(edge, [
    entryPointOf({ name: 'one', matches: (path) => path === '/one', serve: (arrival) => void seen.push(arrival) }),
    entryPointOf({ name: 'rest', serve: (arrival) => void seen.push(arrival) }),
  ])
  const headers = {
    'x-request-id': 'given-from-outside',
    'x-forwarded-for': '203.0.113.7',
    'user-agent': 'tool/1.0',
    authorization: 'Bearer x',
  }
  for (const url of ['/one?a=/two&b', '/two', '*']) {
    const { req, res } = requestFor(url, headers)
    const logged = done()
    listen(req, res as unknown as ServerResponse)
    await logged
    assert.equal(res.headers['x-request-id'], 'given-from-outside')
  }
  assert.deepEqual(
    lines.map((line) => [line.transport, line.requestId, line.remoteAddress]),
    ['one', 'rest', 'rest'].map((name) => [name, 'given-from-outside', '203.0.113.7']),
  )
  const [one] = seen
  assert.deepEqual([one!.path, one!.search], ['/one', 'a=/two&b'])
  assert.deepEqual([one!.source, one!.userAgent, one!.authorization], ['203.0.113.7', 'tool/1.0', 'Bearer x'])
})

test('returns an error in the format of the entry point, and survives an error there', async () => {
  const { edge, lines, counts, done } = testEdge()
  const listen = serveEntryPoints(edge, [
    entryPointOf({
      serve: () => Promise.reject(new Error('first')),
      refuse: (_, error) => {
        throw new Error('second', { cause: error })
      },
    }),
  ])
  const { req, res } = requestFor('/')
  const logged = done()
  listen(req, res as unknown as ServerResponse)
  await logged
  assert.equal(res.destroyed, true)
  const [failure] = lines
  assert.deepEqual([failure!.level, (failure!.error as Error).message], ['error', 'second'])
  assert.deepEqual(counts, { inFlight: 0, most: 1, measured: [{ transport: 'test', method: 'none', code: '200' }] })
})

test('refuses a request at its deadline while its work continues, and responds once', async () => {
  const { edge, lines, done } = testEdge()
  let finish = () => {}
  const refused: unknown[] = []
  const settled: boolean[] = []
  const listen = serveEntryPoints(edge, [
    entryPointOf({
      deadlineMs: 5,
      async serve(arrival) {
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        settled.push(arrival.settle('OK'))
      },
      refuse(arrival, error) {
        refused.push((error as { code: string }).code)
        settled.push(arrival.settle('LATE'))
        finish()
      },
    }),
  ])
  const { req, res } = requestFor('/')
  const logged = done()
  listen(req, res as unknown as ServerResponse)
  await logged
  assert.deepEqual(refused, ['DEADLINE_EXCEEDED'])
  assert.deepEqual(settled, [true, false])
  assert.equal(lines[0]!.code, 'LATE')
})

test('a response that started in time has no deadline', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { edge, done } = testEdge()
  let finish = () => {}
  let refusals = 0
  const listen = serveEntryPoints(edge, [
    entryPointOf({
      deadlineMs: 1000,
      serve: (arrival) =>
        new Promise<void>((resolve) => {
          arrival.begun()
          finish = resolve
        }),
      refuse: () => void refusals++,
    }),
  ])
  const { req, res } = requestFor('/')
  const logged = done()
  listen(req, res as unknown as ServerResponse)
  t.mock.timers.tick(2000)
  finish()
  await logged
  assert.equal(refusals, 0)
})

test('a request has one signal, aborted when its client disconnects, also before first use', async () => {
  const { edge, done } = testEdge()
  const signals: AbortSignal[] = []
  const listen = serveEntryPoints(edge, [
    entryPointOf({
      serve(arrival) {
        signals.push(arrival.signal)
        assert.equal(arrival.signal, arrival.signal)
      },
    }),
  ])
  for (const hangsUp of ['later', 'before']) {
    const { req, res } = requestFor('/')
    if (hangsUp === 'before') res.destroy()
    const logged = done()
    listen(req, res as unknown as ServerResponse)
    await logged
    if (hangsUp === 'later') assert.equal(signals.at(-1)!.aborted, false)
    res.destroy()
    assert.equal(signals.at(-1)!.aborted, true)
    assert.equal((signals.at(-1)!.reason as { code: string }).code, 'CANCELLED')
  }
})

test('the deadline aborts the signal, whether or not the connection ends, also before first use', async () => {
  for (const asks of ['before', 'after']) {
    const { edge, done } = testEdge()
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const signals: AbortSignal[] = []
    const listen = serveEntryPoints(edge, [
      entryPointOf({
        deadlineMs: 5,
        async serve(arrival) {
          if (asks === 'before') signals.push(arrival.signal)
          await late
          signals.push(arrival.signal)
        },
        refuse: () => resolve(),
      }),
    ])
    const { req, res } = requestFor('/')
    const logged = done()
    listen(req, res as unknown as ServerResponse)
    await logged
    for (const { aborted, reason } of signals) {
      assert.equal(aborted, true, asks)
      assert.equal((reason as { code: string }).code, 'DEADLINE_EXCEEDED')
    }
  }
})

test('logs frequent automatic requests at debug level, and does not count them as running', async () => {
  const { edge, lines, counts, done } = testEdge()
  const { req, res } = requestFor('/')
  const logged = done()
  serveEntryPoints(edge, [entryPointOf({ quiet: true })])(req, res as unknown as ServerResponse)
  await logged
  assert.equal(lines[0]!.level, 'debug')
  assert.equal(counts.most, 0)
  assert.equal(counts.measured.length, 1)
})
