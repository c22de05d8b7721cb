import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createThreadTime } from './thread-time.ts'

/** Clock that moves only while work runs. */
function startClock() {
  let now = 0
  const time = createThreadTime(() => now)
  const work = (ms: number): void => {
    now += ms
  }
  return { work, time, [Symbol.dispose]: () => time.close() }
}

function createSpender() {
  return {
    ms: 0,
    charge(ms: number) {
      this.ms += ms
    },
  }
}

test('charges each request for its work between awaits', async () => {
  using clock = startClock()
  const [cheap, dear] = [createSpender(), createSpender()]
  const serve = async (ms: number) => {
    for (let i = 0; i < 5; i++) {
      clock.work(ms)
      await undefined
      if (i === 2) await turn()
    }
  }
  await Promise.all([clock.time.run(cheap, () => serve(1)), clock.time.run(dear, () => serve(100))])
  assert.deepEqual([cheap.ms, dear.ms], [5, 500])
})

test('charges no request for waiting for the next event, or for work outside of requests', async () => {
  using clock = startClock()
  const spender = createSpender()
  await clock.time.run(spender, async () => {
    clock.work(1)
    await turn()
    // The event loop has made a turn, so this is the second piece of work.
    clock.work(2)
  })
  await turn()
  clock.work(1000)
  await turn()
  clock.time.settle()
  assert.equal(spender.ms, 3)
})

test('charges time until now when a total is read', () => {
  using clock = startClock()
  const spender = createSpender()
  clock.time.run(spender, () => {
    clock.work(7)
    clock.time.settle()
    assert.equal(spender.ms, 7)
  })
})

test('charges no request after it is closed', async () => {
  const clock = startClock()
  const spender = createSpender()
  await clock.time.run(spender, async () => {
    clock.work(1)
    clock.time.settle()
    clock.time.close()
    await undefined
    clock.work(5)
  })
  await turn()
  assert.equal(spender.ms, 1)
})
