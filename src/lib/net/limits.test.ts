import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../errors.ts'
import { createLimits, type LimitKind } from './limits.ts'

/** Rate limits with a clock that the test sets, and the retry time of a refusal in seconds, or 0 if accepted. */
function limitsOf(source: number, maxKeys?: number) {
  let now = 0
  const limits = createLimits(
    {
      source,
      issuer: source,
      identity: source,
      request: source,
      refusal: source,
      guess: source,
      aws: source,
      scim: source,
      scimSource: source,
    },
    () => now,
    maxKeys,
  )
  return {
    limits,
    pass(ms: number): void {
      now += ms
    },
    wait(kind: LimitKind, key: string): number {
      try {
        limits.check(kind, key)
        return 0
      } catch (error) {
        assert.ok(error instanceof AppError && error.code === 'RESOURCE_EXHAUSTED')
        const [retry] = error.details
        return retry?.type === 'RetryInfo' ? retry.retryDelaySeconds : -1
      }
    },
  }
}

test("a minute's worth may come at once, and is refilled evenly", () => {
  const { pass, wait } = limitsOf(3)
  assert.deepEqual(
    [1, 2, 3, 4].map(() => wait('source', 'a')),
    [0, 0, 0, 20],
  )
  pass(19_500)
  assert.equal(wait('source', 'a'), 1)
  pass(500)
  assert.deepEqual([wait('source', 'a'), wait('source', 'a')], [0, 20])
  pass(3_600_000)
  assert.deepEqual(
    [1, 2, 3, 4].map(() => wait('source', 'a')),
    [0, 0, 0, 20],
  )
})

test('a check without counting refuses like a counted one', () => {
  const { limits, wait } = limitsOf(1)
  for (let i = 0; i < 3; i++) limits.look('source', 'a')
  assert.equal(wait('source', 'a'), 0)
  assert.throws(() => limits.look('source', 'a'), { code: 'RESOURCE_EXHAUSTED' })
})

test('accepts a request after the retry time of a refusal, however large the limit', () => {
  for (const size of [1, 7, 600, 10_000_000]) {
    const { pass, wait } = limitsOf(size)
    let seconds = 0
    for (let asked = 0; seconds === 0 && asked < size + 1 && asked < 1000; asked++) seconds = wait('source', 'a')
    pass(seconds * 1000)
    assert.equal(wait('source', 'a'), 0, String(size))
  }
})

test('kinds and keys have separate limits; addresses of one network share a limit', () => {
  const { wait } = limitsOf(1)
  assert.equal(wait('source', 'a'), 0)
  assert.equal(wait('issuer', 'a'), 0)
  assert.equal(wait('source', 'b'), 0)
  assert.equal(wait('source', '2001:db8:1:2:3::4'), 0)
  for (const same of ['2001:db8:1:2::', '2001:0DB8:0001:0002:ffff:1:2:3', '2001:db8:1:2:3:4:192.0.2.1']) {
    assert.ok(wait('source', same) > 0, same)
  }
  assert.equal(wait('source', '2001:db8:1:3::'), 0)
  assert.equal(wait('source', '::ffff:192.0.2.1'), 0)
  assert.ok(wait('source', '192.0.2.1') > 0)
  assert.equal(wait('source', '::1'), 0)
  assert.equal(wait('source', 'fe80::1%eth0'), 0)
})

test('drops the least recently used name first, not the oldest', () => {
  const { wait } = limitsOf(1, 3)
  for (const name of ['a', 'b', 'c']) assert.equal(wait('issuer', name), 0)
  // A refused request also counts as a use of the name.
  assert.ok(wait('issuer', 'a') > 0)
  assert.equal(wait('issuer', 'd'), 0)
  assert.ok(wait('issuer', 'a') > 0)
  assert.ok(wait('issuer', 'c') > 0)
  assert.equal(wait('issuer', 'b'), 0, 'it was forgotten')
})

test('many names of one kind drop no name of another', () => {
  const { wait } = limitsOf(1, 3)
  assert.equal(wait('refusal', '192.0.2.1'), 0)
  for (let i = 0; i < 10; i++) assert.equal(wait('request', `198.51.100.${i}`), 0)
  assert.ok(wait('refusal', '192.0.2.1') > 0)
})
