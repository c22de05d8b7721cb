// Input files of an import: a file, a folder with everything below it, or a tar archive. Each may be compressed with gzip.
import { createReadStream, type Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createGunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import { CliError, failure } from '../framework/cli-error.ts'
import type { Records } from './import-batches.ts'

/** Text of one file. `name` is its name in errors; `path` is the file on disk, which may be an archive. */
type InputFile = { name: string; path: string; text: string }

/** Maximum size of a file in memory. Files of known data sets are far smaller. */
const maxFileBytes = 256 * 1024 * 1024
const archive = /\.(?:tar|tar\.gz|tgz)$/

export const isJson = (name: string): boolean => /\.json(?:\.gz)?$/.test(name)

/** Reads the records of all files below the paths. */
export async function readRecords(
  paths: unknown,
  wanted: (name: string) => boolean,
  read: (name: string, text: string, path: string) => Records,
): Promise<Records> {
  const all: Records = { records: [], problems: [] }
  for (const path of paths as readonly string[]) {
    for await (const { name, text, path: onDisk } of inputFiles(path, wanted)) {
      const { records, problems } = read(name, text, onDisk)
      // A file may have more records than a call can have arguments.
      for (const one of records) all.records.push(one)
      all.problems.push(...problems)
    }
  }
  return all
}

/**
 * Reads the files below a path whose names `wanted` accepts, sorted by name. If the path is a file, it is read whatever its name.
 * Throws CliError if a file cannot be read.
 */
export async function* inputFiles(path: string, wanted: (name: string) => boolean): AsyncGenerator<InputFile> {
  try {
    const isFolder = (await stat(path)).isDirectory()
    if (isFolder) yield* filesIn(path, wanted)
    else if (archive.test(path)) yield* membersOf(path, wanted)
    else yield await readFile(path)
  } catch (error) {
    if (error instanceof CliError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'does not exist' : message
    throw failure(`${path}: ${reason}`, error)
  }
}

async function* filesIn(folder: string, wanted: (name: string) => boolean): AsyncGenerator<InputFile> {
  const inside = (one: Dirent) => join(one.parentPath, one.name)
  const found = (await readdir(folder, { withFileTypes: true, recursive: true }))
    .filter((one) => one.isFile())
    .map(inside)
    .sort()
  for (const path of found) {
    if (archive.test(path)) yield* membersOf(path, wanted)
    else if (wanted(path)) yield await readFile(path)
  }
}

async function* membersOf(path: string, wanted: (name: string) => boolean): AsyncGenerator<InputFile> {
  const unpack = extract()
  const packed = createReadStream(path)
  const unzipped = path.endsWith('.tar') ? packed : packed.pipe(createGunzip())
  for (const stream of new Set([packed, unzipped])) stream.once('error', (error: Error) => unpack.destroy(error))
  unzipped.pipe(unpack)
  for await (const entry of unpack) {
    const { name, type, size } = entry.header
    // If the size of an entry is unreadable, the archive reader would wait forever for the end of the entry.
    if (!Number.isSafeInteger(size)) throw failure(`${path}: the archive is incomplete or damaged`)
    if (type !== 'file' || !wanted(name)) {
      entry.resume()
      continue
    }
    const from = name.endsWith('.gz') ? entry.pipe(createGunzip()) : entry
    yield { name: `${path}:${name}`, path, text: await textOf(from, `${path}:${name}`) }
  }
}

async function readFile(path: string): Promise<InputFile> {
  const packed = createReadStream(path)
  if (!path.endsWith('.gz')) return { name: path, path, text: await textOf(packed, path) }
  const unzipped = packed.pipe(createGunzip())
  packed.once('error', (error) => unzipped.destroy(error))
  return { name: path, path, text: await textOf(unzipped, path) }
}

/** Stops at the limit, so a small compressed file cannot fill the memory. */
async function textOf(stream: AsyncIterable<unknown>, name: string): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    bytes += (chunk as Buffer).length
    if (bytes > maxFileBytes) throw failure(`${name}: is larger than ${maxFileBytes} bytes`)
    chunks.push(chunk as Buffer)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (error) {
    throw failure(`${name}: is not UTF-8`, error)
  }
}
