/** Counts the bytes of short-lived buffers, and starts small garbage collections. */
export type Buffers = { passed(bytes: number): void }

/** Bytes of buffers after which a small collection runs. V8 starts to collect the whole heap at 32 MiB. */
const everyBytes = 8 * 1024 * 1024

/**
 * Limits the memory of upload buffers, which is outside of the heap. V8 would let it grow, and then collect the whole heap again
 * and again. A small collection after every few buffers takes well under a millisecond, and halves the processor time of an
 * upload. Without `--expose-gc`, does nothing.
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
