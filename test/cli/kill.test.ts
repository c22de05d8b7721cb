// The short form of test/fuzz/kill.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { killRounds } from '../support/durability.ts'
import { createStorage } from '../support/process.ts'

test('a server killed during writes loses nothing acknowledged', async () => {
  await using storage = await createStorage()
  const tally = await killRounds(storage, 1, 200)
  assert.equal(tally.sent, 200)
  assert.ok(tally.acknowledged >= 20, `only ${tally.acknowledged} writes were acknowledged`)
})
