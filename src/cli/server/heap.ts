// V8 settings that keep the heap of a server small, and the memory that a request leaves behind
// (docs/decisions/0055-memory-use.md and 0140-v8-heap-of-requests.md).
import { setFlagsFromString } from 'node:v8'

/** Sets the flags of V8. Must be called before the server accepts requests. */
export function keepSmall(): void {
  // Starts a garbage collection at 1.4 times the live size, earlier than by default.
  setFlagsFromString('--heap-growing-percent=40')
  // By default, V8 learns which code creates long-lived objects, and then allocates them in the old generation. For a server,
  // this keeps whole requests in memory.
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/**
 * Returns unused memory to the system. A start needs twice as much memory as a running server, and V8 would not return the rest.
 */
export function releaseMemory(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
