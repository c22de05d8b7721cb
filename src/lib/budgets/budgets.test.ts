import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arriving } from '../scheduling/shares.ts'
import { type BudgetOptions, createBudgets, type Sender } from './budgets.ts'

const usual = { callerPercent: 50, organizationPercent: 75, burstMs: 1000 }
const [acme, globex] = ['a'.repeat(40), 'b'.repeat(40)]
const ci: Sender = { uid: `${acme}/0000000000000001`, source: '192.0.2.1' }
const colleague: Sender = { uid: `${acme}/0000000000000002`, source: '192.0.2.2' }
const other: Sender = { uid: `${globex}/0000000000000001`, source: '192.0.2.3' }
const stranger: Sender = { uid: '', source: '192.0.2.4' }

function startBudgets(options: Partial<BudgetOptions> = {}, most?: number) {
  const clock = { now: 0, turns: 0 }
  const budgets = createBudgets(
    { ...usual, ...options },
    () => clock.now,
    () => clock.turns,
    most,
  )
  /** Sends a request that uses `ms` milliseconds of thread time. Returns the retry time in seconds if the request is refused. */
  const request = (sender: Sender, ms = 0): number | undefined => {
    const spending = budgets.open()
    const problem = spending.enter(sender)
    clock.turns++
    if (!problem) spending.charge(ms)
    spending.close(sender.source)
    if (!problem) return undefined
    assert.equal(problem.code, 'RESOURCE_EXHAUSTED')
    const [detail] = problem.details
    return detail?.type === 'RetryInfo' ? detail.retryDelaySeconds : 0
  }
  return { budgets, clock, request }
}

test('a caller can use an idle server fully, and is refused only while another caller sends requests', () => {
  const { clock, request } = startBudgets()
  for (let i = 0; i < 100; i++) {
    assert.equal(request(ci, 100), undefined)
    clock.now += 100
  }
  request(other)
  assert.equal(request(ci), 2)
  // The other caller has sent nothing for more than a second.
  clock.now += 1001
  clock.turns += 20
  assert.equal(request(ci, 1000), undefined)
})

test('a caller gets its configured share while others wait', () => {
  const { clock, request } = startBudgets()
  request(ci, 5000)
  let used = 0
  const began = clock.now
  while (clock.now - began < 60_000) {
    request(other)
    if (request(ci, 10) === undefined) used += 10
    clock.now += 10
  }
  // Half of a minute, minus the debt at the start.
  assert.ok(Math.abs(used - 29_000) < 100, `${used} ms`)
})

test('a burst passes, and the retry time is when the budget is available again', () => {
  const { clock, request } = startBudgets()
  request(other)
  assert.equal(request(ci, 999), undefined)
  assert.equal(request(ci, 1501), undefined)
  // While other callers wait, a debt can exceed the burst.
  assert.equal(request(ci), 4)
  clock.now += 3010
  request(other)
  assert.equal(request(ci), undefined)
})

test('a long pause before a burst does not increase the budget', () => {
  const { budgets, clock, request } = startBudgets()
  request(ci, 10)
  clock.now += 3_600_000
  request(other)
  const open = Array.from({ length: 16 }, () => budgets.open())
  for (const spending of open) assert.equal(spending.enter(ci), undefined)
  for (const spending of open) {
    clock.now += 600
    spending.charge(600)
    spending.close(ci.source)
  }
  request(other)
  assert.ok(request(ci))
})

test('a burst after steady use below the share is no longer than configured', () => {
  const { clock, request } = startBudgets()
  for (let i = 0; i < 100; i++) {
    assert.equal(request(ci, 1), undefined)
    clock.now += 250
  }
  request(other)
  let used = 0
  while (request(ci, 10) === undefined) used += 10
  assert.equal(used, usual.burstMs)
})

test('does not admit many requests at once if the budget is left for one', () => {
  const { budgets, request } = startBudgets()
  request(other)
  for (let i = 0; i < 39; i++) request(ci, 25)
  const open = Array.from({ length: 16 }, () => budgets.open())
  const admitted = open.filter((spending) => spending.enter(ci) === undefined)
  assert.equal(admitted.length, 1)
  for (const spending of open) spending.close(ci.source)
  assert.equal(request(ci), undefined, 'what was reserved and not used is given back')
})

test('reserves little for an upload that used much time in short pieces', () => {
  const { budgets, request } = startBudgets()
  request(other)
  const upload = budgets.open()
  upload.enter(ci)
  for (let i = 0; i < 600; i++) upload.charge(1)
  upload.close(ci.source)
  const open = Array.from({ length: 50 }, () => budgets.open())
  assert.deepEqual(
    open.map((spending) => spending.enter(ci)),
    open.map(() => undefined),
  )
})

test('a caller whose request is not read because of long work counts as waiting', () => {
  const { budgets, clock, request } = startBudgets()
  request(other)
  request(ci, 5000)
  clock.now += 10_000
  request(ci, 5000)
  assert.ok(request(ci))
  clock.turns += 20
  assert.equal(request(ci), undefined)
  budgets.open().enter(other)
  assert.ok(request(ci))
})

