// Moving commits from SQLite's log into its database waits for the disk several times. In a commit, that would stop all requests
// meanwhile, so a thread does it.
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'

const everyMs = 5000
/** Milliseconds of writing after which a checkpoint starts at once, since the log may be long. */
const mostBusyMs = 100
/** Milliseconds of writing since the start of a checkpoint after which writers wait for its end. */
const mostAheadMs = 200
/** Bytes of the log at which writers wait for the present checkpoint. At 64 MiB a commit would do one itself. */
const mostLogBytes = 48 * 2 ** 20
/** Pages of a log that SQLite shall restart. It does so only after all pages were moved, which writers would prevent. */
const manyPages = 2048

export type Checkpoints = {
  /** Call after each commit. `busyMs` is the duration of the commit and of the work before it. */
  note(busyMs: number): void
  /** Resolves at the end of the checkpoint that writers have to wait for. Undefined if there is none. */
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
  /** True if writers wait for the present checkpoint from its start. */
  let isLast = false

  /** SQLite shortens the file to 32 MiB when it restarts the log. */
  const logBytes = (): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
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
    // Commits then do it themselves when the log is long, and report problems with the disk.
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
      if (isAtWork && (busy > mostAheadMs || logBytes() > mostLogBytes)) hold()
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
