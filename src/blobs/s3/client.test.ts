import assert from 'node:assert/strict'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from '../blobs.ts'
import { parseBucket } from './bucket.ts'
import { type ClientOptions, createClient } from './client.ts'
import type { CredentialSource } from './credentials.ts'
import { readObject } from './read.ts'

const keys: CredentialSource = { get: async () => ({ accessKeyId: 'a', secretAccessKey: 'b' }), forget() {} }

/** Client of a store. The test's function `answer` sends the responses. */
async function scene(answer: RequestListener, options: ClientOptions = {}, source = keys) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = createClient(parseBucket(`s3://blobs?endpoint=http://127.0.0.1:${port}&timeout=60`), source, options)
  return {
    client,
    async [Symbol.asyncDispose]() {
      client.close()
      server.closeAllConnections()
      server.close()
    },
  }
}

const get = { operation: 'GetObject', method: 'GET', key: 'c/00/y', retries: 0 } as const
const head = { operation: 'HeadObject', method: 'HEAD', key: 'c/00/y', retries: 0 } as const
const isBusy = (error: Error) => error instanceof StoreUnavailable && error.reason === 'TOO_BUSY'

test('fails to sign a URL without credentials, and the error contains no secrets', async () => {
  const none = { get: () => Promise.reject(new Error('secret')), forget() {} }
  const client = createClient(parseBucket('s3://blobs'), none)
  await assert.rejects(client.addressOf('c/00/x', new Date(0), 300), (error: Error) => {
    assert.ok(error instanceof StoreUnavailable)
    return !error.message.includes('secret')
  })
  client.close()
})

for (const status of [400, 403]) {
  test(`repeats a HEAD with new credentials after a ${status} without an error code`, async () => {
    let [count, served] = [1, 2]
    const madeOf = (at: number) => ({ accessKeyId: `key${at}`, secretAccessKey: 'b' })
    let kept = madeOf(count)
    const source: CredentialSource = {
      get: async () => kept,
      forget(refused) {
        if (refused === kept) kept = madeOf(++count)
      },
    }
    const asked: string[] = []
    const answer: RequestListener = (req, res) => {
      asked.push(/Credential=(\w+)/.exec(req.headers.authorization!)![1]!)
      res.writeHead(asked.at(-1) === `key${served}` ? 200 : status).end()
    }
    await using fixture = await scene(answer, {}, source)
    const { client } = fixture
    assert.equal((await client.ask(head)).status, 200)
    assert.deepEqual(asked.splice(0), ['key1', 'key2'])
    // If new credentials do not help either, the client does not request credentials for each request.
    served = 0
    for (const keys of [['key2', 'key3'], ['key3'], ['key3']]) {
      await assert.rejects(client.ask(head), (error: Error) => error instanceof StoreUnavailable && !isBusy(error))
      assert.deepEqual([asked.splice(0), client.isUp()], [keys, false])
    }
    served = 3
    assert.equal((await client.ask(head)).status, 200)
    assert.ok(client.isUp())
  })
}

test('keeps the clock offset of the store when the local clock is set', async (t) => {
  const theirs = Date.parse('2026-03-01T12:00:00Z')
  t.mock.timers.enable({ apis: ['Date'], now: theirs - 600_000 })
  let ms = 0
  const signed: string[] = []
  const answer: RequestListener = (req, res) => {
    signed.push(String(req.headers['x-amz-date']))
    res.setHeader('date', new Date(theirs).toUTCString()).end()
  }
  await using fixture = await scene(answer, { monotonic: () => ms })
  const { client } = fixture
  assert.equal(client.clock(), theirs - 600_000)
  await client.ask(head)
  assert.equal(client.clock(), theirs)
  t.mock.timers.setTime(theirs + 5000)
  ms += 5000
  assert.equal(client.clock(), theirs + 5000)
  await client.ask(head)
  assert.deepEqual(signed, ['20260301T115000Z', '20260301T120005Z'])
  // HTTP dates have whole seconds. If both clocks agree, the local clock is more precise.
  t.mock.timers.setTime(theirs + 1500)
  await client.ask(head)
  assert.equal(client.clock(), theirs + 1500)
})

