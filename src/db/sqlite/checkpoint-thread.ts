// Runs in a thread of its own. Started by `checkpoints.ts` only.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(workerData as string, { timeout: 0 })
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')

parentPort?.on('message', (message: 'checkpoint' | 'end') => {
  if (message === 'checkpoint') {
    const done = checkpoint.get()
    parentPort?.postMessage(Number(done?.log ?? 0))
    return
  }
  db.close()
  parentPort?.close()
})
