// Monitor of the event loop of this process: CPU time of each turn, and growth of the heap.
import { setTimeout as sleep } from 'node:timers/promises'
import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Highest values of one request. */
export type Cost = {
  /** CPU time of the longest turn, in milliseconds. */
  turnMs: number
  /** Growth of the heap with its external buffers, in bytes. */
  heapBytes: number
}

/** Collects all garbage, also in a process without `--expose-gc`. */
function collect(): void {
  if (!globalThis.gc) {
    v8.setFlagsFromString('--expose-gc')
    globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
  }
  void globalThis.gc()
}

/** A request leaves work behind that runs after its answer, such as metrics and log lines. */
const settleMs = 2
/** Turns shorter than this count together. With a shorter time the loop would run all the while, and take the processor from the client. */
const boundaryMs = 1

/**
 * Measures between `begin` and `end`. A turn ends where the loop comes to its timers. CPU time of the main thread
 * counts, since wall time also grows when other programs use the processor.
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
    /** `exact` collects the garbage of earlier requests first, which takes longer than most requests. */
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
      // A collection within a turn hides the memory that the turn has used until then.
      const around = (profiler!.stop()?.statistics ?? []).flatMap(({ beforeGC, afterGC }) => {
        return [beforeGC, afterGC].map(({ heapStatistics: of }) => of.usedHeapSize + of.externalMemory)
      })
      const heapBytes = Math.max(riseOf(samples), riseOf([samples[0]!, ...around, samples.at(-1)!]))
      return { turnMs, heapBytes }
    },
  }
}

/** Largest rise from a value to a later one. A collection of earlier garbage lowers the values in between. */
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
