// Lets a separate process read images and SBOMs, within limits on memory and time.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import { restarted } from '#lib/files/assets.ts'
import type { Layer } from './layers/layers.ts'
import { scanLimits } from './layers/scan-limits.ts'
import { type ImageContents, Unreadable } from './packages.ts'
import type { Answer, FromReader, Piece, Question, ToReader } from './reader-messages.ts'
import type { ScanReport } from './reports/scan-report.ts'
import type { Signed } from './reports/signed.ts'
import type { SbomContents } from './sbom.ts'

/**
 * Reads contents one after the other in a separate process. The process is started when it is needed. If a process had to be
 * ended, another one is started.
 */
export type Reader = {
  /**
   * Reads the installed packages from the layers of an image. Undefined if there are no package databases or package files.
   * Throws Unreadable if the error is in the layers.
   */
  readLayers(layers: readonly Layer[], signal: AbortSignal): Promise<ImageContents | undefined>
  /** Reads an SBOM. Undefined for an in-toto statement of another kind. Throws Unreadable if the error is in the document. */
  readSbom(sbom: Layer, signal: AbortSignal): Promise<SbomContents | undefined>
  /** Reads a scan report. Throws Unreadable if the error is in the report. */
  readReport(report: Layer, signal: AbortSignal): Promise<ScanReport>
  /** Finds the signers of a report among public keys in PEM. Throws Unreadable if the error is in the report. */
  readSigners(report: Layer, keys: readonly string[], signal: AbortSignal): Promise<Signed>
  [Symbol.asyncDispose](): Promise<void>
}

export const readerLimits = {
  ...{ heapMb: 384, layersMs: scanLimits.ms + 30_000, sbomMs: 30_000 },
  /**
   * Limit on the bytes of payloads that are hashed to verify signatures. A payload is counted again for each signature and each
   * key.
   */
  verifiedBytes: 2 * 2 ** 30,
}
export type ReaderLimits = typeof readerLimits

export function createReader(limits: ReaderLimits = readerLimits): Reader {
  let current: ChildProcess | undefined
  const start = (): ChildProcess => {
    // The process gets no environment variables of the server, and its only output are messages. The cache of compiled code halves
    // the time of its start.
    const { file, args, env } = restarted([`--max-old-space-size=${limits.heapMb}`])
    const child = spawn(file, [...args, 'contents-reader'], {
      env: { ...env, ...compileCache() },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const forget = (): void => {
      if (current === child) current = undefined
    }
    child.once('exit', forget).on('error', forget)
    return child
  }
  const end = async (): Promise<void> => {
    const child = current
    current = undefined
    if (!child || child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  const ask = async (question: Question, sources: readonly Layer[], ms: number, signal: AbortSignal) => {
    signal.throwIfAborted()
    current ??= start()
    const answer = await answerOf(current, question, sources, { ms, signal, heapMb: limits.heapMb }).catch(
      async (error) => {
        // The process may still be working, or waiting for bytes that never arrive.
        await end()
        throw error
      },
    )
    if ('reason' in answer) throw new Unreadable(answer.reason, answer.message)
    if ('failure' in answer) throw new Error(answer.failure)
    return answer
  }
  return {
    readLayers: async (layers, signal) => {
      const answer = await ask({ layers: layers.length }, layers, limits.layersMs, signal)
      return (answer as { contents: ImageContents | undefined }).contents
    },
    readSbom: async (sbom, signal) =>
      ((await ask({ sbom: true }, [sbom], limits.sbomMs, signal)) as { sbom: SbomContents | undefined }).sbom,
    readReport: async (report, signal) =>
      ((await ask({ report: true }, [report], limits.sbomMs, signal)) as { report: ScanReport }).report,
    readSigners: async (report, keys, signal) => {
      const question = { signedBy: keys, verifiedBytes: limits.verifiedBytes }
      return ((await ask(question, [report], limits.sbomMs, signal)) as { signed: Signed }).signed
    },
    [Symbol.asyncDispose]: end,
  }
}

function compileCache(): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir()
  // The folder is that of this version of Node, inside the one of the setting.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}

/**
 * Signals with which Node ends when it has no memory left. If another process kills the reader, the signal is a different one.
 */
const crashes: ReadonlySet<NodeJS.Signals> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV', 'SIGBUS'])

type Within = { ms: number; signal: AbortSignal; heapMb: number }

/** Sends the image reader process (`child`) each chunk that it requests, until it returns its answer. */
async function answerOf(
  child: ChildProcess,
  question: Question,
  sources: readonly Layer[],
  { ms, signal, heapMb }: Within,
): Promise<Answer> {
  const over = new AbortController()
  const until = AbortSignal.any([signal, over.signal])
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const say = (message: ToReader): void => void child.send(message, () => {})
  const piecesOf = pieces(sources, until)
  const hear = (message: FromReader): void => {
    if ('answer' in message) resolve(message.answer)
    else
      piecesOf(message.wanted).then((piece) => {
        // After the answer, the process would use the piece for the next image.
        if (!over.signal.aborted) say({ piece })
      }, reject)
  }
  const ended = (code: number | null, by: NodeJS.Signals | null): void => {
    reject(
      by !== null && crashes.has(by)
        ? new Unreadable('LIMIT_EXCEEDED', `reading takes more than ${heapMb} MiB of memory`)
        : new Error(`the reader process ended without a result (${by ?? code})`),
    )
  }
  const abort = (): void => reject(signal.reason)
  const timer = setTimeout(
    () => reject(new Unreadable('TIMED_OUT', `reading takes longer than ${ms / 1000} seconds`)),
    ms,
  )
  signal.addEventListener('abort', abort)
  child.on('message', hear).once('exit', ended).once('error', reject)
  try {
    say({ question })
    return await promise
  } finally {
    clearTimeout(timer)
    over.abort()
    signal.removeEventListener('abort', abort)
    child.off('message', hear).off('exit', ended).off('error', reject)
  }
}

/** Returns a function that reads the next piece of a source. The source is opened for its first piece. */
function pieces(sources: readonly Layer[], signal: AbortSignal): (source: number) => Promise<Piece> {
  const open = new Map<number, AsyncIterator<Uint8Array>>()
  return async (source) => {
    const iterator = open.get(source) ?? (await sources[source]!(signal))[Symbol.asyncIterator]()
    open.set(source, iterator)
    const { done, value } = await iterator.next()
    return done ? { end: true } : { bytes: value }
  }
}
