import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { StoreAway } from '../blobs.ts'
import { parseBucket } from './bucket.ts'
import { createClient } from './client.ts'

test('without credentials there is no address now, and none of their secrets in the reason', async () => {
  const none = { get: () => Promise.reject(new Error('secret')), forget() {} }
  const client = createClient(parseBucket('s3://blobs'), none)
  await assert.rejects(client.addressOf('c/00/x', new Date(0), 300), (error: Error) => {
    assert.ok(error instanceof StoreAway)
    return !error.message.includes('secret')
  })
  client.close()
})

test('what is slowly written does not keep what is read waiting', async () => {
  const held: ServerResponse[] = []
  const writing = Promise.withResolvers<void>()
  const server = createServer((req, res) => {
    req.resume()
    if (req.method !== 'PUT') return void res.end()
    held.push(res)
    writing.resolve()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const keys = { get: async () => ({ accessKeyId: 'a', secretAccessKey: 'b' }), forget() {} }
  const bucket = parseBucket(`s3://blobs?endpoint=http://127.0.0.1:${port}&timeout=60`)
  const client = createClient(bucket, keys, undefined, 1)
  const body = [Buffer.from('slow')]
  try {
    const put = client.ask({ operation: 'PutObject', method: 'PUT', key: 'c/00/x', body, retries: 0 })
    await writing.promise
    const got = await client.ask({ operation: 'GetObject', method: 'GET', key: 'c/00/y', retries: 0 })
    assert.deepEqual([got.status, held.length], [200, 1])
    for (const res of held) res.end()
    await put
  } finally {
    client.close()
    server.closeAllConnections()
    server.close()
  }
})
