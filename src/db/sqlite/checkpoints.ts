// Checkpoints in a thread. A checkpoint copies commits from SQLite's write-ahead log into the database file, and waits for the
// disk several times. In a commit, it would block all requests.
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { threadScript } from '#lib/files/assets.ts'

const everyMs = 5000
/** Milliseconds of writing after which a checkpoint starts at once, since the log may be long. Otherwise a timer starts it. */
const mostBusyMs = 100
/** Milliseconds of writing since the start of a checkpoint after which writers wait for its end. */
const mostAheadMs = 200
/**
 * Size of the log, in bytes, at which writers wait for the running checkpoint. At 64 MiB, a commit would run a checkpoint itself.
 */
const mostLogBytes = 48 * 2 ** 20
/**
 * Number of pages in the log above which writers wait for another checkpoint. SQLite can write the log from its start again only
 * if all its pages were copied, which new commits would prevent.
 */
const manyPages = 2048

export type Checkpoints = {
  /** Call after each commit. `busyMs` is the duration of the commit and of the work before it. */
  note(busyMs: number): void
  /** Promise that resolves at the end of the checkpoint that writers have to wait for. Undefined if writers need not wait. */
  hold(): Promise<void> | undefined
  /** Resolves once the thread has closed its connection. Call it while another connection is still open. */
  close(): Promise<void>
}

/**
 * Creates the checkpoints of a database. The thread starts at the first checkpoint, so a short command or a process without
 * writes has none.
 */
export function createCheckpoints(file: string, intervalMs = everyMs): Checkpoints {
  let timer: NodeJS.Timeout | undefined
  let thread: Worker | undefined
  let isAtWork = false
  let busy = 0
  let held: PromiseWithResolvers<void> | undefined
  /** True if writers wait for the whole of the running checkpoint. No other checkpoint follows it then. */
  let isLast = false

  /** Size of the log file. SQLite truncates the file to 32 MiB when it starts the log again. */
  const logBytes = (): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  // While writers wait, the thread must keep the process alive. At other times the process may end.
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
    const started = new Worker(threadScript('src/db/sqlite/checkpoint-thread.mjs'), {
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
    // Without the thread, commits run checkpoints themselves when the log is long, and report disk errors.
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
