import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/**
 * Keeps a second server off the same file: SQLite has one writer, and each server would cache what the other changes.
 * The lock is the operating system's, so it ends with the process however that ends. `undefined` when another has it.
 */
export function takeServeLock(file: string): { release(): void } | undefined {
  closeSync(openSync(file, 'a', 0o600))
  const lock = new DatabaseSync(file, { timeout: 0 })
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode === 5) return undefined
    throw error
  }
  return { release: () => lock.close() }
}
