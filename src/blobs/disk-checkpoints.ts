// Checkpoints as numbered files, `pinfold-checkpoints/<name>/<number>`. The highest number is current.
import { randomBytes } from 'node:crypto'
import { mkdir, opendir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Newest } from '#lib/caches/newest.ts'
import { syncPath } from '#lib/files/folders.ts'
import { type CheckpointStore, checkpointFolder, type StoredCheckpoint } from './blobs.ts'

const mostSynced = 10_000

type Files = {
  /** Folder of unfinished files. Garbage collection deletes files that a crash left there. */
  drafts: string
  /** Links a second name to a file. Fails with EEXIST if a file with that name exists. */
  link(from: string, to: string): Promise<void>
}

/**
 * Checkpoints in a folder. Each write creates a file with the next number by `link`, which succeeds for only one of several
 * writers. So no lock is needed that a killed server could leave behind.
 */
export function diskCheckpoints(folder: string, { drafts, link }: Files): CheckpointStore {
  const root = join(folder, checkpointFolder)
  const makeLogFolder = createLogFolders(folder)
  return {
    isAtomic: () => true,

    async read(name) {
      for (;;) {
        const numbers = await numbersIn(join(root, name))
        const found = await newestOf(join(root, name), numbers)
        // Writers may have replaced all listed files before they were read. Then the folder is listed again.
        if (found !== 'gone') return found
      }
    },

    async write(name, text, expected) {
      const logFolder = join(root, name)
      await makeLogFolder(name)
      const number = Number(expected ?? 0) + 1
      const draft = join(folder, drafts, randomBytes(16).toString('hex'))
      try {
        await writeFile(draft, text, { flag: 'wx', mode: 0o600, flush: true })
        const before = await numbersIn(logFolder)
        if ((before[0] ?? 0) !== number - 1) return undefined
        await link(draft, join(logFolder, String(number)))
        await syncPath(logFolder)
        const [highest, ...others] = await numbersIn(logFolder)
        // A later writer has replaced this text, or had already written this number and deleted it. So this text is outdated.
        if (highest !== number) {
          await rm(join(logFolder, String(number)), { force: true })
          return undefined
        }
        for (const other of others) await rm(join(logFolder, String(other)), { force: true })
        return String(number)
      } catch (error) {
        if (isCode(error, 'EEXIST')) return undefined
        throw error
      } finally {
        await rm(draft, { force: true })
      }
    },

    async *list() {
      const names = await opendir(root).catch((error: unknown) => {
        if (isCode(error, 'ENOENT')) return []
        throw error
      })
      for await (const entry of names) if (entry.isDirectory()) yield entry.name
    },
  }
}

/** Creates the folder of a name. An existing folder is synced too, since a killed process may have created it without a sync. */
function createLogFolders(folder: string) {
  const synced = new Newest<string, true>(mostSynced)
  return async (name: string): Promise<void> => {
    const root = join(folder, checkpointFolder)
    const made = await mkdir(join(root, name), { recursive: true, mode: 0o700 })
    if (made === undefined && synced.has(name)) return
    await syncPath(root)
    await syncPath(folder)
    synced.set(name, true)
  }
}

/** Numbers of the files in a folder, the highest first. Empty if the folder does not exist. */
async function numbersIn(logFolder: string): Promise<number[]> {
  const names = await readdir(logFolder).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return []
    throw error
  })
  const numbers = names.filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number)
  return numbers.sort((one, other) => other - one)
}

/**
 * Reads the newest complete file. On a file system without links, a crash can leave a truncated file. Then the previous text is
 * returned, with the highest number as its version. So the next write gets a higher number.
 */
async function newestOf(logFolder: string, numbers: readonly number[]): Promise<StoredCheckpoint | undefined | 'gone'> {
  for (const number of numbers) {
    const text = await readFile(join(logFolder, String(number)), 'utf8').catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return undefined
      throw error
    })
    if (text === undefined) return 'gone'
    if (text.endsWith('\n')) return { text, version: String(numbers[0]) }
  }
  return undefined
}

const isCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code
