// Moving what was committed from SQLite's log into its database waits for the disk several times. Done by a commit, that
// would stop every request meanwhile, so a thread does it.
import { Worker } from 'node:worker_threads'

const everyMs = 5000
/** A log that has become as long is looked after more often, lest a commit has to. */
const manyPages = 2048
const fasterBy = 10

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
  let isAtWork = false
  let isLong = false

  const start = (): Worker => {
    const started = new Worker(new URL('./checkpoint-thread.mjs', import.meta.url), {
      workerData: file,
      env: {},
      execArgv: [],
    })
    started.unref()
    started.on('message', (pages: number) => {
      isAtWork = false
      isLong = pages > manyPages
    })
    // Commits do it themselves when the log has become long, and tell what is wrong with the disk.
    started.on('error', () => {
      if (thread === started) thread = undefined
      isAtWork = false
    })
    return started
  }
  return {
    note() {
      timer ??= setTimeout(
        () => {
          timer = undefined
          if (isAtWork) return
          isAtWork = true
          thread ??= start()
          thread.postMessage('checkpoint')
        },
        intervalMs / (isLong ? fasterBy : 1),
      ).unref()
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
