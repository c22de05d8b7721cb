import assert from 'node:assert/strict'
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
