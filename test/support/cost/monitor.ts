// Monitor of the event loop of this process: CPU time of each turn, and growth of the heap.
import { setTimeout as sleep } from 'node:timers/promises'
import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Highest costs of one request. */
export type Cost = {
  /** CPU time of the longest turn of the event loop, in milliseconds. */
  turnMs: number
  /** Growth of the heap with its external buffers, in bytes. */
  heapBytes: number
}

/** Collects all garbage, even if the process was started without `--expose-gc`. */
function collect(): void {
  if (!globalThis.gc) {
    v8.setFlagsFromString('--expose-gc')
    globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
  }
  void globalThis.gc()
}

/** Time to wait for work that a request leaves for after its answer, such as metrics and log lines. */
const settleMs = 2
/**
 * Turns shorter than this are measured together. If this time were shorter, the loop would never be idle, and would take
 * processor time from the client.
 */
const boundaryMs = 1

/**
 * Measures between `begin` and `end`. A turn ends when the event loop runs its timers. Measures CPU time of the main thread,
 * since other programs make wall time longer.
 */
export function createMonitor() {
  let isActive = false
  let turnMs = 0
  let samples: number[] = []
  let before = process.threadCpuUsage()
  let profiler: v8.GCProfiler | undefined

  const endTurn = (): void => {
    const now = process.threadCpuUsage()
    const ms = (now.user - before.user + now.system - before.system) / 1000
    if (ms > turnMs) turnMs = ms
    // An idle turn is too short to allocate much.
    if (ms > 0) samples.push(usedBytes())
    before = process.threadCpuUsage()
    if (isActive) setTimeout(endTurn, boundaryMs)
  }
  return {
    /** With `exact`, collects the garbage of earlier requests first. That takes longer than most requests. */
    begin({ exact }: { exact: boolean }): void {
      if (exact) collect()
      profiler = new v8.GCProfiler()
      profiler.start()
      samples = [usedBytes()]
      turnMs = 0
      isActive = true
      before = process.threadCpuUsage()
      setTimeout(endTurn, boundaryMs)
    },
    async end(): Promise<Cost> {
      await sleep(settleMs)
      isActive = false
      // If garbage is collected during a turn, the memory that the turn has used before is not visible.
      const around = (profiler!.stop()?.statistics ?? []).flatMap(({ beforeGC, afterGC }) => {
        return [beforeGC, afterGC].map(({ heapStatistics: of }) => of.usedHeapSize + of.externalMemory)
      })
      const heapBytes = Math.max(riseOf(samples), riseOf([samples[0]!, ...around, samples.at(-1)!]))
      return { turnMs, heapBytes }
    },
  }
}

/**
 * Largest difference between a value and a later one. Values in between may be lower, if garbage of earlier requests is
 * collected.
 */
function riseOf(values: readonly number[]): number {
  let [lowest, rise] = [Number.POSITIVE_INFINITY, 0]
  for (const value of values) {
    lowest = Math.min(lowest, value)
    rise = Math.max(rise, value - lowest)
  }
  return rise
}

function usedBytes(): number {
  const { used_heap_size, external_memory } = v8.getHeapStatistics()
  return used_heap_size + external_memory
}