test('slow writes do not delay reads', async () => {
  const held: ServerResponse[] = []
  const writing = Promise.withResolvers<void>()
  await using fixture = await scene(
    (req, res) => {
      req.resume()
      if (req.method !== 'PUT') return void res.end()
      held.push(res)
      writing.resolve()
    },
    { connections: 1 },
  )
  const { client } = fixture
  const body = [Buffer.from('slow')]
  const put = client.ask({ operation: 'PutObject', method: 'PUT', key: 'c/00/x', body, retries: 0 })
  await writing.promise
  assert.deepEqual([(await client.ask(get)).status, held.length], [200, 1])
  for (const res of held) res.end()
  await put
})

/** Store that sends the first twelve bytes to each reader, keeps the response in `held`, and continues when the test asks. */
async function slowStore(options: ClientOptions = {}) {
  const held: ServerResponse[] = []
  const ranges: (string | undefined)[] = []
  const fixture = await scene(
    (req, res) => {
      if (req.method === 'HEAD' || req.url?.includes('list-type')) return void res.end()
      const { range } = req.headers
      ranges.push(range)
      held.push(res)
      if (range === undefined) return void res.writeHead(200, { 'content-length': 12 }).write('begun, ')
      res.writeHead(206, { 'content-length': 5, 'content-range': `${range.replace('=', ' ')}/12` }).flushHeaders()
    },
    { connections: 1, waitMs: 1000, ...options },
  )
  const reading = new AbortController()
  const read = (client?: AbortSignal) => readObject(fixture.client, { location: 'c/00/y', size: 12 }, { client })
  return { ...fixture, held, ranges, read, forClient: () => read(reading.signal) }
}

const slow = { timeout: 20_000 }

test('slow readers delay only other slow readers, and only for a bounded time', slow, async () => {
  const results: string[] = []
  await using fixture = await slowStore({ observe: (_, result) => results.push(result) })
  const { client, held, read, forClient } = fixture
  const first = (await forClient()).stream()
  const query = [['list-type', '2']] as const
  await client.ask(head)
  await client.ask({ operation: 'ListObjects', method: 'GET', query, retries: 0 })
  const ours = (await read()).stream()
  held.pop()!.end('ended')
  assert.equal(await text(ours), 'begun, ended')
  await Promise.all([forClient(), forClient()].map((other) => assert.rejects(other, isBusy)))
  assert.deepEqual([results, client.isUp(), held.length], [['ok', 'ok', 'ok', 'ok', 'busy', 'busy'], true, 1])
  const gone = new AbortController()
  const leaving = read(gone.signal)
  const next = forClient()
  gone.abort(new Error('gone'))
  await assert.rejects(leaving, { message: 'gone' })
  held.pop()!.end('ended')
  assert.equal(await text(first), 'begun, ended')
  const last = (await next).stream()
  held.pop()!.end('ended')
  assert.equal(await text(last), 'begun, ended')
  await assert.rejects(read(AbortSignal.abort(new Error('gone before'))), { message: 'gone before' })
  assert.equal(held.length, 0)
})

test('resumes an interrupted read before other reads start, and frees its slot at the end', slow, async () => {
  await using fixture = await slowStore()
  const { held, ranges, forClient } = fixture
  const first = text((await forClient()).stream())
  const next = forClient()
  held.pop()!.destroy()
  while (held.length === 0) await sleep(5)
  assert.deepEqual(ranges, [undefined, 'bytes=7-11'])
  held.pop()!.end('ended')
  assert.equal(await first, 'begun, ended')
  const last = text((await next).stream())
  held.pop()!.end('ended')
  assert.equal(await last, 'begun, ended')
  // A stream that is closed early or never read frees its slot too.
  const closed = (await forClient()).stream()
  closed.destroy()
  await forClient()
  held.pop()!.destroy()
  assert.ok(await forClient())
})

test('uses the local clock if the monotonic clock may have stopped', async (t) => {
  const began = Date.parse('2026-03-01T12:00:00Z')
  t.mock.timers.enable({ apis: ['Date'], now: began })
  const answer: RequestListener = (_, res) => void res.setHeader('date', new Date().toUTCString()).end()
  await using fixture = await scene(answer, { monotonic: () => 0 })
  const { client } = fixture
  assert.ok(client.isClockReliable(), 'as long as nothing was told')
  await client.ask(head)
  t.mock.timers.setTime(began + 1000)
  assert.ok(client.isClockReliable())
  t.mock.timers.setTime(began + 600_000)
  assert.deepEqual([client.isClockReliable(), client.clock()], [false, began])
  await client.ask(head)
  assert.deepEqual([client.isClockReliable(), client.clock()], [true, began + 600_000])
})
