/** Counts bytes of short-lived buffers, and has them collected from time to time. */
export type Buffers = { passed(bytes: number): void }

/** V8 begins to look through the whole heap when 32 MiB have piled up. */
const everyBytes = 8 * 1024 * 1024

/**
 * The bodies of uploads pass by in buffers outside the heap. V8 would let many of them pile up, and then look
 * through the whole heap, again and again; a small collection after every few of them takes well under a millisecond, and
 * an upload half the processor time. Without `--expose-gc` nothing happens, and V8 does as it likes.
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
