// Runs in a thread of its own. Started by `checkpoints.ts` only. Not in TypeScript: a thread does without the cache of compiled
// code, so Node would load its compiler for these lines, and keep it (docs/decisions/0055-memory-use.md).
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(workerData, { timeout: 0 })
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
// Frees the memory that only the start of the thread needs.
globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })

parentPort?.on('message', (/** @type {'checkpoint' | 'end'} */ message) => {
  if (message === 'checkpoint') {
    const done = checkpoint.get()
    parentPort?.postMessage(Number(done?.log ?? 0))
    return
  }
  db.close()
  parentPort?.close()
})
