// Ranges of blobs, conditional requests, and their precedence.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { codeOf, startRegistry } from '../support/registry.ts'

const name = 'acme/app'

test('serves the requested ranges of a blob', async () => {
  await using registry = await startRegistry()
  const content = randomBytes(2000)
  const { digest } = await registry.pusher.pushBlob(name, content)
  const get = (range: string, more: Record<string, string> = {}, method = 'GET') =>
    registry.puller.call(method, `${name}/blobs/${digest}`, { headers: { range, ...more } })
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 0],
    ['bytes=500-1499', 500, 1499],
    ['bytes=500-', 500, 1999],
    ['bytes=-500', 1500, 1999],
    ['bytes=-5000', 0, 1999],
    ['bytes=1990-5000', 1990, 1999],
  ] as const) {
    const part = await get(range)
    assert.equal(part.status, 206, range)
    assert.equal(part.headers['content-range'], `bytes ${start}-${end}/2000`)
    assert.equal(part.headers['content-length'], String(end - start + 1))
    assert.deepEqual(part.bytes, content.subarray(start, end + 1))
  }
  for (const range of ['bytes=2000-', 'bytes=5000-6000', 'bytes=500-0', 'bytes=-0']) {
    const refused = await get(range)
    assert.equal(refused.status, 416, range)
    assert.equal(refused.headers['content-range'], 'bytes */2000')
    assert.equal(codeOf(refused), 'SIZE_INVALID')
  }
  for (const range of ['bytes=0-1,5-6', 'lines=1-2', 'bytes=-', 'bytes=a-b', '']) {
    assert.equal((await get(range)).bytes.length, 2000, range)
  }
  assert.equal((await get('bytes=0-9', { 'if-range': `"${digest}"` })).status, 206)
  assert.equal((await get('bytes=0-9', { 'if-range': '"other"' })).status, 200)
  const head = await get('bytes=0-9', {}, 'HEAD')
  assert.deepEqual([head.status, head.headers['content-length'], head.bytes.length], [200, '2000', 0])
})

test('returns 304 to a client that already has the blob', async () => {
  await using registry = await startRegistry()
  const { digest } = await registry.pusher.pushBlob(name, 'content')
  const headers = { 'if-none-match': `"${digest}"` }
  const unchanged = await registry.puller.call('GET', `${name}/blobs/${digest}`, { headers })
  assert.deepEqual([unchanged.status, unchanged.bytes.length], [304, 0])
  assert.equal(unchanged.headers.etag, `"${digest}"`)
})
