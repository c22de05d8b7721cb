import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThreadTime } from '../budgets/thread-time.ts'
import { FairQueue } from './fair-queue.ts'
import { background, createShare, isAhead, keepNear, type Shares } from './shares.ts'

/** A queue into which the given callers push items. */
function scene() {
  let caller: Shares = background
  const queue = new FairQueue<string>(() => caller)
  return {
    queue,
    push(shares: Shares, ...items: string[]) {
      caller = shares
      for (const item of items) queue.push(item)
    },
    /** Takes items until the queue is empty. Each item uses 10 ms. */
    takeAll() {
      const taken: string[] = []
      for (let entry = queue.take(); entry; entry = queue.take()) {
        taken.push(entry.item)
        for (const share of entry.shares) share.usedMs += 10
      }
      return taken.join('')
    },
  }
}

test('a later caller waits for one item of another caller, not for all', () => {
  const { queue, push, takeAll } = scene()
  const [noisy, quiet] = [[createShare()], [createShare()]]
  push(noisy, ...'nnnnnnnn')
  assert.equal(queue.take()!.item, 'n')
  noisy[0]!.usedMs += 10
  push(quiet, 'q')
  assert.equal(takeAll(), 'qnnnnnnn')
  assert.equal(queue.length, 0)
})

test('callers share the time equally, and items of one caller keep their order', () => {
  const { push, takeAll } = scene()
  push([createShare()], 'a', 'b', 'c')
  push([createShare()], 'x', 'y', 'z')
  assert.equal(takeAll(), 'axbycz')
})

test('an organization with many identities gets no more time than one with a single identity', () => {
  const { push, takeAll } = scene()
  const [large, small] = [createShare(), createShare()]
  for (const name of 'abcd') push([large, createShare()], name)
  push([small, createShare()], ...'ssss')
  assert.equal(takeAll(), 'asbscsds')
})

test('a caller who always waits saves no time while its items are short', () => {
  const { queue, push, takeAll } = scene()
  const [steady, long, late] = [[createShare()], [createShare()], [createShare()]]
  push(steady, 's')
  for (let i = 0; i < 100; i++) {
    push(long, 'l')
    push(steady, 's')
    assert.equal(queue.take((item) => item === 'l')!.item, 'l')
    long[0]!.usedMs += 10
  }
  push(late, 'n')
  assert.ok(takeAll().indexOf('n') <= 6)
})

test('saves no unused time, and limits the debt for time without other callers', () => {
  const { push, takeAll } = scene()
  const busy = [createShare()]
  push(busy, ...Array<string>(100).fill('b'))
  takeAll()
  busy[0]!.usedMs += 60_000
  const late = [createShare()]
  keepNear(busy)
  keepNear(late)
  // The limits are 50 ms before and 50 ms behind the caller that ran last.
  assert.equal(busy[0]!.usedMs - late[0]!.usedMs, 100)
})

test('prefers a caller that used less time than the one that runs now', () => {
  const { push, takeAll } = scene()
  const [busy, late] = [[createShare()], [createShare()]]
  push(busy, ...Array<string>(100).fill('b'))
  takeAll()
  assert.equal(isAhead(busy), false)
  assert.equal(isAhead(late), true)
})

test('skips a caller whose first item cannot start', () => {
  const { queue, push } = scene()
  push([createShare()], 'a', 'b')
  push([createShare()], 'x')
  assert.equal(queue.take((item) => item !== 'a')!.item, 'x')
  assert.equal(
    queue.take((item) => item !== 'a'),
    undefined,
  )
  assert.deepEqual([...queue], ['a', 'b'])
})

test('requests and background jobs without a caller each wait as one caller', () => {
  const time = createThreadTime(() => 0)
  const queue = new FairQueue<string>()
  time.run({ charge() {} }, () => queue.push('request'))
  queue.push('job')
  queue.push('job')
  time.close()
  const order = Array.from({ length: 3 }, () => {
    const { item, shares } = queue.take()!
    shares[0]!.usedMs += 10
    return item
  })
  assert.deepEqual([...order].sort(), ['job', 'job', 'request'])
  assert.notEqual(order[2], 'request')
})
