// Folders whose names survive a power cut: a name is on disk once the folder that it is in was synced.
import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder for its owner only, and any missing parents. Syncs the entries of its parents to disk, also for a folder of a
 * process that was killed before it did. The system takes care of entries in a folder that we may not read.
 */
export function makeFolder(path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 })
  const top = resolve(first ?? path)
  for (let at = resolve(path); ; at = dirname(at)) {
    try {
      syncFolder(dirname(at))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    }
    if (at === top) return
  }
}

/** Has the names in a folder on disk. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Has a file, or the names in a folder, on disk while others are served. */
export async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r')
  await file.sync().finally(() => file.close())
}
