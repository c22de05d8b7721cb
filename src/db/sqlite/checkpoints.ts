// Moving what was committed from SQLite's log into its database waits for the disk several times. Done by a commit, that
// would stop every request meanwhile, so a thread does it.
import { Worker } from 'node:worker_threads'

const everyMs = 5000
/** Time of the writer after which the log is looked after at once: it may have become long. */
const mostBusyMs = 200
/** A log of more pages is begun anew. SQLite does so only when all of it was moved, which writers would prevent. */
const manyPages = 2048

export type Checkpoints = {
  /** Call after each commit, with how long it and the work before it took. */
  note(busyMs: number): void
  /** What writers wait for: the end of the checkpoint after which a long log is begun anew. Undefined if there is none. */
  hold(): Promise<void> | undefined
  /** Resolves once the thread has closed its connection, which should not be the last. */
  close(): Promise<void>
}

/** The thread begins when it is first needed, so not in a process that ends soon or writes nothing. */
export function createCheckpoints(file: string, intervalMs = everyMs): Checkpoints {
  let timer: NodeJS.Timeout | undefined
  let thread: Worker | undefined
  let isAtWork = false
  let busy = 0
  let held: PromiseWithResolvers<void> | undefined

  const release = (): void => {
    held?.resolve()
    held = undefined
  }
  const start = (): Worker => {
    const started = new Worker(new URL('./checkpoint-thread.mjs', import.meta.url), {
      workerData: file,
      env: {},
      execArgv: [],
    })
    started.unref()
    started.on('message', (pages: number) => {
      isAtWork = false
      if (held) return release()
      if (pages <= manyPages || thread !== started) return
      held = Promise.withResolvers()
      checkpoint()
    })
    // Commits do it themselves when the log has become long, and tell what is wrong with the disk.
    started.on('error', () => {
      if (thread === started) thread = undefined
      isAtWork = false
      release()
    })
    return started
  }
  const checkpoint = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (isAtWork) return
    isAtWork = true
    busy = 0
    thread ??= start()
    thread.postMessage('checkpoint')
  }
  return {
    note(busyMs) {
      busy += busyMs
      if (busy > mostBusyMs) checkpoint()
      else timer ??= setTimeout(checkpoint, intervalMs).unref()
    },
    hold: () => held?.promise,
    async close() {
      clearTimeout(timer)
      const ending = thread
      thread = undefined
      release()
      if (!ending) return
      await new Promise<void>((resolve) => {
        ending.once('exit', () => resolve())
        ending.ref()
        ending.postMessage('end')
      })
    },
  }
}
