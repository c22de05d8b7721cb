// Checkpoints as numbered files, `pinfold-checkpoints/<name>/<number>`. The highest number is current.
import { randomBytes } from 'node:crypto'
import { mkdir, opendir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Newest } from '#lib/caches/newest.ts'
import { syncPath } from '#lib/files/folders.ts'
import { type CheckpointStore, checkpointFolder, type StoredCheckpoint } from './blobs.ts'

const mostSynced = 10_000

type Files = {
  /** Folder of unfinished files. Garbage collection deletes what a crash leaves there. */
  drafts: string
  /** Gives a file a second name. Fails with EEXIST if that name is taken. */
  link(from: string, to: string): Promise<void>
}

/**
 * The new file gets its number by `link`, which only one of several writers can do. So the number is the lock, and a killed
 * server leaves no lock behind.
 */
export function diskCheckpoints(folder: string, { drafts, link }: Files): CheckpointStore {
  const root = join(folder, checkpointFolder)
  const makePlace = createPlaces(folder)
  return {
    isAtomic: () => true,

    async read(name) {
      for (;;) {
        const numbers = await numbersIn(join(root, name))
        const found = await newestOf(join(root, name), numbers)
        // Another writer may have replaced all of them meanwhile.
        if (found !== 'gone') return found
      }
    },

    async write(name, text, expected) {
      const place = join(root, name)
      await makePlace(name)
      const number = Number(expected ?? 0) + 1
      const draft = join(folder, drafts, randomBytes(16).toString('hex'))
      try {
        await writeFile(draft, text, { flag: 'wx', mode: 0o600, flush: true })
        const before = await numbersIn(place)
        if ((before[0] ?? 0) !== number - 1) return undefined
        await link(draft, join(place, String(number)))
        await syncPath(place)
        const [highest, ...others] = await numbersIn(place)
        // The number was free only because a later writer had deleted it.
        if (highest !== number) {
          await rm(join(place, String(number)), { force: true })
          return undefined
        }
        for (const other of others) await rm(join(place, String(other)), { force: true })
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

/** Creates the folder of a name. A process may have been killed after it created a folder and before that was durable. */
function createPlaces(folder: string) {
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

/** Numbers, the highest first. Empty if there is no such folder. */
async function numbersIn(place: string): Promise<number[]> {
  const names = await readdir(place).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return []
    throw error
  })
  const numbers = names.filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number)
  return numbers.sort((one, other) => other - one)
}

/**
 * On a file system without links a crash can leave a truncated file. The file before it is then current under the higher number,
 * so that the next writer continues after both.
 */
async function newestOf(place: string, numbers: readonly number[]): Promise<StoredCheckpoint | undefined | 'gone'> {
  for (const number of numbers) {
    const text = await readFile(join(place, String(number)), 'utf8').catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return undefined
      throw error
    })
    if (text === undefined) return 'gone'
    if (text.endsWith('\n')) return { text, version: String(numbers[0]) }
  }
  return undefined
}

const isCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code
