// Reads some files in the layers of an image without unpacking the layers. The reader writes no files and follows no links. Every
// quantity that a malicious archive could increase has a limit.
import { pipeline } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { type Extract, extract } from 'tar-stream'
import { unlessAborted } from '#lib/scheduling/unless-aborted.ts'
import { readSqliteDatabases, storedBytes } from '../databases/rpm/sqlite-databases.ts'
import type { ArchiveBudget } from '../languages/java.ts'
import { gap } from '../languages/language-package.ts'
import { readLanguageFile, readWhole } from '../languages/languages.ts'
import { type ImageFile, Unreadable } from '../packages.ts'
import { LayerFiles, type Wanted } from './layer-files.ts'
import type { ScanLimits } from './scan-limits.ts'
import { isZstd, piecesOfFrames } from './zstd-frames.ts'

/** Opens the stored bytes of one layer. The signal is always aborted at the end, and then no bytes are read any more. */
export type Layer = (signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/**
 * Reads the files that list packages, as the image has them after its last layer. Throws Unreadable if the error is in the image.
 */
export async function scanLayers(
  layers: readonly Layer[],
  limits: ScanLimits,
  signal: AbortSignal,
): Promise<ImageFile[]> {
  const budget = new Budget(limits)
  budget.spend('layers', layers.length)
  const timeout = AbortSignal.timeout(limits.ms)
  const either = AbortSignal.any([signal, timeout])
  const files = new LayerFiles(limits)
  const archives = { inflatedBytes: limits.inflatedBytes, archiveEntries: limits.archiveEntries }
  for (const layer of layers) {
    try {
      files.nextLayer()
      await applyLayer(layer, { files, budget, archives }, either)
    } catch (error) {
      signal.throwIfAborted()
      if (timeout.aborted)
        throw new Unreadable('TIMED_OUT', `reading the image takes longer than ${limits.ms / 1000} seconds`)
      throw error
    }
  }
  for (const [path, found] of await readSqliteDatabases(files.sqliteFiles())) {
    files.keepFound({ path, parts: path.split('/') }, found)
  }
  return files.all()
}

const counted = { layers: 'layers', bytes: 'bytes', entries: 'entries' }

/** Layers, bytes and entries that were read so far, with their limits. */
class Budget {
  readonly limits: ScanLimits
  readonly #spent = { layers: 0, bytes: 0, entries: 0 }

  constructor(limits: ScanLimits) {
    this.limits = limits
  }

  spend(what: keyof typeof counted, amount: number): void {
    this.#spent[what] += amount
    if (this.#spent[what] > this.limits[what]) {
      throw new Unreadable('LIMIT_EXCEEDED', `the image has more than ${this.limits[what]} ${counted[what]}`)
    }
  }
}

/** Position in the archive of one layer. The position shows if the archive has many bytes without an entry. */
class Progress {
  readonly #limit: number
  #read = 0
  #entryEnd = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  entry(size: number): void {
    this.#entryEnd = this.#read + size
  }

  read(bytes: number): void {
    this.#read += bytes
    if (this.#read - this.#entryEnd > this.#limit) {
      throw new Unreadable('LIMIT_EXCEEDED', `a layer has more than ${this.#limit} bytes between two entries`)
    }
  }
}

/** Old archives without a format name are also accepted. */
const anyFormat: object = { allowUnknownFormat: true }

/** Files of an image so far, and the remaining limits. */
type Scan = { files: LayerFiles; budget: Budget; archives: ArchiveBudget }

async function applyLayer(layer: Layer, scan: Scan, signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  try {
    await readLayer(layer, scan, AbortSignal.any([signal, over.signal]))
  } finally {
    over.abort()
  }
}

async function readLayer(layer: Layer, scan: Scan, signal: AbortSignal): Promise<void> {
  const { budget } = scan
  const stored = new Stored(await unlessAborted(layer(signal), signal), signal)
  const progress = new Progress(budget.limits.bytesBetween)
  const tar = extract(anyFormat)
  const done = await Promise.allSettled([visit(tar, scan, progress), feed(stored, tar, budget, progress, signal)])
  signal.throwIfAborted()
  const errors = done.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (errors.length === 0) return
  if (stored.failure) throw stored.failure.error
  // One error is the cause, and the other one follows from it. An Unreadable is always the cause.
  const noticed = errors.find((error) => error instanceof Unreadable)
  throw noticed ?? new Unreadable('DAMAGED', 'a layer is not a complete tar archive')
}

/** Stored bytes of a layer. A flag states that reading them failed, which is an error of the blob store and not of the image. */
class Stored {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #signal: AbortSignal
  failure: { error: unknown } | undefined

