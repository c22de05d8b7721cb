// Moving what was committed from SQLite's log into its database waits for the disk several times. Done by a commit, that
// would stop every request meanwhile, so a thread does it.
import { Worker } from 'node:worker_threads'

const everyMs = 5000
/** Time of the writer after which the log is looked after at once: it may have become long. */
const mostBusyMs = 100
/** Time of the writer during a checkpoint after which writers wait for its end. */
const mostAheadMs = 200
/** A log of more pages is begun anew. SQLite does so only when all of it was moved, which writers would prevent. */
const manyPages = 2048

export type Checkpoints = {
  /** Call after each commit, with how long it and the work before it took. */
  note(busyMs: number): void
  /** The end of a checkpoint that writers wait for. Undefined if there is none. */
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
  /** Whether the present checkpoint is one that nothing was written during. */
  let isLast = false

  // A waiting writer keeps the process alive, which the thread alone does not.
  const hold = (): void => {
    held ??= Promise.withResolvers()
    thread?.ref()
  }
  const release = (): void => {
    held?.resolve()
    held = undefined
    isLast = false
    thread?.unref()
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
      if (thread !== started) return
      if (isLast || pages <= manyPages) {
        release()
        if (busy > 0) plan()
        return
      }
      hold()
      isLast = true
      checkpoint()
    })
    // Commits do it themselves when the log has become long, and tell what is wrong with the disk.
    started.on('error', () => {
      isAtWork = false
      release()
      if (thread === started) thread = undefined
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
  const plan = (): void => {
    timer ??= setTimeout(checkpoint, intervalMs).unref()
  }
  return {
    note(busyMs) {
      busy += busyMs
      if (isAtWork && busy > mostAheadMs) hold()
      if (busy > mostBusyMs) checkpoint()
      else plan()
    },
    hold: () => held?.promise,
    async close() {
      clearTimeout(timer)
      release()
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
