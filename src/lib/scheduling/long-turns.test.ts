import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createThreadTime } from '../budgets/thread-time.ts'
import { createLongTurns } from './long-turns.ts'
import { background, createShare, noteServed, type Shares } from './shares.ts'

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

/** True if a caller with these shares waits when its turn has taken some milliseconds. */
async function hasToWait(shares: Shares, elapsedMs: number): Promise<boolean> {
  const time = createThreadTime()
  let now = 0
  const { letOthersRun } = createLongTurns(() => now)
  const waits = await time.run({ charge() {}, shares }, async () => {
    assert.equal(letOthersRun(), undefined, 'the first call of a turn begins to measure')
    now = elapsedMs
    const later = letOthersRun()
    await later
    return later !== undefined
  })
  time.close()
  return waits
}

test('after 10 ms of a turn, only a caller that has used less time than others continues', async () => {
  // Other tests of this process have served callers, too, so these shares are ahead of and behind all of them.
  noteServed([{ ...createShare(), usedMs: 100 }])
  const most = [{ ...createShare(), usedMs: Number.POSITIVE_INFINITY }]
  assert.deepEqual([await hasToWait(most, 9.9), await hasToWait(most, 10)], [false, true])
  const least = () => [createShare()]
  assert.deepEqual([await hasToWait(least(), 10), await hasToWait(least(), 19.9)], [false, false])
  assert.equal(await hasToWait(least(), 20), true, 'after 20 ms everybody waits')
  assert.equal(await hasToWait(background, 10), true, 'background work has no priority')
})
