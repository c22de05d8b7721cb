import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../errors.ts'
import { countedBytes, createByteBudget } from './byte-budget.ts'

const code = (work: () => void): string => {
  try {
    work()
    return 'OK'
  } catch (error) {
    assert.ok(error instanceof AppError)
    if (error.code === 'RESOURCE_EXHAUSTED') {
      assert.deepEqual(error.details, [{ type: 'RetryInfo', retryDelaySeconds: 1 }])
    }
    return error.code
  }
}

test('limits the bytes of one network address and of all addresses, and reuses released bytes', () => {
  const budget = createByteBudget({ perSource: 10, total: 15 })
  const [one, same, other] = [budget.open('192.0.2.1'), budget.open('192.0.2.1'), budget.open('192.0.2.2')]
  assert.equal(
    code(() => one.take(6)),
    'OK',
  )
  assert.equal(
    code(() => same.take(5)),
    'RESOURCE_EXHAUSTED',
  )
  assert.equal(
    code(() => same.take(4)),
    'OK',
  )
  assert.equal(
    code(() => other.take(6)),
    'RESOURCE_EXHAUSTED',
  )
  assert.equal(
    code(() => other.take(5)),
    'OK',
  )
  one.release()
  one.release()
  assert.equal(
    code(() => same.take(7)),
    'RESOURCE_EXHAUSTED',
  )
  assert.equal(
    code(() => same.take(6)),
    'OK',
  )
})

test('reuses released bytes, but only bytes that were reserved', () => {
  const budget = createByteBudget({ perSource: 10, total: 10 })
  const [one, same] = [budget.open('192.0.2.1'), budget.open('192.0.2.1')]
  one.take(8)
  one.giveBack(5)
  same.take(7)
  assert.equal(
    code(() => one.take(1)),
    'RESOURCE_EXHAUSTED',
  )
  one.giveBack(100)
  one.take(3)
  one.release()
  one.giveBack(3)
  same.take(3)
  const next = budget.open('192.0.2.1')
  assert.equal(
    code(() => next.take(1)),
    'RESOURCE_EXHAUSTED',
  )
})

test('a request that is alone in memory can exceed the limit', () => {
  const totals: number[] = []
  const refused: string[] = []
  const budget = createByteBudget({ perSource: 10, total: 15 }, (bytes) => void totals.push(bytes))
  const big = budget.open('192.0.2.1', () => void refused.push('big'))
  const other = budget.open('192.0.2.2', () => void refused.push('other'))
  big.take(10)
  big.take(10)
  assert.equal(
    code(() => other.take(1)),
    'RESOURCE_EXHAUSTED',
  )
  big.giveBack(15)
  other.take(1)
  assert.equal(
    code(() => big.take(10)),
    'RESOURCE_EXHAUSTED',
  )
  assert.deepEqual(refused, ['other', 'big'])
  big.release()
  other.release()
  assert.equal(
    totals.reduce((sum, bytes) => sum + bytes, 0),
    0,
  )
})

test('tells a request that need not be refused that its bytes are above the limit', () => {
  const refused: string[] = []
  const totals: number[] = []
  const budget = createByteBudget({ perSource: 10, total: 15 }, (bytes) => void totals.push(bytes))
  const [one, same] = [budget.open('192.0.2.1'), budget.open('192.0.2.1', () => void refused.push('same'))]
  assert.ok(one.tryTake(20), 'it is alone in memory')
  assert.ok(!same.tryTake(1))
  assert.deepEqual(totals, [20])
  one.giveBack(15)
  assert.ok(same.tryTake(5))
  same.release()
  assert.ok(!same.tryTake(1), 'it has ended')
  assert.deepEqual(refused, [])
})

test('a finished request reserves no more bytes', () => {
  const held = createByteBudget({ perSource: 10, total: 10 }).open('192.0.2.1')
  held.release()
  assert.equal(
    code(() => held.take(1)),
    'CANCELLED',
  )
})

test('addresses of one IPv6 network count as one', () => {
  const budget = createByteBudget({ perSource: 10, total: 100 })
  budget.open('2001:db8::1').take(8)
  assert.equal(
    code(() => budget.open('2001:db8::2').take(8)),
    'RESOURCE_EXHAUSTED',
  )
  assert.equal(
    code(() => budget.open('2001:db8:1::1').take(8)),
    'OK',
  )
})

test('small chunks count with the memory that they use', () => {
  const sizes = [1, 256, 257].map((length) => countedBytes(Buffer.alloc(length)))
  assert.deepEqual(sizes, [256, 256, 257])
})
