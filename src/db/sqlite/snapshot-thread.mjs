// Copies a database in a thread of its own, since it takes as long as the database is large. Started by `snapshot.ts` only.
import { DatabaseSync } from 'node:sqlite'
import { workerData } from 'node:worker_threads'

const db = new DatabaseSync(workerData.file, { readOnly: true, timeout: 5000 })
try {
  db.prepare('VACUUM INTO ?').run(workerData.to)
} finally {
  db.close()
}
