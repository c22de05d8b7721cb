import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createMonitor } from './monitor.ts'

/** Uses the processor until the thread has used the given milliseconds of CPU time. */
function work(ms: number): void {
  const { user, system } = process.threadCpuUsage()
  const used = () => {
    const now = process.threadCpuUsage()
    return (now.user + now.system - user - system) / 1000
  }
  while (used() < ms);
}

test('reports the CPU time of the longest turn of the event loop, and not the sum of several turns', async () => {
  const monitor = createMonitor()
  monitor.begin({ exact: true })
  for (const ms of [60, 150, 60]) {
    await nextTurn()
    work(ms)
  }
  const { turnMs } = await monitor.end()
  assert.ok(turnMs >= 150, `${turnMs}`)
  assert.ok(turnMs < 265, `${turnMs}`)
})

test('reports memory that was in use only during a turn, on the heap and in buffers', async () => {
  const monitor = createMonitor()
  for (const hold of [() => new Array(4_000_000).fill(0.5), () => Buffer.alloc(32 * 1024 * 1024, 1)]) {
    monitor.begin({ exact: true })
    const kept = hold()
    await nextTurn()
    const { heapBytes } = await monitor.end()
    assert.ok(kept.length > 0)
    assert.ok(heapBytes >= 30 * 1024 * 1024, `${heapBytes}`)
  }
})

test('does not report the costs of an earlier request', async () => {
  const monitor = createMonitor()
  monitor.begin({ exact: true })
  work(120)
  await monitor.end()
  monitor.begin({ exact: true })
  const { turnMs, heapBytes } = await monitor.end()
  assert.ok(turnMs < 100, `${turnMs}`)
  assert.ok(heapBytes < 8 * 1024 * 1024, `${heapBytes}`)
})
