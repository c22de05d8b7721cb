// Blob store in a folder. `uploads/` has unfinished content; `sha256/` and `sha512/` have finished content by digest.
import { randomBytes } from 'node:crypto'
import {
  constants,
  copyFile,
  type FileHandle,
  link,
  mkdir,
  open,
  opendir,
  readFile,
  rm,
  stat,
  utimes,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Writable } from 'node:stream'
import { makeFolder, syncPath } from '#lib/files/folders.ts'
import { isDiskFull } from '#lib/files/room.ts'
import {
  type Blobs,
  type Content,
  ContentMissing,
  isLocation,
  type Part,
  type Range,
  type Stored,
  StoreFull,
} from './blobs.ts'
import { diskCheckpoints } from './disk-checkpoints.ts'

/** Read size in bytes. Smaller reads are slower than the disk (measured). */
const readBytes = 1 << 20

/** After this number of bytes, the content is synced while more of it arrives, so that the sync at the end is short. */
const earlyBytes = 32 << 20

/** Name of the file with the ID of the blob store. */
export const idFile = 'pinfold-id'
const uploads = 'uploads'
const kept = ['sha256', 'sha512'] as const
/** Folder of contents that were copied from a bucket. */
const copied = 'c'

/** Opens a folder as a blob store, and creates it if it is missing. */
export async function openDisk(folder: string): Promise<Blobs> {
  makeFolder(folder)
  for (const name of [uploads, ...kept]) await mkdir(join(folder, name), { recursive: true, mode: 0o700 })
  await syncPath(folder)
  const putInPlace = createPlacing(folder)
  const disk: Disk = { isSyncing: false }
  return {
    begin: () => begin(folder, disk),

    async beginAt(location) {
      const part = await begin(folder, disk)
      return {
        ...part,
        async finish() {
          await part.finish()
          await mkdir(join(folder, dirname(dirname(location))), { recursive: true, mode: 0o700 })
          await syncPath(folder)
          await putInPlace(part.name, location).catch(ignoreError('EEXIST'))
          await syncPath(dirname(join(folder, location)))
          await rm(join(folder, part.name), { force: true })
        },
      }
    },

    hold: () => syncPath(join(folder, uploads)),

    async keep(part, digest) {
      const [algorithm = '', hex = ''] = digest.split(':')
      const location = `${algorithm}/${hex.slice(0, 2)}/${hex}-${randomBytes(8).toString('hex')}`
      try {
        // The new modification time starts the grace period of garbage collection for files without a row.
        const now = new Date()
        await utimes(join(folder, part), now, now)
        await putInPlace(part, location)
        await syncPath(dirname(join(folder, location)))
        return location
      } catch (error) {
        throw codeOf(error) === 'ENOENT' ? new ContentMissing(part, { cause: error }) : toStoreError(error)
      }
    },

    async read({ location, size }, { range = { start: 0, end: size - 1 } } = {}) {
      try {
        return openContent(await open(join(folder, location), 'r'), range)
      } catch (error) {
        throw codeOf(error) === 'ENOENT' ? new ContentMissing(location, { cause: error }) : error
      }
    },

    has: async ({ location, size }) => (await stat(join(folder, location)).catch(ignoreError('ENOENT')))?.size === size,

    remove: (location) => rm(join(folder, location), { force: true }),

    removeAll: (locations) => removeFiles(folder, locations),

    readId: () => readIdOf(folder),

    async keepId(id) {
      const draft = join(folder, `${idFile}.${randomBytes(6).toString('hex')}`)
      const file = await open(draft, 'wx', 0o600)
      await file.writeFile(`${id}\n`)
      await file.sync().finally(() => file.close())
      // Another server that shares the folder may have written its ID first. Then that ID is used.
      await linkOrCopy(draft, join(folder, idFile)).catch(ignoreError('EEXIST'))
      await rm(draft)
      await syncPath(folder)
      return (await readIdOf(folder))!
    },

    list: () => everything(folder),

    checkpoints: diskCheckpoints(folder, { drafts: uploads, link: linkOrCopy }),

    isUp: () => true,
    isFull: () => isDiskFull(folder),
    close() {},
  }
}

/** Links a file to its permanent name. Creates the folder durably if necessary. */
function createPlacing(folder: string) {
  /** Folders that are known to be synced. A folder that exists may not be synced if a killed process created it. */
  const shards = new Set<string>()
  const makeShard = async (shard: string): Promise<void> => {
    await mkdir(shard, { mode: 0o700 }).catch(ignoreError('EEXIST'))
    await syncPath(dirname(shard))
    shards.add(shard)
  }
  return async (from: string, to: string): Promise<void> => {
    const [source, target] = [join(folder, from), join(folder, to)]
    const shard = dirname(target)
    if (!shards.has(shard)) await makeShard(shard)
    try {
      await linkOrCopy(source, target)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
      await makeShard(shard)
      await linkOrCopy(source, target)
    }
  }
}

async function begin(folder: string, disk: Disk): Promise<Part> {
  const name = `${uploads}/${randomBytes(16).toString('hex')}`
  try {
    return partOf(name, join(folder, name), await open(join(folder, name), 'wx', 0o600), disk)
  } catch (error) {
    throw toStoreError(error)
  }
}

async function* everything(folder: string): AsyncIterable<Stored> {
  yield* filesOf(folder, uploads)
  for (const above of [...kept, copied]) {
    const shards = await opendir(join(folder, above)).catch(ignoreError('ENOENT'))
    for await (const shard of shards ?? []) {
      if (shard.isDirectory()) yield* filesOf(folder, `${above}/${shard.name}`)
    }
  }
}

