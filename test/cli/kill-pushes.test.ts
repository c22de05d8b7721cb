// The short form of test/fuzz/pushes.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStorage } from '../support/process.ts'
import { killPushes } from '../support/pushes.ts'

test('a server killed during pushes loses nothing acknowledged, and leaves nothing incomplete', async () => {
  await using storage = await createStorage()
  const tally = await killPushes(storage, 2, 40)
  assert.equal(tally.sent, 80)
  assert.ok(tally.acknowledged >= 8, `only ${tally.acknowledged} pushes were acknowledged`)
})
