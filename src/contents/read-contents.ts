import { Worker } from 'node:worker_threads'
import { type ImageContents, type ImageFile, Unreadable, type UnreadableReason } from './packages.ts'

/** What the thread is given, and what it says. */
export type Question = { files: readonly ImageFile[] } | { sbom: Uint8Array }
export type Answer = { contents: ImageContents | undefined } | { reason: UnreadableReason; message: string }

export const readingMs = 30_000
/** The largest SBOM that is read. */
export const maxSbomBytes = 32 * 2 ** 20

/**
 * What the files or the SBOM of an image say is installed; undefined when the files say nothing of packages. Reads in a
 * thread that is ended when it takes too long. Throws Unreadable when the fault is in what was given.
 */
export async function readContents(question: Question, signal: AbortSignal, ms = readingMs) {
  signal.throwIfAborted()
  // Nothing of the server's environment is of any use to it.
  const options = { workerData: question, env: {}, execArgv: [] }
  const thread = new Worker(new URL('./reader-thread.ts', import.meta.url), options)
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const timer = setTimeout(
    () => reject(new Unreadable('TIMED_OUT', `reading takes longer than ${ms / 1000} seconds`)),
    ms,
  )
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  thread.once('message', resolve).once('error', reject)
  thread.once('exit', () => reject(new Error('the reader thread ended without an answer')))
  try {
    const answer = await promise
    if ('reason' in answer) throw new Unreadable(answer.reason, answer.message)
    return answer.contents
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    await thread.terminate()
  }
}
