import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHostQueues } from './host-queues.ts'
import { createHostRateLimits } from './host-rate-limits.ts'

const asker = (holder: string, key = holder, requestsPerSecond = 20) => ({ holder, key, requestsPerSecond })

/** Clock that stands still until `pass`, also for waiting callers. */
function scene() {
  let now = 0
  const sleepers: { until: number; wake: () => void }[] = []
  const pause = (ms: number) => new Promise<void>((wake) => sleepers.push({ until: now + ms, wake }))
  const paces = createHostRateLimits(() => now)
  const pass = async (ms: number) => {
    now += ms
    for (const one of sleepers.splice(0)) {
      if (one.until <= now) one.wake()
      else sleepers.push(one)
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { paces, turns: createHostQueues(paces, pause), pass }
}

test('up to a hundred requests of one organization wait for a host, and the next one gets a retry time', async () => {
  const { turns, pass } = scene()
  const ended: number[] = []
  const take = (holder: string) => turns.take('h', asker(holder), 60_000).then((waitMs) => void ended.push(waitMs))
  const all = Array.from({ length: 130 }, () => take('a'))
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(
    [ended.filter((one) => one === 0).length, ended.filter((one) => one === 5000).length, ended.length],
    [10, 20, 30],
  )
  for (let i = 0; ended.length < 130; i++) {
    assert.ok(i < 1000)
    await pass(50)
  }
  await Promise.all(all)
  assert.equal(ended.filter((one) => one === 0).length, 110)
  await pass(1000)
  assert.equal(await turns.take('h', asker('a'), 0), 0)
})

test('refuses a caller that cannot wait at once, and does not count it as waiting', async () => {
  const { turns } = scene()
  for (let i = 0; i < 10; i++) assert.equal(await turns.take('h', asker('a'), 0), 0)
  for (let i = 0; i < 200; i++) assert.ok((await turns.take('h', asker('a'), 10)) > 10)
  assert.ok((await turns.take('h', asker('a'), 0)) < 5000)
})

test('organizations share a host equally while both send requests, and one alone gets all of it', () => {
  const { paces, pass } = scene()
  const served = { a: 0, b: 0 }
  const ask = (holder: 'a' | 'b', key: number) => {
    if (paces.take('h', asker(holder, `${holder}${key}`)) === 0) served[holder]++
  }
  // One organization has fifty upstreams at the host and always asks first. The other has one upstream.
  const second = (both: boolean) => {
    for (let ms = 0; ms < 1000; ms += 10) {
      for (let key = 0; key < 50; key++) ask('a', key)
      if (both) ask('b', 0)
      void pass(10)
    }
  }
  for (let i = 0; i < 10; i++) second(false)
  assert.ok(served.a >= 200 && served.a <= 231, `${served.a}`)
  served.a = 0
  for (let i = 0; i < 10; i++) second(true)
  assert.ok(served.b >= 80 && served.b <= 120, `${served.b}`)
  assert.ok(served.a + served.b <= 201, `${served.a + served.b}`)
})

test('background work gets only the unused part of the limit', () => {
  const { paces } = scene()
  const taken = (spare: boolean) => {
    let count = 0
    while (paces.take('h', { ...asker('a'), spare }) === 0) count++
    return count
  }
  assert.deepEqual([taken(true), taken(false), taken(true)], [5, 5, 0])
})
