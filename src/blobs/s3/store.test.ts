// Contents in a bucket with scripted answers: lost responses, and objects that are missing or shorter than before.
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { ContentMissing } from '../blobs.ts'
import { parseBucket } from './bucket.ts'
import { openBucket } from './store.ts'

const mebibyte = 1024 * 1024
const blob = { location: 'c/00/00', size: 10 }

/** Store without objects that records its requests. `answer` handles a request first; if it returns false, the store does. */
async function scene(answer: (req: IncomingMessage, res: ServerResponse) => unknown) {
  const asked: string[] = []
  const listener: RequestListener = (req, res) => {
    req.resume().once('end', () => {
      asked.push(`${req.method} ${req.url}`)
      if (answer(req, res) !== false) return
      if (req.method === 'POST' && req.url!.endsWith('?uploads=')) res.end('<A><UploadId>one</UploadId></A>')
      else if (req.method === 'PUT') res.writeHead(200, { etag: '"e"' }).end()
      else refuse(res, 404, 'NoSuchKey')
    })
  }
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  let now = 0
  const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }
  const bucket = parseBucket(`s3://blobs?endpoint=http://127.0.0.1:${port}&timeout=60`)
  const blobs = await openBucket(bucket, { env, monotonic: () => now })
  asked.length = 0
  return {
    blobs,
    asked,
    pass: (ms: number) => {
      now += ms
    },
    async [Symbol.asyncDispose]() {
      blobs.close()
      server.closeAllConnections()
      server.close()
    },
  }
}

function refuse(res: ServerResponse, status: number, code: string): void {
  res.writeHead(status, { 'content-type': 'application/xml' }).end(`<Error><Code>${code}</Code></Error>`)
}

for (const [there, isComplete] of [
  [17 * mebibyte, true],
  [16 * mebibyte, false],
  [undefined, false],
] as const) {
  const found = there === undefined ? 'no object' : `an object of ${there / mebibyte} MiB`
  const ends = isComplete ? 'is finished' : 'is not finished'
  test(`an upload of 17 MiB ${ends} if the response to its completion is lost and the bucket then has ${found}`, async () => {
    let completions = 0
    await using fixture = await scene((req, res) => {
      if (req.method === 'POST' && req.url!.includes('uploadId=')) {
        if (completions++ === 0) res.destroy()
        else refuse(res, 404, 'NoSuchUpload')
      } else if (req.method === 'HEAD' && there !== undefined) res.writeHead(200, { 'content-length': there }).end()
      else return false
    })
    const part = await fixture.blobs.begin(17 * mebibyte, '')
    for (let at = 0; at < 17; at++) await part.write([Buffer.alloc(mebibyte)])
    if (isComplete) await part.finish()
    else await assert.rejects(part.finish(), /NoSuchUpload/)
    assert.equal(completions, 2)
  })
}

test('checks a missing blob again after a minute, and caches it as missing for another minute', async () => {
  let size: number | undefined
  await using fixture = await scene((req, res) => {
    if (req.method !== 'HEAD' || size === undefined) return false
    res.writeHead(200, { 'content-length': size }).end()
  })
  const { blobs, asked, pass } = fixture
  const asks = () => asked.splice(0).length
  for (let minute = 0; minute < 3; minute++) {
    // The content counts as available until a reader has checked the object.
    assert.deepEqual([await blobs.has(blob, minute > 0), asks()], [false, 1], `minute ${minute}`)
    pass(59_999)
    assert.deepEqual([await blobs.has(blob, true), asks()], [false, 0])
    assert.deepEqual([await blobs.addressOf!(blob), asks()], [undefined, 0])
    pass(1)
  }
  assert.deepEqual([await blobs.addressOf!(blob), asks()], [undefined, 1])
  size = blob.size
  pass(60_000)
  assert.match(String(await blobs.addressOf!(blob)), /\/c\/00\/00\?/)
  assert.deepEqual([await blobs.has(blob, true), asks()], [true, 1])
  // The store checks existing content again after five minutes.
  pass(299_999)
  await blobs.addressOf!(blob)
  assert.equal(asks(), 0)
  pass(1)
  await blobs.addressOf!(blob)
  assert.equal(asks(), 1)
})

test('treats a range after the end of a shortened object as missing content, also for the next reader', async () => {
  let status: number | undefined
  await using fixture = await scene((req, res) => {
    if (req.method !== 'GET' || !status) return false
    if (status === 416) refuse(res, 416, 'InvalidRange')
    else res.writeHead(206, { 'content-range': 'bytes 8-8/9', 'content-length': 1 }).end('x')
  })
  const { blobs, asked } = fixture
  for (status of [416, 206]) {
    await assert.rejects(blobs.read(blob, { range: { start: 8, end: 9 } }), (error: Error) => {
      assert.ok(error instanceof ContentMissing, String(error))
      return /does not have 10 bytes/.test(error.message)
    })
    assert.ok(blobs.isUp(), 'the bucket works')
  }
  asked.length = 0
  assert.equal(await blobs.has(blob, true), false)
  assert.deepEqual(asked, [])
})

test('lists each possible content name exactly once during a week of garbage collections', async () => {
  await using fixture = await scene((req, res) => {
    if (!req.url!.includes('list-type=')) return false
    res.end('<ListBucketResult></ListBucketResult>')
  })
  for (let hour = 0; hour < 168; hour++) for await (const _ of fixture.blobs.list(hour)) assert.fail()
  const prefixes = fixture.asked.map((url) => new URLSearchParams(url.split('?')[1]).get('prefix')!)
  const contents = prefixes.filter((prefix) => prefix.startsWith('c/')).map((prefix) => prefix.slice(2))
  const all = Array.from({ length: 256 }, (_, shard) => shard.toString(16).padStart(2, '0'))
  assert.deepEqual(contents.sort(), all)
})
