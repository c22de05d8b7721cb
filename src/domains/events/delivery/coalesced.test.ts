import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { coalesced } from './coalesced.ts'

/** Runs everything that does not wait for a timer. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

function start(everyMs?: number) {
  const seen: number[] = []
  let asked = 0
  const found = coalesced(
    async (begun) => {
      begun()
      seen.push(asked)
    },
    () => {},
    (error) => assert.ifError(error),
    everyMs,
  )
  return {
    seen,
    idle: found.idle,
    ask(): void {
      asked++
      found.run()
    },
  }
}

test('requests during a run are merged into one later run', async () => {
  const { seen, ask, idle } = start()
  for (let i = 0; i < 3; i++) ask()
  await idle()
  assert.deepEqual(seen, [1, 3])
  ask()
  await idle()
  assert.deepEqual(seen, [1, 3, 4])
})

test('with an interval, the first run starts at once, and later requests are merged', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { seen, ask, idle } = start(10)
  ask()
  await settle()
  assert.deepEqual(seen, [1])
  for (let i = 0; i < 3; i++) {
    ask()
    await settle()
  }
  t.mock.timers.tick(9)
  await settle()
  assert.deepEqual(seen, [1])
  t.mock.timers.tick(1)
  await settle()
  assert.deepEqual(seen, [1, 4])
  // Without further requests the interval ends, and the next run starts at once.
  const over = idle()
  t.mock.timers.tick(10)
  await over
  assert.deepEqual(seen, [1, 4])
  ask()
  await settle()
  assert.deepEqual(seen, [1, 4, 5])
  t.mock.timers.tick(10)
  await idle()
})

test('a failed run blocks neither later requests nor its own end', async () => {
  const failures: unknown[] = []
  let runs = 0
  const found = coalesced(
    async () => {
      if (++runs === 1) throw new Error('no')
    },
    () => {},
    (error) => failures.push(error),
    1,
  )
  found.run()
  found.run()
  await found.idle()
  assert.deepEqual([runs, failures.length], [2, 1])
})