  constructor(source: AsyncIterable<Uint8Array>, signal: AbortSignal) {
    this.#iterator = source[Symbol.asyncIterator]()
    this.#signal = signal
  }

  /** The next bytes. Undefined at the end. */
  async next(): Promise<Uint8Array | undefined> {
    try {
      const next = await unlessAborted(this.#iterator.next(), this.#signal)
      return next.done ? undefined : next.value
    } catch (error) {
      this.failure = { error }
      throw error
    }
  }

  /** The result is not awaited. Otherwise a source that stalls would also block the caller. */
  close(): void {
    this.#iterator.return?.().catch(() => {})
  }
}

const gzipMagic = Buffer.from([0x1f, 0x8b])
/** Length of the longer one of the two magic numbers, in bytes. */
const headBytes = 4

/** Decompresses a layer. The first bytes show the compression, because the media types in manifests are often wrong. */
async function feed(
  stored: Stored,
  tar: Extract,
  budget: Budget,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  try {
    let head = Buffer.alloc(0)
    while (head.length < headBytes) {
      const chunk = await stored.next()
      if (!chunk) break
      head = Buffer.concat([head, chunk])
    }
    const source = chunksOf(head, stored, budget)
    const pieces = (chunks: AsyncIterable<Uint8Array>) => splitChunks(chunks, budget, progress)
    if (head.subarray(0, 2).equals(gzipMagic)) await pipeline(source, createGunzip(), pieces, tar, { signal })
    else if (isZstd(head)) await pipeline(source, piecesOfFrames, createZstdDecompress(), pieces, tar, { signal })
    else await pipeline(source, pieces, tar, { signal })
  } catch (error) {
    tar.destroy(error as Error)
    throw error
  }
}

async function* chunksOf(head: Buffer, stored: Stored, budget: Budget): AsyncGenerator<Uint8Array> {
  try {
    for (let chunk: Uint8Array | undefined = head; chunk; chunk = await stored.next()) {
      budget.spend('bytes', chunk.length)
      yield chunk
    }
  } finally {
    stored.close()
  }
}

/**
 * Size in bytes of the pieces for the archive reader. The archive reader parses a piece without a pause, so a piece is small
 * enough not to delay other work.
 */
const pieceBytes = 64 * 1024

async function* splitChunks(
  chunks: AsyncIterable<Uint8Array>,
  budget: Budget,
  progress: Progress,
): AsyncGenerator<Uint8Array> {
  let unpaused = 0
  for await (const chunk of chunks) {
    budget.spend('bytes', chunk.length)
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      const piece = chunk.subarray(at, at + pieceBytes)
      progress.read(piece.length)
      yield piece
      unpaused += piece.length
      if (unpaused < pieceBytes) continue
      await setImmediate()
      unpaused = 0
    }
  }
}

async function visit(tar: Extract, { files, budget, archives }: Scan, progress: Progress): Promise<void> {
  for await (const entry of tar) {
    budget.spend('entries', 1)
    const { name, type, size, linkname } = entry.header
    // If the size of an entry is invalid, the archive reader would wait forever for the end of the entry.
    if (!Number.isSafeInteger(size)) throw new Unreadable('DAMAGED', 'a layer has an entry without a valid size')
    progress.entry(size)
    const wanted = files.wants(name, type, size, linkname ?? '')
    if (!wanted) {
      entry.resume()
    } else if (wanted.watch === 'sqlite') {
      await keepSqlite(wanted, { size, content: entry }, files, budget.limits.rpmBytes)
    } else if (wanted.watch === 'database' || wanted.watch === 'owned') {
      files.keep(wanted, await contentOf(entry))
    } else {
      const found = await readLanguageFile({ ...wanted, size, content: entry }, budget.limits, archives)
      if (found) files.keepFound(wanted, found)
    }
  }
}

/** Stores a SQLite file for the end of the image. A file above the limit for all stored SQLite files is a gap. */
async function keepSqlite(
  wanted: Wanted,
  { size, content }: { size: number; content: AsyncIterable<unknown> },
  files: LayerFiles,
  most: number,
): Promise<void> {
  const stored = storedBytes(wanted.path, size)
  const isTooLarge = files.sqliteBytes + stored > most
  const bytes = await readWhole(content, isTooLarge ? 0 : stored)
  if (!isTooLarge) files.keepSqlite(wanted, bytes)
  else
    files.keepFound(
      wanted,
      gap(wanted.path, 'LIMIT_EXCEEDED', `the rpm databases have more than ${most} bytes together`),
    )
}

async function contentOf(entry: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of entry) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks)
}
