// Simulation of one thread: the waiting time of one caller while another sends 16 expensive requests at a time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBudgets, type Sender, type Spending } from './budgets.ts'

const noisy: Sender = { uid: `${'a'.repeat(40)}/0000000000000001`, source: '192.0.2.1' }
const quiet: Sender = { uid: `${'b'.repeat(40)}/0000000000000001`, source: '192.0.2.2' }
const [pullMs, refusalMs] = [0.3, 0.15]
const pullEveryMs = 25

type Request = { sender: Sender; arrivedAt: number; pieces: number[]; spending?: Spending }

/**
 * Simulates callers whose requests take one turn of the event loop for each piece. A caller sends the next request after each
 * response.
 */
function simulate(pieces: readonly number[], { percent = 50, forMs = 10_000, leadMs = 5000 } = {}) {
  const clock = { now: 0, turns: 0 }
  const options = { callerPercent: percent, organizationPercent: percent, burstMs: 500 }
  const budgets = createBudgets(
    options,
    () => clock.now,
    () => clock.turns,
  )
  const expensive = (): Request => ({ sender: noisy, arrivedAt: clock.now, pieces: [...pieces] })
  let ready = Array.from({ length: 16 }, expensive)
  let nextPull = 0
  const waits: number[] = []
  const use = (spending: Spending, ms: number) => {
    clock.now += ms
    spending.charge(ms)
  }
  const end = ({ sender, arrivedAt, spending }: Request) => {
    spending!.close(sender.source)
    if (sender === noisy) ready.push(expensive())
    else if (arrivedAt > leadMs) waits.push(clock.now - arrivedAt)
  }
  const step = (request: Request) => {
    if (!request.spending) {
      request.spending = budgets.open()
      if (request.spending.enter(request.sender)) {
        assert.equal(request.sender, noisy)
        use(request.spending, refusalMs)
        return end(request)
      }
    }
    use(request.spending, request.pieces.shift()!)
    if (request.pieces.length > 0) ready.push(request)
    else end(request)
  }
  while (clock.now < forMs) {
    clock.turns++
    for (; nextPull <= clock.now; nextPull += pullEveryMs) {
      ready.push({ sender: quiet, arrivedAt: nextPull, pieces: [pullMs] })
    }
    const turn = ready
    ready = []
    for (const request of turn) step(request)
  }
  waits.sort((a, b) => a - b)
  return waits[Math.floor(waits.length * 0.99)]!
}

for (const [what, pieces] of [
  ['of 2 ms', [2]],
  ['of 20 ms', [20]],
  ['of 100 ms, 10 ms at once', Array<number>(10).fill(10)],
  ['of 200 ms, 10 ms at once', Array<number>(20).fill(10)],
] as const) {
  test(`pulls wait little next to requests ${what}, and long without budgets`, () => {
    const p99 = simulate(pieces)
    assert.ok(p99 <= 3 * pullMs + 20, `${p99} ms`)
    const without = simulate(pieces, { percent: 100 })
    assert.ok(without > 30, `${without} ms`)
  })
}
