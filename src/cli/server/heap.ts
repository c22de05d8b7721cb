// How large V8 lets its heap become: it keeps the most that it ever was (docs/decisions/0055-memory.md).
import { setFlagsFromString } from 'node:v8'

/** Has it collect at 1.6 times what is alive, where it would wait for more. */
export function collectSooner(): void {
  setFlagsFromString('--heap-growing-percent=60')
}

/** Starting takes twice the room of what stays, which V8 would keep for as long as the server runs. */
export function giveBack(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
