import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createLongTurns } from './long-turns.ts'

test('after 10 ms of a turn work waits for a later turn, whatever took them', async () => {
  let now = 0
  const { letOthersRun } = createLongTurns(() => now)
  assert.equal(letOthersRun(), undefined)
  now += 9
  assert.equal(letOthersRun(), undefined)
  now += 1
  const later = letOthersRun()
  assert.ok(later)
  await later
  await turn()
  // Another turn has begun.
  assert.equal(letOthersRun(), undefined)
})
