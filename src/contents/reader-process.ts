// Process that reads image contents. It is separate, because users have pushed the contents. If the contents use too much time or
// memory, only this process ends, and the server continues. Only `reader.ts` starts this process, and the server sends the bytes
// to read.
import { flushCompileCache } from 'node:module'
import { readFiles } from './databases/files.ts'
import { type Layer, scanLayers } from './layers/layers.ts'
import { scanLimits } from './layers/scan-limits.ts'
import { type ImageContents, Unreadable } from './packages.ts'
import {
  type Answer,
  type FromReader,
  maxSbomBytes,
  type Piece,
  type Question,
  type ToReader,
} from './reader-messages.ts'
import { readScanReport, readSigners } from './reports/read-report.ts'
import { readSbom } from './sbom.ts'

let arrived: (piece: Piece) => void = () => {}

const send = (message: FromReader): void => void process.send?.(message)

async function* bytesOf(source: number): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { promise, resolve } = Promise.withResolvers<Piece>()
    arrived = resolve
    send({ wanted: source })
    const piece = await promise
    if ('end' in piece) return
    yield piece.bytes
  }
}

async function contentsOf(count: number): Promise<ImageContents | undefined> {
  const layers = Array.from(
    { length: count },
    (_, i): Layer =>
      async () =>
        bytesOf(i),
  )
  return readFiles(await scanLayers(layers, scanLimits, new AbortController().signal))
}

async function readWhole(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const piece of pieces) {
    size += piece.length
    if (size > maxSbomBytes) throw new Unreadable('LIMIT_EXCEEDED', `the document has more than ${maxSbomBytes} bytes`)
    chunks.push(piece)
  }
  return Buffer.concat(chunks, size)
}

async function answerQuestion(question: Question): Promise<Answer> {
  try {
    if ('report' in question) return { report: readScanReport(await readWhole(bytesOf(0))) }
    if ('signedBy' in question) {
      const { signedBy, verifiedBytes } = question
      return { signed: readSigners(await readWhole(bytesOf(0)), signedBy, verifiedBytes) }
    }
    if ('sbom' in question) return { sbom: readSbom(await readWhole(bytesOf(0))) }
    return { contents: await contentsOf(question.layers) }
  } catch (error) {
    if (error instanceof Unreadable) return { reason: error.reason, message: error.message }
    return { failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

let isCacheWritten = false

function sendAnswer(answer: Answer): void {
  send({ answer })
  if (isCacheWritten) return
  isCacheWritten = true
  // Node would write compiled code to the cache when the process ends, but the server kills this process.
  flushCompileCache()
}

process.on('message', (message: ToReader) => {
  if ('piece' in message) arrived(message.piece)
  else void answerQuestion(message.question).then(sendAnswer)
})
// The process ignores these signals, because the server ends it. A terminal or a service manager can signal both processes.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())
