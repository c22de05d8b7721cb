// Settings of V8 that keep the heap of a server small, and the memory that a request leaves behind
// (docs/decisions/0055-memory-use.md and 0140-v8-heap-of-requests.md).
import { setFlagsFromString } from 'node:v8'

/** Call it before the server serves requests. */
export function keepSmall(): void {
  // Collects the heap at 1.4 times the live size, earlier than by default.
  setFlagsFromString('--heap-growing-percent=40')
  // Otherwise, V8 allocates objects directly in the old generation at sites whose earlier objects lived long. There they keep
  // whole requests alive.
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/** The start needs twice the memory that stays, and V8 would keep it for as long as the server runs. */
export function giveBack(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
