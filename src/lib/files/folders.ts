// Folders and files whose names survive a power cut. A name is on disk only after its parent folder was synced.
import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Creates a folder that only its owner can access, and missing parents. Syncs the parent folders, since an earlier process may
 * have been killed before it did. Parents that the process cannot read are skipped.
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

/** Writes the names in a folder to disk. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Writes a file, or the names in a folder, to disk without blocking other work. */
export async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r')
  await file.sync().finally(() => file.close())
}