test('identities of one organization share its budget', () => {
  const { request } = startBudgets()
  const identities = Array.from({ length: 4 }, (_, i) => ({ ...ci, uid: `${acme}/000000000000001${i}` }))
  request(other)
  for (const sender of identities) assert.equal(request(sender, 260), undefined)
  assert.equal(request(colleague), 1)
  assert.equal(request(other), undefined)
})

test('refuses a caller because of another member of the organization, but not the organization itself', () => {
  const { request } = startBudgets()
  request(ci, 3000)
  assert.equal(request(colleague, 3000), undefined)
  assert.ok(request(ci))
})

test('an anonymous caller counts as another caller, unless a signed-in caller has the same address', () => {
  const { request } = startBudgets()
  request(ci, 3000)
  assert.equal(request({ ...stranger, source: ci.source }), undefined)
  assert.equal(request(ci), undefined)
  request(stranger, 3000)
  assert.ok(request(ci))
  assert.ok(request(stranger))
  assert.equal(request({ ...stranger, source: '192.0.2.5' }), undefined)
})

test('charges and refuses a request that can still get a challenge, and does not count it as waiting', () => {
  const { budgets, request } = startBudgets()
  const unproven = { ...stranger, isUnproven: true }
  request(ci, 3000)
  const challenged = budgets.open()
  assert.equal(challenged.enter(unproven), undefined)
  challenged.charge(3000)
  assert.equal(request(ci), undefined)
  assert.ok(request(unproven))
  challenged.close(stranger.source)
  const served = budgets.open()
  served.enter({ ...unproven, source: '192.0.2.5' })
  served.enter({ ...stranger, source: '192.0.2.5' })
  assert.ok(request(ci))
})

test('addresses of one IPv6 network share a budget', () => {
  const { request } = startBudgets()
  request(other)
  request({ uid: '', source: '2001:db8::1' }, 3000)
  assert.ok(request({ uid: '', source: '2001:db8::2' }))
  assert.equal(request({ uid: '', source: '2001:db8:0:1::2' }), undefined)
})

test('charges a request without a caller to its address, and does not count it as waiting', () => {
  const { budgets, request } = startBudgets()
  request(ci, 3000)
  const challenged = budgets.open()
  challenged.charge(3000)
  challenged.close(stranger.source)
  assert.equal(request(ci), undefined)
  assert.ok(request(stranger))
})

test('time before the caller is known is counted once', () => {
  const { budgets, request } = startBudgets()
  request(other)
  const spending = budgets.open()
  spending.charge(600)
  spending.enter(stranger)
  spending.enter(ci)
  spending.charge(300)
  spending.close(ci.source)
  assert.equal(request(ci, 200), undefined)
  assert.ok(request(ci))
  assert.equal(request(stranger, 999), undefined)
  assert.equal(budgets.spentMs(), 2099)
})

test('a running request counts as waiting, but a long open stream does not', () => {
  const { budgets, clock, request } = startBudgets()
  request(ci, 3000)
  budgets.open().enter(other)
  clock.now += 1500
  assert.ok(request(ci, 3000))
  clock.now += 29_000
  clock.turns += 20
  request(ci, 30_000)
  assert.equal(request(ci), undefined)
})

test('the operator is never refused', () => {
  const { request } = startBudgets()
  const operator = { uid: 'c'.repeat(40), source: '192.0.2.9', isExempt: true }
  request(other)
  request(operator, 10_000)
  assert.equal(request(operator), undefined)
  request(ci, 10_000)
  assert.ok(request(ci))
})

test('100 percent means no budget', () => {
  const { request } = startBudgets({ callerPercent: 100, organizationPercent: 100 })
  request(other)
  request(ci, 100_000)
  assert.equal(request(ci), undefined)
})

test('keeps names of one kind when many names of another kind are added', () => {
  const { clock, request } = startBudgets({}, 3)
  request(other)
  request(ci, 3000)
  for (let i = 0; i < 10; i++) {
    clock.now += 1
    request({ uid: '', source: `198.51.100.${i}` })
  }
  assert.ok(request(ci))
  for (let i = 0; i < 10; i++) request({ ...ci, uid: `${acme}/00000000000000a${i}` })
  assert.ok(request(ci), 'the identity was forgotten, and its organization was not')
})

test('serves a request before its caller is known, and then charges the caller and its organization', () => {
  const budgets = createBudgets(
    { callerPercent: 50, organizationPercent: 75, burstMs: 100 },
    () => 0,
    () => 0,
  )
  const spending = budgets.open()
  assert.equal(spending.shares, arriving)
  const before = arriving[0]!.usedMs
  spending.charge(3)
  assert.equal(arriving[0]!.usedMs, before)
  const organization = 'a'.repeat(40)
  for (const name of ['0000000000000001', '0000000000000002']) {
    const next = name.endsWith('1') ? spending : budgets.open()
    assert.equal(next.enter({ uid: `${organization}/${name}`, source: '192.0.2.1' }), undefined)
    next.charge(4)
    assert.deepEqual(
      next.shares!.map(({ usedMs }) => usedMs),
      name.endsWith('1') ? [7, 7] : [11, 4],
    )
  }
})
