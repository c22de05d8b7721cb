import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '#lib/errors.ts'
import { createLockLimits, LockFull, type Turn } from './lock-limits.ts'

const usual = { mostInside: 10, mostWaiting: 10, waitMs: 60_000 }

function crowdedOf(turn: Turn, name: string, most: number): LockFull | undefined {
  try {
    turn.enter({ name, most })
    return undefined
  } catch (error) {
    if (error instanceof LockFull) return error
    throw error
  }
}

test('admits transactions to a lock group up to its limit; the others follow in order, one for each that ends', async () => {
  const nextTurn = createLockLimits(usual)
  const [one, two, three, four] = [nextTurn(), nextTurn(), nextTurn(), nextTurn()]
  for (const turn of [one, two]) assert.equal(crowdedOf(turn, 'a', 2), undefined)
  assert.equal(crowdedOf(one, 'a', 2), undefined, 'it is there already')
  assert.equal(crowdedOf(three, 'b', 2), undefined)
  const order: string[] = []
  const waiting = [three, four].map((turn, i) => turn.wait(crowdedOf(turn, 'a', 2)!).then(() => order.push(`${i + 3}`)))
  // The lock groups that it waits for elsewhere stay free, because a running transaction may wait for them.
  assert.equal(crowdedOf(four, 'b', 1), undefined)
  one.leave()
  await waiting[0]
  assert.deepEqual(order, ['3'])
  assert.equal(crowdedOf(three, 'a', 2), undefined)
  // A new transaction does not pass waiting transactions.
  assert.ok(crowdedOf(nextTurn(), 'a', 2))
  two.leave()
  await waiting[1]
  for (const turn of [three, four]) turn.leave()
  assert.equal(crowdedOf(nextTurn(), 'a', 1), undefined)
})

test('admits no more transactions at all lock groups than allowed, and keeps their order', async () => {
  const nextTurn = createLockLimits({ ...usual, mostInside: 2 })
  const [one, two, three, four] = [nextTurn(), nextTurn(), nextTurn(), nextTurn()]
  assert.equal(crowdedOf(one, 'a', 1), undefined)
  assert.equal(crowdedOf(two, 'b', 1), undefined)
  // A running transaction can enter another lock group.
  assert.equal(crowdedOf(two, 'c', 1), undefined)
  const full = crowdedOf(three, 'd', 1)!
  let isIn = false
  const waiting = three.wait(full).then(() => {
    isIn = true
  })
  const atLock = crowdedOf(four, 'd', 1)!
  assert.notEqual(atLock.name, full.name)
  const behind = four.wait(atLock)
  await Promise.resolve()
  assert.equal(isIn, false)
  one.leave()
  await waiting
  assert.equal(crowdedOf(three, 'd', 1), undefined)
  three.leave()
  await behind
  assert.equal(crowdedOf(four, 'd', 1), undefined)
  for (const turn of [two, four]) turn.leave()
  for (const name of ['a', 'b']) assert.equal(crowdedOf(nextTurn(), name, 1), undefined)
})

const again = (error: unknown) =>
  error instanceof AppError && error.code === 'UNAVAILABLE' && error.details.some(({ type }) => type === 'RetryInfo')

test('a transaction that alternates between two lock groups waits only for the time limit of one', async () => {
  let now = 0
  const nextTurn = createLockLimits({ ...usual, monotonic: () => now })
  const [atA, atB, both] = [nextTurn(), nextTurn(), nextTurn()]
  atA.enter({ name: 'a', most: 1 })
  atB.enter({ name: 'b', most: 1 })
  const first = both.wait(crowdedOf(both, 'a', 1)!)
  now = 40_000
  atA.leave()
  await first
  const second = both.wait(crowdedOf(both, 'b', 1)!)
  now = 60_000
  atB.leave()
  await second
  atA.enter({ name: 'a', most: 1 })
  const third = both.wait(crowdedOf(both, 'a', 1)!)
  atA.leave()
  await assert.rejects(third, again)
})

test('rejects a transaction with a retry hint if too many wait, or if it waits too long', async () => {
  const nextTurn = createLockLimits({ ...usual, mostWaiting: 1, waitMs: 1 })
  const first = nextTurn()
  first.enter({ name: 'a', most: 1 })
  const [late, tooMany] = [nextTurn(), nextTurn()]
  const waited = assert.rejects(late.wait(crowdedOf(late, 'a', 1)!), again)
  await assert.rejects(tooMany.wait(crowdedOf(tooMany, 'a', 1)!), again)
  await waited
  // No transaction waits for a transaction that has left the lock group.
  first.leave()
  assert.equal(crowdedOf(nextTurn(), 'a', 1), undefined)
})
