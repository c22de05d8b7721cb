/** Counts bytes of short-lived buffers, and has them collected from time to time. */
export type Buffers = { passed(bytes: number): void }

/** V8 begins to look through the whole heap when 32 MiB have piled up. */
const everyBytes = 8 * 1024 * 1024

/**
 * Limits how many buffers of uploads pile up outside the heap. V8 would let many of them pile up, and then collect the whole heap
 * again and again. A small collection after every few buffers takes well under a millisecond, and halves the processor time of an
 * upload. Without `--expose-gc` nothing is collected here.
 */
export function createBuffers(collect: NodeJS.GCFunction | undefined = globalThis.gc): Buffers {
  let bytes = 0
  return {
    passed(more) {
      bytes += more
      if (bytes < everyBytes) return
      bytes = 0
      collect?.({ type: 'minor', execution: 'sync' })
    },
  }
}