/** Removes files. Returns the locations of the files that could not be removed. */
async function removeFiles(folder: string, locations: readonly string[]): Promise<string[]> {
  const left: string[] = []
  for (const location of locations) {
    await rm(join(folder, location), { force: true }).catch(() => left.push(location))
  }
  return left
}

async function readIdOf(folder: string): Promise<string | undefined> {
  return (await readFile(join(folder, idFile), 'utf8').catch(ignoreError('ENOENT')))?.trim()
}

function openContent(file: FileHandle, { start, end }: Range): Content {
  return {
    stream: () => file.createReadStream({ start, end: Math.max(start, end), highWaterMark: readBytes }),
    async sendTo(target) {
      try {
        await sendFile(file, target, start, end - start + 1)
      } finally {
        await file.close()
      }
    },
  }
}

/**
 * `isSyncing` is true while unfinished content is synced. At most one content is synced early, since Node has few threads for
 * file operations.
 */
type Disk = { isSyncing: boolean }

function partOf(name: string, path: string, file: FileHandle, disk: Disk): Part {
  let unsynced = 0
  let syncing: Promise<void> | undefined
  let problem: unknown
  const syncEarly = async (): Promise<void> => {
    disk.isSyncing = true
    try {
      await file.datasync()
    } catch (error) {
      // The operating system reports a write error only once. A later sync would succeed, so the error is stored here.
      problem = error
    } finally {
      disk.isSyncing = false
      syncing = undefined
    }
  }
  return {
    name,
    async write(chunks) {
      try {
        let rest = chunks
        while (rest.length > 0) {
          const { bytesWritten } = await file.writev(rest)
          rest = skipWritten(rest, bytesWritten)
          unsynced += bytesWritten
        }
        if (problem) throw problem
        if (unsynced < earlyBytes || disk.isSyncing) return
        unsynced = 0
        syncing = syncEarly()
      } catch (error) {
        throw toStoreError(error)
      }
    },
    async finish() {
      try {
        await syncing
        if (problem) throw problem
        await file.sync()
      } catch (error) {
        throw toStoreError(error)
      } finally {
        await file.close()
      }
    },
    async discard() {
      const closed = file.close().catch(() => {})
      // During a pending sync, the file is closed later, and the caller does not wait for it.
      if (!syncing) await closed
      await rm(path, { force: true }).catch(() => {})
    },
  }
}

/** Chunks that are not written yet. A write may be partial, for example if the disk becomes full. */
function skipWritten(chunks: readonly Buffer[], written: number): readonly Buffer[] {
  let left = written
  for (const [i, chunk] of chunks.entries()) {
    if (left < chunk.length) return [chunk.subarray(left), ...chunks.slice(i + 1)]
    left -= chunk.length
  }
  return []
}

async function* filesOf(folder: string, name: string): AsyncIterable<Stored> {
  for await (const entry of await opendir(join(folder, name))) {
    if (!entry.isFile()) continue
    const location = `${name}/${entry.name}`
    if (!isLocation(location)) continue
    const found = await stat(join(folder, location)).catch(ignoreError('ENOENT'))
    if (found) yield { location, size: found.size, changed: found.mtimeMs }
  }
}

/** Links a second name to a file. Copies the file if the file system does not support links. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EMLINK', 'ENOSYS'].includes(String(codeOf(error)))) throw error
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    await syncPath(to)
  }
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code
}

function toStoreError(error: unknown): unknown {
  const full = ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(String(codeOf(error)))
  return full ? new StoreFull('the blob storage is full', { cause: error }) : error
}

function ignoreError(code: string): (error: unknown) => undefined {
  return (error) => {
    if (codeOf(error) !== code) throw error
    return undefined
  }
}

/** Buffer size in bytes. Larger reads are not faster (measured). */
const chunkBytes = 1 << 20

/**
 * Writes a part of a file and ends the target. While one of two buffers is sent, the other one is filled. A Node stream would
 * allocate a buffer for each chunk, which takes longer than the reading.
 */
async function sendFile(file: FileHandle, target: Writable, start: number, size: number): Promise<void> {
  const length = Math.min(chunkBytes, size)
  const buffers = [Buffer.allocUnsafeSlow(length), Buffer.allocUnsafeSlow(size > length ? length : 0)]
  const sent: Promise<void>[] = [Promise.resolve(), Promise.resolve()]
  const gone = new Promise<never>((_, reject) => {
    target.once('close', () => reject(new Error('the client disconnected')))
  })
  gone.catch(() => {})
  let at = start
  for (let turn = 0; at < start + size; turn ^= 1) {
    await Promise.race([sent[turn], gone])
    const { bytesRead } = await file.read(buffers[turn]!, 0, Math.min(length, start + size - at), at)
    if (bytesRead === 0) throw new Error('the file is shorter than the blob')
    at += bytesRead
    sent[turn] = write(target, buffers[turn]!.subarray(0, bytesRead))
  }
  await Promise.race([Promise.all(sent), gone])
  target.end()
}

/** Writes a chunk. Resolves when its buffer can be reused. */
function write(target: Writable, chunk: Buffer): Promise<void> {
  const written = new Promise<void>((resolve, reject) => {
    target.write(chunk, (error) => (error ? reject(error) : resolve()))
  })
  // The caller awaits this promise before it reuses the buffer. The handler only prevents an unhandled rejection until then.
  written.catch(() => {})
  return written
}
