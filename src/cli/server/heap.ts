// Settings of V8 that keep the heap of a server small, and the memory that a request leaves behind (docs/decisions/0055-memory.md
// and 0140-what-outlives-a-request.md).
import { setFlagsFromString } from 'node:v8'

/** Call it before anything is served. */
export function keepSmall(): void {
  // Collects at 1.4 times what is alive, where it would wait for more.
  setFlagsFromString('--heap-growing-percent=40')
  // V8 puts what has lived long where it was made before among what is old at once, from where it keeps whole requests alive.
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/** Starting takes twice the room of what stays, which V8 would keep for as long as the server runs. */
export function giveBack(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
