// Moving what was committed from SQLite's log into its database waits for the disk several times. Done by a commit, that
// would stop every request meanwhile, so a thread does it.
import { Worker } from 'node:worker_threads'

const everyMs = 5000

export type Checkpoints = {
  /** Call after each commit. */
  note(): void
  /** Resolves once the thread has closed its connection, which should not be the last. */
  close(): Promise<void>
}

/** The thread begins when it is first needed, so not in a process that ends soon or writes nothing. */
export function createCheckpoints(file: string, intervalMs = everyMs): Checkpoints {
  let timer: NodeJS.Timeout | undefined
  let thread: Worker | undefined

  const start = (): Worker => {
    const started = new Worker(new URL('./checkpoint-thread.ts', import.meta.url), {
      workerData: file,
      env: {},
      execArgv: [],
    })
    started.unref()
    // Commits do it themselves when the log has become long, and tell what is wrong with the disk.
    started.on('error', () => {
      if (thread === started) thread = undefined
    })
    return started
  }
  return {
    note() {
      timer ??= setTimeout(() => {
        timer = undefined
        thread ??= start()
        thread.postMessage('checkpoint')
      }, intervalMs).unref()
    },
    async close() {
      clearTimeout(timer)
      const ending = thread
      thread = undefined
      if (!ending) return
      await new Promise<void>((resolve) => {
        ending.once('exit', () => resolve())
        ending.ref()
        ending.postMessage('end')
      })
    },
  }
}
